"""The watch of the event loop, with a loop that is really blocked."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

import pytest

from longstop.supervision.event_loop_and_clock_watch import STALLED_SECONDS, LoopWatch
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import LoopResumed, LoopStalled
from tests.memory import MemorySink


def block_in_a_named_place(seconds: float) -> None:
    time.sleep(seconds)


@asynccontextmanager
async def watched(sink: MemorySink) -> AsyncIterator[LoopWatch]:
    watch = LoopWatch(Bus([sink]), monotonic, tick=0.05, stalled=0.5)
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.wait([task])


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 -- a thread does it
            await asyncio.sleep(0.01)


def stalls(sink: MemorySink) -> list[LoopStalled]:
    return [event for event in sink.events if isinstance(event, LoopStalled)]


async def test_a_loop_that_runs_is_hardly_late_and_nothing_is_reported() -> None:
    sink = MemorySink()
    async with watched(sink) as watch:
        before = watch.lag_seconds
        await eventually(lambda: watch.lag_seconds is not None)

    assert before is None
    assert sink.events == []


@pytest.mark.req("NFR-023")
async def test_a_blocked_loop_is_reported_once_with_its_stack() -> None:
    sink = MemorySink()
    async with watched(sink):
        await asyncio.sleep(0.1)

        async def culprit() -> None:
            block_in_a_named_place(2.0)

        await asyncio.create_task(culprit(), name="the culprit")
        told_meanwhile = len(stalls(sink))
        await eventually(lambda: any(isinstance(event, LoopResumed) for event in sink.events))

    assert told_meanwhile == 1
    (stall,) = stalls(sink)
    assert stall.stacks.startswith("the loop runs the culprit\nthread MainThread:")
    assert "block_in_a_named_place" in stall.stacks[:1500]
    assert "event loop watch" in stall.stacks
    (resumed,) = sink.named("loop.resumed")
    assert isinstance(resumed, LoopResumed)
    assert 1.5 <= resumed.seconds <= 20


async def test_every_stall_is_reported() -> None:
    sink = MemorySink()
    async with watched(sink):
        for number in (1, 2):
            await asyncio.sleep(0.1)
            block_in_a_named_place(1.5)
            await eventually(lambda number=number: len(sink.named("loop.resumed")) == number)  # type: ignore[misc]

    assert len(stalls(sink)) == 2


async def test_the_lag_is_how_late_the_loop_was() -> None:
    sink = MemorySink()
    async with watched(sink) as watch:
        await asyncio.sleep(0.1)
        block_in_a_named_place(0.3)
        await asyncio.sleep(0.2)
        lag = watch.lag_seconds

    assert lag is not None
    assert lag >= 0.2
    assert STALLED_SECONDS == 5.0
