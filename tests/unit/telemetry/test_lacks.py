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
from longstop.telemetry.lacks import OVER_AFTER_SECONDS, Lacks, Shortage, failure_of
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink
from tests.readers import ManualClock


def lacked(resource: str) -> PollPostponed:
    return PollPostponed(resource=resource, subject="crex_M1")


def test_what_was_missed_is_lacking_until_nobody_has_missed_it_for_a_while() -> None:
    clock = ManualClock()
    sink = Lacks(clock)

    sink.take(lacked("processes"))
    clock.advance(10)
    sink.take(lacked("memory"))
    sink.take(ProcessStopped(process="scraper", pid=1, reported_by="scraper"))

    assert sink.now() == ("memory", "processes")
    clock.advance(OVER_AFTER_SECONDS - 10)
    assert sink.now() == ("memory",)
    clock.advance(10)
    assert sink.now() == ()


def test_a_lack_is_an_alert_with_an_end_and_a_single_look_is_none() -> None:
    short, eased = alert_of(OutOfResources(resource="memory")), alert_of(ResourcesRecovered(resource="memory"))

    assert short is not None
    assert eased is not None
    assert (short.key, eased.key, eased.is_resolved) == (
        "resources.exhausted memory",
        "resources.exhausted memory",
        True,
    )
    assert alert_of(lacked("memory")) is None


def test_a_shortage_is_told_once_and_so_is_its_end() -> None:
    said, lacks = MemorySink(), Lacks(VirtualClock())

    async def scene() -> None:
        following = asyncio.ensure_future(Shortage(Bus([said])).follow(lacks))
        for _ in range(6):
            lacks.take(lacked("processes"))
            await asyncio.sleep(10)
        await asyncio.sleep(OVER_AFTER_SECONDS + 10)
        following.cancel()

    run_virtual(scene())

    assert said.events == [OutOfResources(resource="processes"), ResourcesRecovered(resource="processes")]


def test_work_that_failed_of_a_lack_is_no_bug() -> None:
    told = failure_of(RuntimeError("can't start new thread"), "weigh")

    assert told == PollPostponed(resource="processes", subject="weigh")
    assert isinstance(failure_of(RuntimeError("broken"), "weigh"), TaskFailed)
