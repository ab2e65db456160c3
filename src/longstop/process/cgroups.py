"""Control groups (v1, v2 or none): the memory limit of the container, and one group per child, killed as a whole.

`root` is where `/proc` and the mounts are read, so that a test can lay out any machine in a folder.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

ROOT = Path("/")
#: The name of the single v2 hierarchy, among the v1 controllers.
UNIFIED = ""
#: v1 writes "no limit" as the largest number of pages.
_NO_LIMIT = 1 << 60
#: Attempts to empty or remove a group while processes still start or exit in it.
_ATTEMPTS = 20
_ATTEMPT_SECONDS = 0.01


class _Mount(Struct, frozen=True, kw_only=True):
    folder: Path
    #: The part of the hierarchy that is mounted there.
    shown: PurePosixPath
    controllers: frozenset[str]


class _MemoryFiles(Struct, frozen=True, kw_only=True):
    """File names of one version."""

    limit: str
    usage: str
    #: The field of `memory.stat` with page cache that the kernel reclaims by itself.
    reclaimable: str


_MEMORY_FILES = {
    UNIFIED: _MemoryFiles(limit="memory.max", usage="memory.current", reclaimable="inactive_file"),
    "memory": _MemoryFiles(
        limit="memory.limit_in_bytes", usage="memory.usage_in_bytes", reclaimable="total_inactive_file"
    ),
}


def own_folder(controller: str, root: Path = ROOT) -> Path | None:
    """Return the folder of this process's group in a hierarchy; `None` if the machine has none or hides it."""
    return next(_own_and_ancestors(controller, root), None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the memory limit of the surrounding container; `None` without one."""
    limits = [limit for names, folder in _memory_folders(root) if (limit := _limit(folder, names)) is not None]
    return min(limits, default=None)


def available_bytes(root: Path = ROOT) -> int:
    """Return the memory available to this process: the minimum over the machine and all surrounding groups."""
    available = [_machine_available(root)]
    for names, folder in _memory_folders(root):
        limit, usage = _limit(folder, names), _read_number(folder / names.usage)
        if limit is not None and usage is not None:
            available.append(max(0, limit - (usage - _reclaimable(folder, names))))
    return min(available)


class ChildGroup:
    """The group of one child. Without a folder it is inactive, and the supervisor walks the process tree instead.

    A v2 group is killed in one step. A v1 group is frozen first, so that its processes cannot fork during the kill.
    """

    def __init__(self, folder: Path | None = None, *, is_freezer: bool = False) -> None:
        self._folder = folder
        self._is_freezer = is_freezer

    @property
    def is_active(self) -> bool:
        return self._folder is not None

    def add(self, pid: int) -> None:
        """Move a process into the group; its later descendants belong to it too."""
        if self._folder is not None:
            with suppress(OSError):  # the process is gone, or may not be moved: the tree walk finds it
                _write(self._folder / "cgroup.procs", str(pid))

    def pids(self) -> frozenset[int]:
        """Return the members."""
        if self._folder is not None:
            with suppress(OSError, ValueError):
                return frozenset(map(int, (self._folder / "cgroup.procs").read_text(encoding="ascii").split()))
        return frozenset()

    def kill(self) -> None:
        """Send SIGKILL to all members, without waiting for their exit."""
        if self._folder is None:
            return
        if not self._is_freezer:
            try:
                _write(self._folder / "cgroup.kill", "1")
            except OSError:  # kernels before 5.14 have no such file
                self._kill_members()
            return
        state = self._folder / "freezer.state"
        with suppress(OSError):
            _write(state, "FROZEN")
        self._kill_members()
        with suppress(OSError):
            _write(state, "THAWED")  # a frozen process receives the signal only now

    def remove(self) -> bool:
        """Remove the group if it is empty; return whether it is gone."""
        if self._folder is None:
            return True
        with suppress(OSError):  # its last members are still exiting
            self._folder.rmdir()
        return not self._folder.exists()

    async def empty(self) -> None:
        """Kill all members, including those that start meanwhile."""
        for _ in range(_ATTEMPTS):
            self.kill()
            if not self.pids():
                return
            await asyncio.sleep(_ATTEMPT_SECONDS)

    async def discard(self) -> None:
        """Remove the group as soon as its last member has exited."""
        for _ in range(_ATTEMPTS):
            if self.remove():
                return
            await asyncio.sleep(_ATTEMPT_SECONDS)

    def _kill_members(self) -> None:
        for pid in self.pids():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def create_group(name: str, root: Path = ROOT) -> ChildGroup:
    """Create a group below our own; one that an earlier run left is used again, with its members.

    Return an inactive group where the machine has no control groups or does not let us create one.
    """
    for controller in (UNIFIED, "freezer"):
        own = own_folder(controller, root)
        if own is None:
            continue
        with suppress(OSError):
            folder = own / name
            folder.mkdir(exist_ok=True)
            group = ChildGroup(folder, is_freezer=controller != UNIFIED)
            if os.access(folder / "cgroup.procs", os.W_OK):
                return group
            group.remove()
    return ChildGroup()


def _memory_folders(root: Path) -> Iterator[tuple[_MemoryFiles, Path]]:
    for controller, names in _MEMORY_FILES.items():
        for folder in _own_and_ancestors(controller, root):
            yield names, folder


def _own_and_ancestors(controller: str, root: Path) -> Iterator[Path]:
    """Yield our group and those around it, as far as they are mounted."""
    own = _own_path(controller, root)
    mount = _mount(controller, root)
    if own is None or mount is None:
        return
    # A container may see the path of its group without the mount, or the reverse: then the top of the mount is ours.
    below = own.relative_to(mount.shown) if own.is_relative_to(mount.shown) else PurePosixPath()
    folder = mount.folder / below
    while folder != mount.folder:
        yield folder
        folder = folder.parent
    yield folder


def _own_path(controller: str, root: Path) -> PurePosixPath | None:
    for line in _lines(root / "proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return PurePosixPath(path)
    return None


def _mount(controller: str, root: Path) -> _Mount | None:
    mounts = (_parse_mount(line, root) for line in _lines(root / "proc/self/mountinfo"))
    return next((each for each in mounts if each is not None and controller in each.controllers), None)


def _parse_mount(line: str, root: Path) -> _Mount | None:
    before, _, after = line.partition(" - ")
    place, kind = before.split(), after.split()
    if len(place) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
        return None
    return _Mount(
        folder=root / place[4].lstrip("/"),
        shown=PurePosixPath(place[3]),
        controllers=frozenset({UNIFIED}) if kind[0] == "cgroup2" else frozenset(kind[2].split(",")),
    )


def _limit(folder: Path, names: _MemoryFiles) -> int | None:
    limit = _read_number(folder / names.limit)
    return limit if limit is not None and limit < _NO_LIMIT else None


def _reclaimable(folder: Path, names: _MemoryFiles) -> int:
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name == names.reclaimable:
            return int(value)
    return 0


def _machine_available(root: Path) -> int:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _NO_LIMIT  # unknown: no reason to refuse anything


def _read_number(path: Path) -> int | None:
    with suppress(OSError, ValueError):  # "max" means no limit
        return int(path.read_text(encoding="ascii"))
    return None


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _write(path: Path, text: str) -> None:
    # Not `write_text`: that would create a file that the kernel does not have.
    with path.open("r+", encoding="ascii") as file:
        file.write(text)
