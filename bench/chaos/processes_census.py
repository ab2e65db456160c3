"""Counts the processes of a stage all the time: who was ever there, who writes the store, who is left in the end."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic

import psutil

from bench.beside import beside
from bench.chaos.arena import Figures
from bench.frame import rounded
from longstop.fetching.browser.processes import Identity, Process, everybody, is_alive, mark_of

LOOK_EVERY = 0.25
#: What was ended may take so long to vanish.
GONE_WITHIN = 10.0


class Census:
    """Keeps the names of all who carry the stage's sign, and of all whom they have started."""

    def __init__(self) -> None:
        self.seen: set[Identity] = set()
        self.most_writers = 0
        self._data = Path()
        self._node = ""

    @asynccontextmanager
    async def taken(self, data: Path) -> AsyncIterator[None]:
        """Count while the block runs."""
        self._data, self._node = data, (data / "node-id").read_text(encoding="ascii").strip()
        async with beside(self._count()):
            yield

    async def lasting_zombies(self) -> int:
        """Return how many of them are dead, and nobody waits for them."""
        deadline = monotonic() + GONE_WITHIN
        while True:
            people = await asyncio.to_thread(everybody)
            dead = sum(each.state == "Z" for each in people if each.identity in self.seen)
            if not dead or monotonic() > deadline:
                return dead
            await asyncio.sleep(LOOK_EVERY)

    async def aftermath(self) -> Figures:
        """Return how many are left, and how long the last one took to go."""
        began = monotonic()
        while True:
            people = await asyncio.to_thread(everybody)
            left = {each.identity for each in people if self._has_sign(each)} | set(filter(is_alive, self.seen))
            seconds = monotonic() - began
            if not left or seconds > GONE_WITHIN:
                return {"processes": len(self.seen), "orphans": len(left), "gone_s": rounded(seconds, 1)}
            await asyncio.sleep(LOOK_EVERY)

    async def _count(self) -> None:
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(LOOK_EVERY)

    def _look(self) -> None:
        people = everybody()
        heads = [each for each in people if each.identity in self.seen or self._has_sign(each)]
        self.seen |= {each.identity for each in with_descendants(heads, people)}
        writers = [each for each in heads if each.name.startswith("python") and writes(each.pid, self._store)]
        self.most_writers = max(self.most_writers, len(writers))

    @property
    def _store(self) -> Path:
        return self._data / "matches.db"

    def _has_sign(self, process: Process) -> bool:
        """Return whether a living process names the data directory, or carries the node's mark as a browser does."""
        if process.state == "Z":
            return False
        mark = mark_of(process.pid)
        return data_of(process.pid) == str(self._data) or (mark or "").partition(":")[0] == self._node


def with_descendants(heads: Iterable[Process], people: Iterable[Process]) -> list[Process]:
    """Return these processes and all below them."""
    people, found = list(people), {each.pid for each in heads}
    while more := {each.pid for each in people if each.parent in found} - found:
        found |= more
    return [each for each in people if each.pid in found]


def data_of(pid: int) -> str | None:
    with suppress(psutil.Error):
        return psutil.Process(pid).environ().get("LONGSTOP_DATA")
    return None


def writes(pid: int, file: Path) -> bool:
    """Return whether a process has a file open for writing."""
    with suppress(psutil.Error):
        return any(each.path == str(file) and each.mode != "r" for each in psutil.Process(pid).open_files())
    return False
