"""Control groups: the memory limit of the container (v1 or v2), and one v2 group per child, killed as a whole.

Hierarchies are expected where systemd and container runtimes mount them. `root` is where they and `/proc` are read, so
that a test can lay out any machine in a folder.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

ROOT = Path("/")
_MOUNTS = "sys/fs/cgroup"
#: The name of the single v2 hierarchy, among the v1 controllers.
UNIFIED = ""
#: v1 writes "no limit" as the largest number of pages.
_NO_LIMIT = 1 << 60
#: Attempts to empty or remove a group while processes still start or exit in it.
_ATTEMPTS = 20
_ATTEMPT_SECONDS = 0.01
#: Kills all members in one step; kernels before 5.14 do not have it.
_KILL_FILE = "cgroup.kill"


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
    """The v2 group of one child. Without a folder it is inactive, and the supervisor walks the process tree instead."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def add(self, pid: int) -> None:
        """Move a process into the group; its later descendants belong to it too."""
        if self.folder is not None:
            with suppress(OSError):  # the process is gone, or may not be moved: the tree walk finds it
                _write(self.folder / "cgroup.procs", str(pid))

    def pids(self) -> frozenset[int]:
        if self.folder is not None:
            with suppress(OSError, ValueError):
                return frozenset(map(int, (self.folder / "cgroup.procs").read_text(encoding="ascii").split()))
        return frozenset()

    def kill(self) -> None:
        """Send SIGKILL to all members, without waiting for their exit."""
        if self.folder is not None:
            with suppress(OSError):  # it is gone
                _write(self.folder / _KILL_FILE, "1")

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
            if self.folder is None or not self.folder.exists():
                return
            with suppress(OSError):  # its last members are still exiting
                self.folder.rmdir()
            await asyncio.sleep(_ATTEMPT_SECONDS)


def create_group(name: str, root: Path = ROOT) -> ChildGroup:
    """Create a group below our own; one that an earlier run left is used again, with its members.

    Return an inactive group where the machine has no v2 hierarchy, an older kernel, or does not let us create one.
    """
    own = own_folder(UNIFIED, root)
    if own is None:
        return ChildGroup()
    folder = own / name
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        if os.access(folder / "cgroup.procs", os.W_OK) and os.access(folder / _KILL_FILE, os.W_OK):
            return ChildGroup(folder)
        folder.rmdir()
    return ChildGroup()


def _memory_folders(root: Path) -> Iterator[tuple[_MemoryFiles, Path]]:
    for controller, names in _MEMORY_FILES.items():
        for folder in _own_and_ancestors(controller, root):
            yield names, folder


def _own_and_ancestors(controller: str, root: Path) -> Iterator[Path]:
    """Yield our group and those around it, as far as they are visible."""
    own = next((path for name, path in _own_paths(root) if name == controller), None)
    if own is None:
        return
    mount = root / _MOUNTS / (controller or "unified")
    if controller == UNIFIED and not mount.is_dir():
        mount = root / _MOUNTS  # without v1 beside it
    # A container may see the path of its group, but not the folder, or the reverse: then the top of the mount is ours.
    folder = mount if ".." in own else mount / own.lstrip("/")
    for each in (folder, *folder.parents):
        if each.is_dir():
            yield each
        if each == mount:
            return


def _own_paths(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the controllers, and the path of our group in the hierarchy of each."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


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
