"""What a watch says of itself: from what happened to telemetry, each thing once."""

from datetime import datetime

from longstop.clock import to_iso
from longstop.errors import SourceError
from longstop.model.match import Phase
from longstop.resilience.breaker import Transition
from longstop.resilience.taxonomy import AttemptState, end_of
from longstop.sports.base import MatchState
from longstop.storage.base import Finding, MatchRow, Receipt
from longstop.telemetry.bus import Bus, report_breaker
from longstop.telemetry.events.matches import (
    CadenceChanged,
    ErrorRateHigh,
    FindingClosed,
    FindingOpened,
    MatchFinished,
    MatchInSync,
    MatchPhaseChanged,
    MatchStale,
    PollFailed,
    SourceFrozen,
    SourceResumed,
    UpdateStored,
)
from longstop.watching.cadence import Tempo, Why
from longstop.watching.watch_state import WITNESS, Crowd, Lag

#: A lively match goes from one to the other and back all the time: that is no news.
_USUAL = frozenset({Why.BASELINE, Why.BUSY, Why.IMPORTANT})


class WatchEvents:
    """The voice of one watch. It remembers what it has told, so that a state that lasts is told once."""

    def __init__(self, bus: Bus, row: MatchRow) -> None:
        self._bus = bus
        self._match_id = row.match_id
        self._ref = str(row.ref)
        self._tempo: Tempo | None = None
        self._frozen: Lag | None = None
        self._is_stale = False

    def stored(self, receipt: Receipt) -> None:
        ops = [stored.event.op.value for stored in receipt.events]
        self._bus.emit(
            UpdateStored(
                match_id=self._match_id,
                ref=self._ref,
                inserted=ops.count("insert"),
                updated=ops.count("update"),
                voided=ops.count("void"),
                seq=receipt.match.seq,
                latency_ms=receipt.snapshot.update_latency_ms if receipt.snapshot else None,
            )
        )

    def changes(self, before: MatchState, after: MatchState) -> None:
        """Tell what is different about the match in our care."""
        if before.row.phase is not after.row.phase:
            self._moved(before.row.phase, after)
        if before.sync is not after.sync:
            self._bus.emit(MatchInSync(match_id=self._match_id, ref=self._ref, events=len(after.events)))
        for finding in _sorted(set(after.findings) - set(before.findings)):
            self._bus.emit(
                FindingOpened(
                    match_id=self._match_id,
                    ref=self._ref,
                    kind=finding.kind,
                    place=finding.place,
                    detail=finding.detail,
                )
            )
        for finding in _sorted(set(before.findings) - set(after.findings)):
            self._bus.emit(
                FindingClosed(match_id=self._match_id, ref=self._ref, kind=finding.kind, place=finding.place)
            )

    def _moved(self, before: Phase, after: MatchState) -> None:
        phase = after.row.phase
        self._bus.emit(MatchPhaseChanged(match_id=self._match_id, ref=self._ref, before=before, after=phase))
        if phase is Phase.COMPLETED:
            text = after.result.text if after.result else None
            self._bus.emit(MatchFinished(match_id=self._match_id, ref=self._ref, result=text))

    def failure(self, error: Exception, reached: AttemptState) -> None:
        about = error if isinstance(error, SourceError) else None
        self._bus.emit(
            PollFailed(
                match_id=self._match_id,
                ref=self._ref,
                error_type=type(error).__name__,
                error_message=str(error),
                request=about.request if about else "",
                reached=reached.value,
                outcome=end_of(reached, error).value,
                retries=about.retries if about else 0,
                page=about.page if about else None,
            )
        )

    def breaker(self, transition: Transition) -> None:
        report_breaker(self._bus, "match", self._ref, transition, match_id=self._match_id)

    def crowd(self, crowd: Crowd) -> None:
        self._bus.emit(ErrorRateHigh(match_id=self._match_id, ref=self._ref, errors=crowd.errors, types=crowd.types))

    def staleness(self, is_stale: bool, last_poll_at: datetime | None, age_seconds: float) -> None:
        """Tell that the match was not read for too long; when it is read again, that may be told anew."""
        was_told, self._is_stale = self._is_stale, is_stale
        if not is_stale or was_told:
            return
        self._bus.emit(
            MatchStale(
                match_id=self._match_id,
                ref=self._ref,
                age_seconds=round(age_seconds, 1),
                last_update=to_iso(last_poll_at) if last_poll_at else None,
            )
        )

    def tempo(self, tempo: Tempo) -> None:
        """Tell a new pace, unless it is one of those that a game changes all the time."""
        last, self._tempo = self._tempo, tempo
        is_usual = tempo.why in _USUAL and (last is None or last.why in _USUAL)
        if tempo != last and not is_usual:
            self._bus.emit(
                CadenceChanged(
                    match_id=self._match_id, ref=self._ref, reason=tempo.why.value, interval_seconds=tempo.seconds
                )
            )

    def frozen(self, lag: Lag | None, now: float) -> None:
        """Tell who stands still, and that it moves again."""
        if lag is not None and self._frozen is None:
            self._frozen = lag
            self._bus.emit(
                SourceFrozen(
                    match_id=self._match_id,
                    ref=self._ref,
                    frozen=lag.behind.value,
                    witness=WITNESS[lag.behind],
                    seconds=round(now - lag.since, 1),
                )
            )
        elif lag is None and self._frozen is not None:
            since, self._frozen = self._frozen.since, None
            self._bus.emit(SourceResumed(match_id=self._match_id, ref=self._ref, seconds=round(now - since, 1)))


def _sorted(findings: set[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda each: (each.kind, each.place))
