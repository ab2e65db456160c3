"""Loops that restart, and jumps of the wall clock."""

import asyncio

import pytest

from longstop.supervision.event_loop_and_clock_watch import JUMP_SECONDS, ClockJumpWatch
from longstop.supervision.supervisor import run_forever
from longstop.telemetry.alerts import alert_of
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import ClockJumped, PollPostponed, TaskEnded, TaskFailed
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink
from tests.readers import ManualClock


class Recorder:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)


def test_a_loop_that_returns_or_raises_is_reported_and_restarted() -> None:
    said, starts = Recorder(), []

    async def loop() -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) == 2:
            raise RuntimeError("broken")

    async def scene() -> None:
        going = asyncio.ensure_future(run_forever("weigh", loop, bus=Bus([said]), clock=VirtualClock()))
        await asyncio.sleep(0.35)
        going.cancel()

    run_virtual(scene())

    assert [round(at, 3) for at in starts] == [0, 0, 0.1, 0.3]
    assert [type(event) for event in said.events] == [TaskEnded, TaskFailed, TaskEnded, TaskEnded]
    assert {getattr(event, "task", None) for event in said.events} == {"weigh"}


def test_a_loop_that_keeps_failing_is_started_ever_more_rarely() -> None:
    starts = []

    async def loop() -> None:
        starts.append(asyncio.get_running_loop().time())

    async def scene() -> None:
        going = asyncio.ensure_future(run_forever("weigh", loop, bus=Bus(), clock=VirtualClock()))
        await asyncio.sleep(3600)
        going.cancel()

    run_virtual(scene())

    assert 360 <= len(starts) <= 380
    assert round(starts[-1] - starts[-2], 3) == 10


def test_a_loop_that_is_over_is_no_incident() -> None:
    said, over = Recorder(), []

    async def loop() -> None:
        over.append(True)

    run_virtual(run_forever("keep api", loop, bus=Bus([said]), clock=VirtualClock(), is_over=lambda: bool(over)))

    assert not said.events


def test_a_cancelled_loop_is_no_incident() -> None:
    said = Recorder()

    async def loop() -> None:
        await asyncio.sleep(60)

    async def scene() -> None:
        going = asyncio.ensure_future(run_forever("weigh", loop, bus=Bus([said]), clock=VirtualClock()))
        await asyncio.sleep(1)
        going.cancel()

    run_virtual(scene())

    assert not said.events


def test_a_loop_that_ends_with_a_foreign_cancellation_is_restarted() -> None:
    said, starts = Recorder(), []

    async def loop() -> None:
        starts.append(asyncio.get_running_loop().time())
        other = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(other.cancel)
        await other

    async def scene() -> None:
        going = asyncio.ensure_future(run_forever("weigh", loop, bus=Bus([said]), clock=VirtualClock()))
        await asyncio.sleep(0.05)
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)

    run_virtual(scene())

    assert len(starts) == 2
    assert [type(event) for event in said.events] == [TaskEnded, TaskEnded]


def test_a_loop_that_gets_no_thread_reports_it_and_goes_on() -> None:
    said, starts = Recorder(), []

    async def loop() -> None:
        starts.append(True)
        if len(starts) <= 3:
            raise RuntimeError("can't start new thread")
        await asyncio.Event().wait()

    async def scene() -> None:
        going = asyncio.ensure_future(run_forever("weigh", loop, bus=Bus([said]), clock=VirtualClock()))
        await asyncio.sleep(60)
        going.cancel()

    run_virtual(scene())

    assert said.events == [PollPostponed(resource="processes", subject="weigh")] * 3
    assert len(starts) == 4


pytestmark = pytest.mark.req("NFR-009")


@pytest.mark.parametrize("leap", [3600.0, -3600.0, JUMP_SECONDS])
def test_a_jump_of_the_wall_clock_is_reported_once(leap: float) -> None:
    clock, sink = ManualClock(), MemorySink()
    watch = ClockJumpWatch(clock, Bus([sink]))

    clock.advance(90)
    clock.leap(leap)
    watch.check()
    watch.check()

    assert sink.events == [ClockJumped(seconds=leap)]


def test_a_small_correction_of_the_clock_is_no_jump() -> None:
    clock, sink = ManualClock(), MemorySink()
    watch = ClockJumpWatch(clock, Bus([sink]))

    clock.advance(3600)
    clock.leap(JUMP_SECONDS - 0.1)
    watch.check()

    assert sink.events == []


def test_a_jump_is_an_alert_with_its_direction() -> None:
    ahead, back = alert_of(ClockJumped(seconds=3600.0)), alert_of(ClockJumped(seconds=-3600.0))

    assert ahead is not None
    assert back is not None
    assert (ahead.title, back.title) == (
        "The system clock jumped by +3600 s",
        "The system clock jumped by -3600 s",
    )
