"""A process that executes commands from its input, and what its process tree costs."""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import msgspec
from msgspec import Struct

from longstop.errors import UsageError
from longstop.model.scraper_report import Usage
from longstop.process.processes import Identity, is_alive
from tests.process_tree import tree, tree_cpu_seconds, tree_usage

ANSWER_WITHIN = 60.0
END_WITHIN = 20.0
#: What a process that has ended may take to vanish from the list of processes.
GONE_WITHIN = 10.0


class Cost(Struct, frozen=True, kw_only=True):
    """What an order took."""

    captures: int
    seconds: float
    #: Of the whole tree: Python, the driver, and every process of the browser, including those that have ended.
    cpu_seconds: float

    @property
    def captures_per_cpu_second(self) -> float:
        return self.captures / self.cpu_seconds

    def against(self, other: "Cost") -> float:
        """Return how many captures it brings for one of the other's, for the same processor time."""
        return self.captures_per_cpu_second / other.captures_per_cpu_second


class MeasuredProcess:
    """One process at work. It answers every order, a line of JSON, with a line of JSON."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self._process = process
        self._seen: set[Identity] = set()

    async def do(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Give an order, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                line = await self._process.stdout.readline()
        except TimeoutError as error:
            raise UsageError(f"{self.name} did not answer {order} within {ANSWER_WITHIN:g} s") from error
        if not line:
            raise UsageError(f"{self.name} ended at {order}; what it said is above")
        self._seen |= {each.identity for each in tree(self._process.pid)}
        answer: dict[str, Any] = msgspec.json.decode(line)
        return answer

    async def measured(self, order: Mapping[str, Any]) -> Cost:
        """Give an order, and return what it cost."""
        before, began = tree_cpu_seconds(self._process.pid), monotonic()
        answer = await self.do(order)
        seconds, cpu_seconds = monotonic() - began, tree_cpu_seconds(self._process.pid) - before
        return Cost(captures=answer["captures"], seconds=seconds, cpu_seconds=cpu_seconds)

    def usage(self) -> Usage:
        """Return the memory of the process tree."""
        return tree_usage(self._process.pid)

    async def processes_left(self) -> int:
        """Return how many processes that were ever seen below it live on after its end."""
        deadline = monotonic() + GONE_WITHIN
        while True:
            left = sum(map(is_alive, self._seen))
            if not left or monotonic() > deadline:
                return left
            await asyncio.sleep(0.1)


@asynccontextmanager
async def measured_process(name: str, command: Iterable[str]) -> AsyncIterator[MeasuredProcess]:
    """Start a process; it exits when its input ends."""
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)
    try:
        yield MeasuredProcess(name, process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(END_WITHIN):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
