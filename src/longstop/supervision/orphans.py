"""Orphans of dead children: they come to the supervisor, which ends them and waits for them.

The kernel hands a process whose parent died to the next one above that has asked for it. A child's browser does not
die with it, and where nobody waits for the dead they fill the table of processes.

Not all who come are ours: who starts something and then becomes the supervisor by `exec` is its parent, and the first
process of a container is given whatever anybody in there has left behind. They are waited for when they are dead, and
never ended.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from longstop.fetching.browser import processes
from longstop.fetching.browser.events import OrphanKilled
from longstop.fetching.browser.processes import Identity, Process
from longstop.settings import BEAT_FD_VARIABLE
from longstop.telemetry.bus import Bus

LOOK_SECONDS = 1.0
#: Where a child and all that it starts find the data directory.
_DATA_VARIABLE = "LONGSTOP_DATA"


class OrphanSweep:
    """Ends what the children of one supervisor have left, and nobody else.

    Make it before the first child is started: whoever is there by then is a stranger.
    """

    def __init__(self, own_pids: Callable[[], Collection[int]], bus: Bus, *, data: Path, node: str) -> None:
        self._own_pids = own_pids
        self._bus = bus
        self._data = str(data.absolute())
        self._node = node
        processes.become_subreaper()
        self._strangers = frozenset(each.identity for each in processes.everybody() if each.parent == os.getpid())
        #: Who was seen below a living child. Chromium's processes write over the environment that would tell.
        self._kin: frozenset[Identity] = frozenset()

    async def run(self) -> None:
        """Look for orphans until cancelled."""
        while True:
            await self.sweep()
            await asyncio.sleep(LOOK_SECONDS)

    async def sweep(self) -> int:
        """End the orphans that there are now, and wait for the dead; return how many were ended."""
        people = await asyncio.to_thread(processes.everybody)
        # Asked after the look: who was born since is not in it.
        own = self._own_pids()
        below = [each for each in people if each.parent == os.getpid()]
        self._remember(people, [each for each in below if each.pid in own])
        adopted = [each for each in below if each.pid not in own]
        for dead in (each for each in adopted if each.state == "Z"):
            processes.wait_for(dead)
        # In a thread: the kernel does not show the environment of a process that hangs in it.
        orphans = await asyncio.to_thread(lambda: [each for each in adopted if self._is_orphan(each)])
        return sum(self._end(orphan, people) for orphan in orphans)

    def _remember(self, people: Collection[Process], children: Iterable[Process]) -> None:
        seen = {each.identity for child in children for each in processes.family(child.identity, people)}
        self._kin = (self._kin | seen) & {each.identity for each in people}

    def _is_orphan(self, adopted: Process) -> bool:
        if adopted.state == "Z" or adopted.identity in self._strangers:
            return False
        return adopted.identity in self._kin or self._is_marked(adopted.pid)

    def _is_marked(self, pid: int) -> bool:
        """Return whether a process bears the mark of our node's browsers, or what only a supervisor gives a child."""
        mark = processes.mark_of(pid)
        if mark is not None:
            return mark.partition(":")[0] == self._node
        # The directory alone says little: a container gives it to everybody in it, also to a backup by hand.
        is_supervised = processes.variable_of(pid, BEAT_FD_VARIABLE) is not None
        return is_supervised and processes.variable_of(pid, _DATA_VARIABLE) == self._data

    def _end(self, orphan: Process, people: Collection[Process]) -> int:
        family = [each for each in processes.family(orphan.identity, people) if processes.kill(each.identity)]
        for each in family:
            self._bus.emit(OrphanKilled(pid=each.pid, program=each.name, rss_bytes=each.rss_bytes or None))
        return len(family)
