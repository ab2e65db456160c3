import asyncio

from longstop.telemetry.alerts import alert_of
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import (
    OutOfResources,
    PollPostponed,
    ProcessStopped,
    ResourcesRecovered,
    TaskFailed,
)
from longstop.telemetry.exhaustion import RECOVERED_AFTER_SECONDS, ExhaustionReporter, ExhaustionSink, failure_of
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink
from tests.readers import ManualClock


def postponed(resource: str) -> PollPostponed:
    return PollPostponed(resource=resource, subject="crex_M1")


def test_a_resource_is_exhausted_until_nothing_was_postponed_for_a_while() -> None:
    clock = ManualClock()
    sink = ExhaustionSink(clock)

    sink.take(postponed("processes"))
    clock.advance(10)
    sink.take(postponed("memory"))
    sink.take(ProcessStopped(process="scraper", pid=1, reported_by="scraper"))

    assert sink.now() == ("memory", "processes")
    clock.advance(RECOVERED_AFTER_SECONDS - 10)
    assert sink.now() == ("memory",)
    clock.advance(10)
    assert sink.now() == ()


def test_exhaustion_is_an_alert_with_an_end_and_one_postponed_poll_is_none() -> None:
    short, eased = alert_of(OutOfResources(resource="memory")), alert_of(ResourcesRecovered(resource="memory"))

    assert short is not None
    assert eased is not None
    assert (short.key, eased.key, eased.is_resolved) == (
        "resources.exhausted memory",
        "resources.exhausted memory",
        True,
    )
    assert alert_of(postponed("memory")) is None


def test_exhaustion_is_reported_once_and_so_is_recovery() -> None:
    emitted, sink = MemorySink(), ExhaustionSink(VirtualClock())

    async def scene() -> None:
        running = asyncio.ensure_future(ExhaustionReporter(Bus([emitted])).run(sink))
        for _ in range(6):
            sink.take(postponed("processes"))
            await asyncio.sleep(10)
        await asyncio.sleep(RECOVERED_AFTER_SECONDS + 10)
        running.cancel()

    run_virtual(scene())

    assert emitted.events == [OutOfResources(resource="processes"), ResourcesRecovered(resource="processes")]


def test_work_that_failed_of_exhaustion_is_no_bug() -> None:
    event = failure_of(RuntimeError("can't start new thread"), "weigh")

    assert event == PollPostponed(resource="processes", subject="weigh")
    assert isinstance(failure_of(RuntimeError("broken"), "weigh"), TaskFailed)
