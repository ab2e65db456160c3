import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Barrier, BrokenBarrierError

from longstop.model.scraper_report import Rates
from longstop.telemetry.alerts import alert_of
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchClaimed, MatchPhaseChanged, PollFailed, PollSucceeded, UpdateStored
from longstop.telemetry.events.processes import (
    OutOfResources,
    PollPostponed,
    ProcessStopped,
    ResourcesRecovered,
    StoreFailed,
    TaskFailed,
)
from longstop.telemetry.events.sources import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    LayoutBroken,
    LayoutRecovered,
    ListingFailed,
    ListingRead,
    SourceRateLimited,
)
from longstop.telemetry.health_sinks import (
    MAX_BREAKERS,
    RECOVERED_AFTER_SECONDS,
    DamagedMatches,
    ExhaustionReporter,
    ExhaustionSink,
    OpenBreakers,
    RateSink,
)
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink
from tests.readers import NOW, ManualClock

FAILED = PollFailed(match_id=1, ref="crex_M1", error_type="FetchTimeout", error_message="late")
GOOD = PollSucceeded(match_id=1, ref="crex_M1", seconds=0.1)
LISTED = ListingRead(source="crex", matches=1, changed=0, unreadable=0)


def stored(latency_ms: int | None) -> UpdateStored:
    return UpdateStored(match_id=1, ref="crex_M1", inserted=1, updated=0, voided=0, seq=1, latency_ms=latency_ms)


class MeetingClock(ManualClock):
    """Notices when two threads read the time at once: a sink that counts reads it while it counts."""

    def __init__(self) -> None:
        super().__init__()
        self._meeting = Barrier(2)
        self.have_met = False

    def monotonic(self) -> float:
        with suppress(BrokenBarrierError):
            self._meeting.wait(timeout=0.2)
            self.have_met = True
        return super().monotonic()


def test_threads_that_emit_and_read_at_once_do_so_one_after_the_other() -> None:
    """File writers report failures from their own threads, and the heartbeat reads on the loop."""
    clock = MeetingClock()
    sink = RateSink(clock)
    failure = TaskFailed.by(ValueError("x"), task="t")

    with ThreadPoolExecutor(2) as pool:
        emitting, reading = pool.submit(sink.take, failure), pool.submit(sink.rates)
        emitting.result()
        reading.result()

    assert not clock.have_met
    assert sink.rates().errors_last_minute == 1


def test_failures_of_every_kind_count_for_a_minute_and_for_an_hour() -> None:
    clock = ManualClock()
    sink = RateSink(clock)
    failures = (
        FAILED,
        ListingFailed(source="crex", error_type="FetchTimeout", error_message="late"),
        TaskFailed.by(ValueError("x"), task="t"),
    )
    for event in failures:
        sink.take(event)

    fresh = sink.rates()
    clock.advance(61)
    minute_later = sink.rates()
    clock.advance(3600)

    assert (fresh.errors_last_minute, fresh.errors_last_hour) == (3, 3)
    assert (minute_later.errors_last_minute, minute_later.errors_last_hour) == (0, 3)
    assert sink.rates().errors_last_hour == 0


def test_a_failure_counts_until_its_minute_is_over() -> None:
    clock = ManualClock()
    sink = RateSink(clock)

    sink.take(FAILED)
    clock.advance(59)

    assert sink.rates().errors_last_minute == 1


def test_polls_and_listings_count_and_the_last_success_is_remembered() -> None:
    clock = ManualClock()
    sink = RateSink(clock)

    sink.take(GOOD)
    sink.take(LISTED)
    sink.take(FAILED)
    clock.advance(5)

    assert (sink.rates().polls_last_minute, sink.rates().last_success_at) == (2, NOW)
    assert sink.rates().failure_ratio == 0.333


def test_latencies_are_of_the_latest_updates_that_had_one() -> None:
    sink = RateSink(ManualClock())
    for latency in (None, *range(1, 101)):
        sink.take(stored(latency))

    rates = sink.rates()

    assert (rates.updates_last_minute, rates.average_latency_ms, rates.p95_latency_ms) == (101, 50.5, 95.0)


def test_before_anything_happened_nothing_is_known_of_it() -> None:
    rates = RateSink(ManualClock()).rates()

    assert rates == Rates()
    assert (rates.average_latency_ms, rates.last_success_at, rates.failure_ratio) == (None, None, None)


def test_however_much_happens_it_takes_no_more_room() -> None:
    clock = ManualClock()
    sink = RateSink(clock)

    for _ in range(200):
        for _ in range(50):
            sink.take(GOOD)
        clock.advance(0.5)

    assert 5900 <= sink.rates().polls_last_minute <= 6100


TARGET_OPEN = CircuitOpened(scope="target", subject="crex.example", reason="5 failures", seconds=60.0)
LAYOUT_BROKEN = LayoutBroken(
    source="crex", resource="live", failures=11, error_message="no field", page=None, retry_in_seconds=300.0
)


def breakers_after(*events: Telemetry, clock: ManualClock | None = None) -> OpenBreakers:
    sink = OpenBreakers(clock or ManualClock())
    for event in events:
        sink.take(event)
    return sink


def test_an_open_breaker_is_shown_until_it_closes() -> None:
    (note,) = breakers_after(TARGET_OPEN).notes()

    assert (note.scope, note.subject, note.state, note.reason) == ("target", "crex.example", "open", "5 failures")
    assert (note.since, note.until) == (NOW, NOW + timedelta(seconds=60))
    assert breakers_after(TARGET_OPEN, CircuitClosed(scope="target", subject="crex.example", rejected=0)).notes() == ()


def test_a_half_open_breaker_keeps_its_reason_and_start() -> None:
    clock = ManualClock()
    sink = breakers_after(TARGET_OPEN, clock=clock)
    clock.advance(60)

    sink.take(CircuitHalfOpened(scope="target", subject="crex.example"))

    (note,) = sink.notes()
    assert (note.state, note.since, note.until, note.reason) == ("half_open", NOW, None, "5 failures")


def test_a_broken_layout_is_shown_until_it_recovers() -> None:
    assert [(note.scope, note.subject) for note in breakers_after(LAYOUT_BROKEN).notes()] == [("layout", "crex live")]
    assert breakers_after(LAYOUT_BROKEN, LayoutRecovered(source="crex", resource="live", failures=11)).notes() == ()


def test_a_rate_limit_expires_in_monotonic_time() -> None:
    clock = ManualClock()
    sink = breakers_after(SourceRateLimited(source="crex", seconds=30.0, reason="429"), clock=clock)

    clock.advance(29)
    during = sink.notes()
    clock.advance(1)

    assert [note.subject for note in during] == ["crex"]
    assert sink.notes() == ()


def test_an_archived_match_is_forgotten() -> None:
    opened = CircuitOpened(scope="match", subject="crex_M1", reason="refused", seconds=300.0)

    assert (
        breakers_after(
            opened, MatchPhaseChanged(match_id=1, ref="crex_M1", before="completed", after="archived")
        ).notes()
        == ()
    )


def test_the_number_of_breakers_is_bounded() -> None:
    many = [CircuitOpened(scope="match", subject=f"crex_{n}", reason="", seconds=1.0) for n in range(MAX_BREAKERS + 5)]

    assert len(breakers_after(*many).notes()) == MAX_BREAKERS


def test_the_remaining_time_ignores_a_jump_of_the_wall_clock() -> None:
    clock = ManualClock()
    sink = breakers_after(TARGET_OPEN, clock=clock)

    clock.advance(20)
    clock.leap(3600)

    (note,) = sink.notes()
    assert (note.left_seconds, note.until) == (40.0, clock.now() + timedelta(seconds=40))


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
    short, recovered = alert_of(OutOfResources(resource="memory")), alert_of(ResourcesRecovered(resource="memory"))

    assert short is not None
    assert recovered is not None
    assert (short.key, recovered.key, recovered.is_resolved) == (
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


def test_a_match_counts_as_damaged_until_it_is_claimed() -> None:
    sink = DamagedMatches()
    for ref, error_type in (("crex_2", "StoreDamaged"), ("crex_1", "StoreDamaged"), ("crex_3", "KeyError")):
        sink.take(StoreFailed(ref=ref, error_type=error_type, error_message="x"))
    before = sink.refs()

    sink.take(MatchClaimed(match_id=1, ref="crex_1", epoch=2))

    assert before == ("crex_1", "crex_2")
    assert sink.refs() == ("crex_2",)
