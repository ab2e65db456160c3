from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

from longstop.model.rates import Rates
from longstop.telemetry.events.matches import PollFailed, PollSucceeded, UpdateStored
from longstop.telemetry.events.processes import TaskFailed
from longstop.telemetry.events.sources import ListingFailed, ListingRead
from longstop.telemetry.rate import RateSink
from tests.readers import NOW, ManualClock

FAILED = PollFailed(match_id=1, ref="crex_M1", error_type="FetchTimeout", error_message="late")
GOOD = PollSucceeded(match_id=1, ref="crex_M1", seconds=0.1)
LISTED = ListingRead(source="crex", matches=1, changed=0, unreadable=0)


def stored(latency_ms: int | None) -> UpdateStored:
    return UpdateStored(match_id=1, ref="crex_M1", inserted=1, updated=0, voided=0, seq=1, latency_ms=latency_ms)


class MeetingClock(ManualClock):
    """Notices when two threads ask for the time at once: whoever counts does so in the middle of it."""

    def __init__(self) -> None:
        super().__init__()
        self._meeting = Barrier(2)
        self.have_met = False

    def monotonic(self) -> float:
        with suppress(BrokenBarrierError):
            self._meeting.wait(timeout=0.2)
            self.have_met = True
        return super().monotonic()


def test_threads_that_tell_and_read_at_once_do_so_one_after_the_other() -> None:
    """Writers of files tell of their failures from threads of their own, and the beat reads on the loop."""
    clock = MeetingClock()
    sink = RateSink(clock)
    failure = TaskFailed.by(ValueError("x"), task="t")

    with ThreadPoolExecutor(2) as pool:
        telling, reading = pool.submit(sink.take, failure), pool.submit(sink.rates)
        telling.result()
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


def test_good_looks_and_listings_count_and_the_last_one_is_remembered() -> None:
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
