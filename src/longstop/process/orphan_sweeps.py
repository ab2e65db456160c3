"""Cleanup of orphans: processes that longstop started and that no living longstop process owns.

Two sweeps find them. `OrphanSweep` runs in the supervisor, which adopts what a dead child leaves behind: a browser does
not die with its scraper, and unreaped zombies fill the process table. `sweep_browsers` runs in the scraper and finds
browsers that an earlier scraper of this node left, by the registry on disk and by the mark in their environment.

Neither touches a process that cannot be shown to be ours. A browser that something else started has no registry entry
and no mark; the init process of a container adopts processes that longstop has never seen.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from longstop.process import processes
from longstop.process.browser_registry_and_temp_files import SCRATCH_PREFIX, Registry, RegistryEntry
from longstop.process.processes import ZOMBIE, Identity, Process
from longstop.settings import BEAT_FD_VARIABLE
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import OrphanKilled

SWEEP_SECONDS = 1.0
#: Name prefixes of profile directories; nothing else is ever removed.
PROFILE_PREFIXES = ("playwright_chromiumdev_profile-", "longstop-profile-")
_PROFILE_ARGUMENT = "--user-data-dir="
#: The variable through which a child and its descendants know the data directory.
_DATA_VARIABLE = "LONGSTOP_DATA"


class OrphanSweep:
    """Kills what the children of this supervisor left behind, and reaps every zombie that it adopted.

    Create it before the first child starts: processes that are children of this one by then are not ours. The program
    that became the supervisor by `exec` may have started them.
    """

    def __init__(self, own_pids: Callable[[], Collection[int]], bus: Bus, *, data: Path, node: str) -> None:
        self._own_pids = own_pids
        self._bus = bus
        self._data = str(data.absolute())
        self._node = node
        processes.become_subreaper()
        self._foreign = frozenset(each.identity for each in processes.list_processes() if each.parent == os.getpid())
        #: Processes seen below a living child. Chromium overwrites the environment that would identify them.
        self._descendants: frozenset[Identity] = frozenset()

    async def run(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> int:
        """Kill the present orphans and reap zombies; return how many were killed."""
        everything = await asyncio.to_thread(processes.list_processes)
        # Read after the list: a child that started in between is not in the list.
        own = self._own_pids()
        below = [each for each in everything if each.parent == os.getpid()]
        self._remember(everything, [each for each in below if each.pid in own])
        adopted = [each for each in below if each.pid not in own]
        for zombie in (each for each in adopted if each.state == ZOMBIE):
            processes.reap_zombie(zombie)
        # In a thread: reading the environment of a process that hangs in the kernel blocks.
        orphans = await asyncio.to_thread(lambda: [each for each in adopted if self._is_orphan(each)])
        return sum(self._kill_tree(orphan, everything) for orphan in orphans)

    def _remember(self, everything: Collection[Process], children: Iterable[Process]) -> None:
        seen = {each.identity for child in children for each in processes.process_tree(child.identity, everything)}
        self._descendants = (self._descendants | seen) & {each.identity for each in everything}

    def _is_orphan(self, adopted: Process) -> bool:
        if adopted.state == ZOMBIE or adopted.identity in self._foreign:
            return False
        return adopted.identity in self._descendants or self._is_marked(adopted.pid)

    def _is_marked(self, pid: int) -> bool:
        """Return whether a process has the mark of our node's browsers, or the variables of our children."""
        mark = processes.browser_mark(pid)
        if mark is not None:
            return mark.partition(":")[0] == self._node
        # The directory alone is not enough: a container sets it for every process, also for an operator's backup.
        is_supervised = processes.environment_variable(pid, BEAT_FD_VARIABLE) is not None
        return is_supervised and processes.environment_variable(pid, _DATA_VARIABLE) == self._data

    def _kill_tree(self, orphan: Process, everything: Collection[Process]) -> int:
        tree = processes.process_tree(orphan.identity, everything)
        killed = [each for each in tree if processes.kill(each.identity)]
        for each in killed:
            self._bus.emit(OrphanKilled(pid=each.pid, program=each.name, rss_bytes=each.rss_bytes or None))
        return len(killed)


def sweep_browsers(registry: Registry) -> list[Process]:
    """Kill every orphaned browser of this node, remove its profile, and return the killed processes."""
    everything = processes.list_processes()
    killed: dict[int, Process] = {}
    for entry in registry:
        if not registry.is_owned(entry.mark):
            _kill(_remains_of(entry, registry, everything), killed)
            remove_profile(entry.profile)
            registry.forget(entry.mark)
    for process in everything:
        mark = processes.browser_mark(process.pid)
        if mark is not None and registry.is_ours(mark) and not registry.is_owned(mark):
            profile = profile_of(process.pid)
            _kill(processes.process_tree(process.identity, everything), killed)
            remove_profile(profile)
    return list(killed.values())


def profile_of(pid: int) -> str:
    """Return the profile directory that a browser was started with; empty if it names none."""
    arguments = (each for each in processes.command_line(pid) if each.startswith(_PROFILE_ARGUMENT))
    return next(arguments, "").removeprefix(_PROFILE_ARGUMENT)


def remove_profile(profile: str) -> None:
    """Remove a profile directory if longstop or Playwright created it."""
    path = Path(profile)
    root = Path(tempfile.gettempdir())
    is_in_place = path.parent == root or (path.parent.parent == root and path.parent.name.startswith(SCRATCH_PREFIX))
    if profile and path.name.startswith(PROFILE_PREFIXES) and is_in_place:
        shutil.rmtree(path, ignore_errors=True)


def _remains_of(entry: RegistryEntry, registry: Registry, everything: list[Process]) -> list[Process]:
    if entry.boot != registry.boot:
        return []
    members = processes.process_tree(entry.identity, everything)
    if any(each.identity == entry.identity for each in members):
        return members
    # The first process is gone. Of its session, only processes that run the same program are certainly ours.
    return [each for each in members if each.name == entry.program]


def _kill(doomed: Iterable[Process], killed: dict[int, Process]) -> None:
    for each in doomed:
        if each.pid not in killed and processes.kill(each.identity):
            killed[each.pid] = each
