"""Control groups as the kernel shows them: where we are in them, and what they leave us. Version 1, 2, or none.

`root` is where `/proc` and the mounts are looked for, so that a test can lay out any machine in a folder.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

ROOT = Path("/")
#: The name of version 2's one hierarchy among the controllers of version 1.
UNIFIED = ""
#: Version 1 writes "no limit" as the largest number of pages.
_NO_LIMIT = 1 << 60


class _Mount(Struct, frozen=True, kw_only=True):
    folder: Path
    #: Which part of the hierarchy is mounted there.
    shown: PurePosixPath
    controllers: frozenset[str]


class _Files(Struct, frozen=True, kw_only=True):
    """What a version calls the same things."""

    limit: str
    usage: str
    #: Pages of files, which the kernel gives back by itself, as `memory.stat` names them.
    reclaimable: str


_NAMES = {
    UNIFIED: _Files(limit="memory.max", usage="memory.current", reclaimable="inactive_file"),
    "memory": _Files(limit="memory.limit_in_bytes", usage="memory.usage_in_bytes", reclaimable="total_inactive_file"),
}


def own_folder(controller: str, root: Path = ROOT) -> Path | None:
    """Return the folder of our own group in a hierarchy; `None` where the machine has none, or hides it."""
    return next(_own_and_above(controller, root), None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Return how much memory the container that we are in may take; `None` for as much as the machine has."""
    limits = [limit for names, folder in _memory_folders(root) if (limit := _limit(folder, names)) is not None]
    return min(limits, default=None)


def available_bytes(root: Path = ROOT) -> int:
    """Return the memory that is left for us, on the machine and in the container."""
    left = [_machine_has(root)]
    for names, folder in _memory_folders(root):
        limit, usage = _limit(folder, names), _number(folder / names.usage)
        if limit is not None and usage is not None:
            left.append(max(0, limit - (usage - _reclaimable(folder, names))))
    return min(left)


def _memory_folders(root: Path) -> Iterator[tuple[_Files, Path]]:
    for controller, names in _NAMES.items():
        for folder in _own_and_above(controller, root):
            yield names, folder


def _own_and_above(controller: str, root: Path) -> Iterator[Path]:
    """Yield our group and those that hold it, as far as they are mounted."""
    own = _own_path(controller, root)
    mount = _mount(controller, root)
    if own is None or mount is None:
        return
    # A container may see its group's path without its mount, or the other way round: then the mount's top is ours.
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
    mounts = (_read_mount(line, root) for line in _lines(root / "proc/self/mountinfo"))
    return next((each for each in mounts if each is not None and controller in each.controllers), None)


def _read_mount(line: str, root: Path) -> _Mount | None:
    before, _, after = line.partition(" - ")
    place, kind = before.split(), after.split()
    if len(place) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
        return None
    return _Mount(
        folder=root / place[4].lstrip("/"),
        shown=PurePosixPath(place[3]),
        controllers=frozenset({UNIFIED}) if kind[0] == "cgroup2" else frozenset(kind[2].split(",")),
    )


def _limit(folder: Path, names: _Files) -> int | None:
    limit = _number(folder / names.limit)
    return limit if limit is not None and limit < _NO_LIMIT else None


def _reclaimable(folder: Path, names: _Files) -> int:
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name == names.reclaimable:
            return int(value)
    return 0


def _machine_has(root: Path) -> int:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _NO_LIMIT  # a kernel that does not say cannot be a reason to refuse


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):  # "max" is no number, and no limit
        return int(path.read_text(encoding="ascii"))
    return None


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []
