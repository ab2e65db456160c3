"""The rate sink: what the last minute and the last hour saw, for the health page."""

from collections import deque
from threading import Lock

from longstop.clock import Clock, Moment
from longstop.model.rates import Rates
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import PollFailed, PollSucceeded, UpdateStored
from longstop.telemetry.events.processes import TaskFailed
from longstop.telemetry.events.sources import ListingFailed, ListingRead

#: Counts are kept by the second for a minute, by the minute for an hour.
MINUTE, HOUR = 60.0, 3600.0
#: Latencies of the latest updates.
MAX_LATENCIES = 500


class _Window:
    """Counts within a sliding time, in slots: however much happens, it takes no more room."""

    def __init__(self, seconds: float) -> None:
        self._slot = seconds / 60
        self._counts: deque[tuple[int, int]] = deque(maxlen=61)

    def add(self, now: float) -> None:
        slot = int(now / self._slot)
        if self._counts and self._counts[-1][0] == slot:
            slot, count = self._counts.pop()
            self._counts.append((slot, count + 1))
        else:
            self._counts.append((slot, 1))

    def count(self, now: float) -> int:
        first = int(now / self._slot) - 60
        return sum(count for slot, count in self._counts if slot > first)


class RateSink:
    """Counts failures, good looks and listings, and stored updates, whichever thread tells of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._errors, self._errors_of_hour = _Window(MINUTE), _Window(HOUR)
        self._polls, self._updates = _Window(MINUTE), _Window(MINUTE)
        self._latencies: deque[int] = deque(maxlen=MAX_LATENCIES)
        self._last_success: Moment | None = None

    def take(self, event: Telemetry) -> None:
        with self._lock:
            self._take(event)

    def _take(self, event: Telemetry) -> None:
        now = self._clock.monotonic()
        match event:
            case PollFailed() | ListingFailed() | TaskFailed():
                self._errors.add(now)
                self._errors_of_hour.add(now)
            case PollSucceeded() | ListingRead():
                self._polls.add(now)
                self._last_success = Moment.of(self._clock)
            case UpdateStored():
                self._updates.add(now)
                if event.latency_ms is not None:
                    self._latencies.append(event.latency_ms)
            case _:
                pass

    def rates(self) -> Rates:
        with self._lock:
            return self._rates()

    def _rates(self) -> Rates:
        now, ordered, success = self._clock.monotonic(), sorted(self._latencies), self._last_success
        return Rates(
            errors_last_minute=self._errors.count(now),
            errors_last_hour=self._errors_of_hour.count(now),
            polls_last_minute=self._polls.count(now),
            updates_last_minute=self._updates.count(now),
            average_latency_ms=round(sum(ordered) / len(ordered), 1) if ordered else None,
            p95_latency_ms=float(ordered[(len(ordered) * 95 - 1) // 100]) if ordered else None,
            last_success_at=success.wall if success else None,
            last_success_seconds=round(now - success.monotonic, 3) if success else None,
        )
