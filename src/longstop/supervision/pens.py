"""A pen: all that a child has started, held together by the kernel, so that nothing can run away from a kill.

Version 2 of control groups ends a pen in one stroke, version 1 freezes it first; without either, and without the
right to make groups, the pen is open, and the supervisor walks the family of the child instead.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from longstop.supervision.cgroups import ROOT, UNIFIED, own_folder

#: How often a pen is emptied that fills again meanwhile, or tried to be taken away.
_ROUNDS = 20
_ROUND_SECONDS = 0.01


class Pen(Protocol):
    """Where the processes of one child are."""

    def take(self, pid: int) -> None:
        """Put a process in, and with it all that it is going to start."""
        ...

    def pids(self) -> frozenset[int]:
        """Return who is in."""
        ...

    def kill(self) -> None:
        """End all who are in at this moment; it waits for nobody."""
        ...

    def close(self) -> bool:
        """Take the pen away if it is empty; return whether it is gone."""
        ...


class OpenPen:
    """Holds nobody."""

    def take(self, pid: int) -> None:
        pass

    def pids(self) -> frozenset[int]:
        return frozenset()

    def kill(self) -> None:
        pass

    def close(self) -> bool:
        return True


class UnifiedPen:
    """A group of version 2."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, pid: int) -> None:
        with suppress(OSError):  # it is gone already, or not ours to move: then the family is walked
            _write(self._folder / "cgroup.procs", str(pid))

    def pids(self) -> frozenset[int]:
        return _members(self._folder)

    def kill(self) -> None:
        try:
            _write(self._folder / "cgroup.kill", "1")
        except OSError:  # kernels before 5.14 have no such file
            _kill_members(self._folder)

    def close(self) -> bool:
        with suppress(OSError):  # the last of them are still on their way out
            self._folder.rmdir()
        return not self._folder.exists()


class FreezerPen(UnifiedPen):
    """A group of version 1: frozen, nobody can start anything while all are killed."""

    def kill(self) -> None:
        state = self._folder / "freezer.state"
        with suppress(OSError):
            _write(state, "FROZEN")
        _kill_members(self._folder)
        with suppress(OSError):
            _write(state, "THAWED")  # only then do they hear it


def make_pen(name: str, root: Path = ROOT) -> Pen:
    """Return a pen below our own group; one of that name that a former life left is used again, with who is in it."""
    for controller, kind in ((UNIFIED, UnifiedPen), ("freezer", FreezerPen)):
        own = own_folder(controller, root)
        if own is None:
            continue
        with suppress(OSError):
            folder = own / name
            folder.mkdir(exist_ok=True)
            pen = kind(folder)
            if os.access(folder / "cgroup.procs", os.W_OK):
                return pen
            pen.close()
    return OpenPen()


async def empty(pen: Pen) -> None:
    """End all who are in, also those who are born meanwhile, without holding up anybody else."""
    for _ in range(_ROUNDS):
        pen.kill()
        if not pen.pids():
            return
        await asyncio.sleep(_ROUND_SECONDS)


async def take_away(pen: Pen) -> None:
    """Take an empty pen away, as soon as the last who were in it have gone."""
    for _ in range(_ROUNDS):
        if pen.close():
            return
        await asyncio.sleep(_ROUND_SECONDS)


def _kill_members(folder: Path) -> None:
    for pid in _members(folder):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _members(folder: Path) -> frozenset[int]:
    with suppress(OSError, ValueError):
        return frozenset(map(int, (folder / "cgroup.procs").read_text(encoding="ascii").split()))
    return frozenset()


def _write(path: Path, text: str) -> None:
    # Not `write_text`: that would make a file where the kernel has none.
    with path.open("r+", encoding="ascii") as file:
        file.write(text)
