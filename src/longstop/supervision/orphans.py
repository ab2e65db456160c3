"""Orphans of dead children: they come to the supervisor, which ends them and waits for them.

The kernel hands a process whose parent died to the next one above that has asked for it. A child's browser does not
die with it, and where nobody waits for the dead they fill the table of processes.
"""

import asyncio
import os
from collections.abc import Callable, Collection
from contextlib import suppress

from longstop.fetching.browser import processes
from longstop.fetching.browser.events import OrphanKilled
from longstop.telemetry.bus import Bus

LOOK_SECONDS = 1.0


class OrphanSweep:
    """For a process that starts nothing but the children it names: all others that it is a parent of are orphans."""

    def __init__(self, own_pids: Callable[[], Collection[int] | None], bus: Bus) -> None:
        self._own_pids = own_pids
        self._bus = bus
        processes.become_subreaper()

    async def run(self) -> None:
        """Look for orphans until cancelled."""
        while True:
            await self.sweep()
            await asyncio.sleep(LOOK_SECONDS)

    async def sweep(self) -> int:
        """End the orphans that there are now, and wait for the dead; return how many were ended."""
        people = await asyncio.to_thread(processes.everybody)
        # Asked after the look: who was born since is not in it, and who was being born is nobody's orphan.
        own = self._own_pids()
        if own is None:
            return 0
        adopted = [each for each in people if each.parent == os.getpid() and each.pid not in own]
        ended = 0
        for orphan in adopted:
            if orphan.state == "Z":
                _wait_for(orphan.pid)
            else:
                ended += self._end(orphan, people)
        return ended

    def _end(self, orphan: processes.Process, people: Collection[processes.Process]) -> int:
        family = [each for each in processes.family(orphan.identity, people) if processes.kill(each.identity)]
        for each in family:
            self._bus.emit(OrphanKilled(pid=each.pid, program=each.name, rss_bytes=each.rss_bytes or None))
        return len(family)


def _wait_for(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
