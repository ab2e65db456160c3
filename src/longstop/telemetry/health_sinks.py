"""Sinks whose state the health page shows: recent rates, open breakers, exhausted resources."""

import asyncio
from collections import deque
from collections.abc import Collection
from threading import Lock

from msgspec.structs import replace

from longstop.clock import Clock, Moment
from longstop.model.scraper_report import BreakerNote, Rates
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry, matches, processes, sources

#: Windows of the rates, in seconds.
MINUTE, HOUR = 60.0, 3600.0
#: Latencies of the latest updates to remember.
MAX_LATENCIES = 500
#: Open breakers to remember.
MAX_BREAKERS = 1_000
#: A resource counts as recovered when nothing was postponed for so long. Loops try more often than that.
RECOVERED_AFTER_SECONDS = 15.0
CHECK_SECONDS = 5.0


class _Window:
    """Counts within a sliding window, in 60 slots: its size does not depend on the number of events."""

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
    """Counts failures, successful polls and listings, and stored updates. Events may come from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._errors, self._errors_of_hour = _Window(MINUTE), _Window(HOUR)
        self._polls, self._updates = _Window(MINUTE), _Window(MINUTE)
        self._latencies: deque[int] = deque(maxlen=MAX_LATENCIES)
        self._last_success: Moment | None = None

    def take(self, event: Telemetry) -> None:
        with self._lock:
            now = Moment.of(self._clock)
            match event:
                case matches.PollFailed() | sources.ListingFailed() | processes.TaskFailed():
                    self._errors.add(now.monotonic)
                    self._errors_of_hour.add(now.monotonic)
                case matches.PollSucceeded() | sources.ListingRead():
                    self._polls.add(now.monotonic)
                    self._last_success = now
                case matches.UpdateStored():
                    self._updates.add(now.monotonic)
                    if event.latency_ms is not None:
                        self._latencies.append(event.latency_ms)

    def rates(self) -> Rates:
        with self._lock:
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


class OpenBreakers:
    """Remembers what is paused and why: open breakers, broken layouts, sites that sent Retry-After."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: By scope and subject, with the monotonic time of the next attempt.
        self._notes: dict[tuple[str, str], tuple[BreakerNote, float | None]] = {}

    def take(self, event: Telemetry) -> None:
        match event:
            case sources.CircuitOpened():
                self._note(event.scope, event.subject, "open", event.reason, event.seconds)
            case sources.CircuitHalfOpened():
                self._note(event.scope, event.subject, "half_open", "", None)
            case sources.LayoutBroken():
                reason = f"{event.failures} pages in a row could not be parsed"
                self._note(event.scope, event.subject, "open", reason, None)
            case sources.SourceRateLimited():
                self._note("rest", event.source, "open", "the site sent Retry-After", event.seconds)
            case sources.CircuitClosed() | sources.LayoutRecovered():
                self._notes.pop((event.scope, event.subject), None)
            case matches.MatchPhaseChanged(after="archived"):
                self._notes.pop(("match", event.ref), None)

    def notes(self) -> tuple[BreakerNote, ...]:
        """Return what is paused now. No event ends a Retry-After: it is dropped when its time is over."""
        now = Moment.of(self._clock)
        for key, (note, until) in list(self._notes.items()):
            if note.scope == "rest" and until is not None and until <= now.monotonic:
                del self._notes[key]
        return tuple(_timed(note, until, now) for note, until in self._notes.values())

    def _note(self, scope: str, subject: str, state: str, reason: str, seconds: float | None) -> None:
        key, now = (scope, subject), Moment.of(self._clock)
        if key not in self._notes and len(self._notes) >= MAX_BREAKERS:
            return
        note = BreakerNote(scope=scope, subject=subject, state=state, since=now.wall, reason=reason)
        if key in self._notes:
            known, _ = self._notes[key]
            note = replace(note, since=known.since, reason=reason or known.reason)
        self._notes[key] = (note, None if seconds is None else now.monotonic + seconds)


def _timed(note: BreakerNote, until: float | None, now: Moment) -> BreakerNote:
    """Return a note with its remaining time, computed for each call because the wall clock may have been set."""
    if until is None:
        return note
    left = max(0.0, round(until - now.monotonic, 3))
    return replace(note, until=now.on_the_wall(until), left_seconds=left)


class DamagedMatches:
    """Remembers which matches are not polled because what is stored of them is damaged."""

    def __init__(self) -> None:
        self._refs: dict[str, None] = {}

    def take(self, event: Telemetry) -> None:
        match event:
            case processes.StoreFailed(error_type="StoreDamaged") if len(self._refs) < MAX_BREAKERS:
                self._refs[event.ref] = None
            case matches.MatchClaimed():
                self._refs.pop(event.ref, None)

    def refs(self) -> tuple[str, ...]:
        return tuple(sorted(self._refs))  # a copy: events may come from any thread


class ExhaustionSink:
    """Remembers when work was last postponed for each resource."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._postponed_at: dict[str, float] = {}

    def take(self, event: Telemetry) -> None:
        if isinstance(event, processes.PollPostponed):
            self._postponed_at[event.resource] = self._clock.monotonic()

    def now(self) -> tuple[str, ...]:
        """Return the exhausted resources in alphabetical order."""
        since = self._clock.monotonic() - RECOVERED_AFTER_SECONDS
        return tuple(sorted(resource for resource, at in self._postponed_at.items() if at > since))


class ExhaustionReporter:
    """Emits one event when a resource ran out, and one when it recovered."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._reported: frozenset[str] = frozenset()

    def report(self, exhausted: Collection[str]) -> None:
        before, self._reported = self._reported, frozenset(exhausted)
        for resource in sorted(self._reported - before):
            self._bus.emit(processes.OutOfResources(resource=resource))
        for resource in sorted(before - self._reported):
            self._bus.emit(processes.ResourcesRecovered(resource=resource))

    async def run(self, sink: ExhaustionSink) -> None:
        while True:
            self.report(sink.now())
            await asyncio.sleep(CHECK_SECONDS)
