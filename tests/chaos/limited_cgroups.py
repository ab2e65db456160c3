"""Control groups with a limit, for tests: of whichever version has the controller on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from uuid import uuid4

from msgspec import Struct

from longstop.process.cgroup_limits_and_kill import UNIFIED, own_folder
from tests.prerequisites import unavailable

#: What each version calls a limit on memory; that on processes has one name.
MEMORY_LIMITS = {UNIFIED: "memory.max", "memory": "memory.limit_in_bytes"}
PIDS_LIMIT = "pids.max"
ROOT = Path("/")


class Hierarchy(Struct, frozen=True, kw_only=True):
    """Where groups with a controller can be made."""

    folder: Path
    #: `UNIFIED` for version 2, else the controller's own name.
    name: str

    def switch_on(self, controller: str) -> None:
        """Let groups below have the controller's files; version 1 has them always."""
        if self.name == UNIFIED:
            (self.folder / "cgroup.subtree_control").write_text(f"+{controller}")


def hierarchy_of(controller: str, root: Path = ROOT) -> Hierarchy | None:
    """Return where a controller is: its own hierarchy of version 1, else version 2's one; `None` for nowhere.

    A controller is in one of them at a time. A group of version 2 that has processes in it can have none with limits
    below it, but for the very top: there new ones are made, in either version.
    """
    own = _top(own_folder(controller, root))
    if own is not None:
        return Hierarchy(folder=own, name=controller)
    unified = _top(own_folder(UNIFIED, root))
    if unified is None or controller not in (unified / "cgroup.controllers").read_text(encoding="ascii").split():
        return None
    return Hierarchy(folder=unified, name=UNIFIED)


@contextmanager
def limited_group(controller: str, root: Path = ROOT) -> Iterator[tuple[Path, Hierarchy]]:
    """Create a group for a test and remove it; skip the test where that is forbidden, but fail in CI."""
    found = hierarchy_of(controller, root)
    if found is None:
        unavailable(f"this machine counts no {controller} by groups")
    folder = found.folder / f"longstop-test-{uuid4().hex[:8]}"
    try:
        found.switch_on(controller)
        folder.mkdir()
    except OSError as error:
        unavailable(f"no group can be made: {error}")
    yield folder, found
    _take_away(folder)


@contextmanager
def memory_group_of(limit_bytes: int) -> Iterator[Path]:
    """Create a group with this memory limit."""
    with limited_group("memory") as (folder, found):
        (folder / MEMORY_LIMITS[found.name]).write_text(str(limit_bytes))
        if (swap := folder / "memory.swap.max").exists():  # version 2 counts it apart, and there is nowhere to flee to
            swap.write_text("0")
        yield folder


@contextmanager
def pids_group_of(limit: int) -> Iterator[Path]:
    """Create a group for at most this many processes; the file `PIDS_LIMIT` in it changes the limit."""
    with limited_group("pids") as (folder, _):
        (folder / PIDS_LIMIT).write_text(str(limit))
        yield folder


def _top(folder: Path | None) -> Path | None:
    """Return the highest group that is mounted above a folder."""
    while folder is not None and (folder.parent / "cgroup.procs").exists():
        folder = folder.parent
    return folder


def _take_away(folder: Path) -> None:
    for _ in range(100):
        with suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            return
        sleep(0.05)  # those that were killed are on their way out
