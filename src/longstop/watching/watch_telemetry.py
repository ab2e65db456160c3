"""Telemetry of one watch. A condition that lasts is reported once."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from longstop.clock import Moment, to_iso
from longstop.errors import SourceError
from longstop.matches.source_client_and_poll_attempt import PollAttempt
from longstop.model.data_finding import Finding
from longstop.model.match import MatchRow, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.resilience.breaker import Transition
from longstop.resilience.poll_attempt_states import AttemptState, end_of
from longstop.resilience.taxonomy import kind_of
from longstop.sports.base import MatchState
from longstop.storage.base import Receipt
from longstop.telemetry.bus import Bus, report_breaker
from longstop.telemetry.events import matches
from longstop.watching.poll_intervals_and_frozen_pages import MINUTE, WITNESS, IntervalReason, Lag, PollInterval

#: A busy match alternates between these all the time; the changes are not reported.
_USUAL = frozenset({IntervalReason.BASELINE, IntervalReason.BUSY, IntervalReason.IMPORTANT})
#: The error window holds at most this many errors.
MAX_COUNTED = 200


class ErrorWindow:
    """A sliding minute. It reports once when the threshold is exceeded, and again only after a calm phase."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._seen: deque[tuple[float, str]] = deque(maxlen=MAX_COUNTED)
        self._is_reported = False

    def add(self, now: float, types: dict[str, int]) -> dict[str, int] | None:
        """Count the errors of one poll; return those of the last minute by type when too many are to be reported."""
        self._seen.extend((now, name) for name, times in types.items() for _ in range(times))
        while self._seen and now - self._seen[0][0] >= MINUTE:
            self._seen.popleft()
        is_burst = len(self._seen) > self._threshold
        is_news, self._is_reported = is_burst and not self._is_reported, is_burst
        return dict(sorted(Counter(name for _, name in self._seen).items())) if is_news else None


class WatchEvents:
    """Emits the events of one watch. It remembers what it has reported."""

    def __init__(self, bus: Bus, row: MatchRow, max_errors: int) -> None:
        self._bus = bus
        self._match_id = row.match_id
        #: The fields that all events about the match have.
        self._about: dict[str, Any] = {"match_id": row.match_id, "ref": str(row.ref)}
        self._errors = ErrorWindow(max_errors)
        self._interval: PollInterval | None = None
        self._frozen: Lag | None = None
        self._is_stale = False
        self._doubted_since: float | None = None

    def stored(self, receipt: Receipt) -> None:
        ops = [stored.event.op.value for stored in receipt.events]
        event = matches.UpdateStored(
            **self._about,
            inserted=ops.count("insert"),
            updated=ops.count("update"),
            voided=ops.count("void"),
            seq=receipt.match.seq,
            latency_ms=receipt.snapshot.update_latency_ms if receipt.snapshot else None,
        )
        self._bus.emit(event)

    def changes(self, before: MatchState, after: MatchState) -> None:
        """Report changes of phase, sync and findings."""
        if before.row.phase is not after.row.phase:
            self._phase_changed(before.row.phase, after)
        if before.sync is not after.sync and after.sync is SyncState.IN_SYNC:
            self._bus.emit(matches.MatchInSync(**self._about, events=len(after.events)))
        for finding in _new(after.findings, before.findings):
            event = matches.FindingOpened(**self._about, kind=finding.kind, place=finding.place, detail=finding.detail)
            self._bus.emit(event)
        for finding in _new(before.findings, after.findings):
            self._bus.emit(matches.FindingClosed(**self._about, kind=finding.kind, place=finding.place))

    def _phase_changed(self, before: Phase, after: MatchState) -> None:
        phase = after.row.phase
        self._bus.emit(matches.MatchPhaseChanged(**self._about, before=before, after=phase))
        if phase is Phase.COMPLETED:
            text = after.result.text if after.result else None
            self._bus.emit(matches.MatchFinished(**self._about, result=text))

    def failure(self, error: Exception, attempt: PollAttempt, reached: AttemptState | None = None) -> None:
        reached = reached or attempt.state
        about = error if isinstance(error, SourceError) else None
        event = matches.PollFailed(
            **self._about,
            error_type=type(error).__name__,
            error_message=str(error),
            request=about.request if about else "",
            reached=reached.value,
            outcome=end_of(reached, error).value,
            kind=kind_of(error).value,
            retries=about.retries if about else 0,
            bytes=attempt.bytes,
            busy_seconds=round(attempt.busy_seconds, 3),
            page=about.page if about else None,
        )
        self._bus.emit(event)

    def trust(self, doubt: str, now: float) -> None:
        """Report that answers are not believed, once while that lasts, and its end."""
        if doubt and self._doubted_since is None:
            self._doubted_since = now
            self._bus.emit(matches.MatchDoubted(**self._about, reason=doubt))
        elif not doubt and self._doubted_since is not None:
            since, self._doubted_since = self._doubted_since, None
            self._bus.emit(matches.MatchBelieved(**self._about, seconds=round(now - since, 1)))

    def breaker(self, transition: Transition | None) -> None:
        if transition is not None:
            report_breaker(self._bus, "match", transition, match_id=self._match_id)

    def errors(self, now: float, types: dict[str, int]) -> None:
        """Count the errors of one poll; report when there were too many within a minute."""
        burst = self._errors.add(now, types)
        if burst is not None:
            self._bus.emit(matches.ErrorRateHigh(**self._about, errors=sum(burst.values()), types=burst))

    def staleness(self, stale: MonitoringRecord | None, now: Moment) -> None:
        """Report that the match became stale; `None` while it is not."""
        was_stale, self._is_stale = self._is_stale, stale is not None
        if stale is None or was_stale:
            return
        event = matches.MatchStale(
            **self._about,
            age_seconds=round(stale.age_at(now) or 0.0, 1),
            last_update=to_iso(stale.last_poll_at) if stale.last_poll_at else None,
        )
        self._bus.emit(event)

    def interval(self, interval: PollInterval) -> None:
        """Report a new interval, unless it changes all the time during play."""
        last, self._interval = self._interval, interval
        is_usual = interval.reason in _USUAL and (last is None or last.reason in _USUAL)
        if interval != last and not is_usual:
            event = matches.CadenceChanged(
                **self._about, reason=interval.reason.value, interval_seconds=interval.seconds
            )
            self._bus.emit(event)

    def frozen(self, lag: Lag | None, now: float) -> None:
        if lag is not None and self._frozen is None:
            self._frozen = lag
            event = matches.SourceFrozen(
                **self._about,
                frozen=lag.behind.value,
                witness=WITNESS[lag.behind],
                seconds=round(now - lag.since, 1),
            )
            self._bus.emit(event)
        elif lag is None and self._frozen is not None:
            since, self._frozen = self._frozen.since, None
            self._bus.emit(matches.SourceResumed(**self._about, seconds=round(now - since, 1)))


def _new(findings: Iterable[Finding], others: Iterable[Finding]) -> list[Finding]:
    """Return the findings that the others do not have. One that is only worded otherwise is the same."""
    places = {(each.kind, each.place) for each in others}
    return sorted(
        (each for each in findings if (each.kind, each.place) not in places), key=lambda each: (each.kind, each.place)
    )
