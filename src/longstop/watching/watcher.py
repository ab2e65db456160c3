"""Watching one match: what is held, how it goes, and one look at a time."""

from collections.abc import Callable
from datetime import datetime, timedelta

from longstop.clock import Clock
from longstop.errors import EpochLost, LongstopError, SourceError, StorageError
from longstop.model.match import MonitoringRecord, SyncState
from longstop.pipeline.run import Outcome, Road
from longstop.pipeline.state import MatchState
from longstop.sources.base import Board
from longstop.storage.base import Finding, HotRow, HotWriter, Receipt
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import (
    FindingClosed,
    FindingOpened,
    MatchInSync,
    MatchMoved,
    PollFailed,
    PollSucceeded,
    TaskFailed,
    UpdateStored,
)
from longstop.watching.cadence import revisit_after, wait_after


class Watcher:
    """The one who looks at one match. It never raises for a bad page: the next look goes on from the same base."""

    def __init__(
        self, state: MatchState, *, road: Road, hot: HotWriter, bus: Bus, clock: Clock, scraper_id: str
    ) -> None:
        self.state = state
        self.is_looking = False
        #: Whether another owner has taken the match; such a watcher is dropped.
        self.is_lost = False
        #: Whether `state` is what is stored; a commit that was reported as failed may be durable all the same.
        self._is_base_known = True
        self._road = road
        self._hot = hot
        self._bus = bus
        self._clock = clock
        self._scraper_id = scraper_id
        # Until the first look of this run, the last stored change is the youngest moment we can vouch for.
        self._last_poll_at = state.row.updated_at
        self._last_attempt_at: datetime | None = None
        self._not_before: datetime | None = None
        #: When to look into what is open about the match; such a look reads everything.
        self._revisit_at: datetime | None = None
        self._visits = 0
        self._consecutive_failures = 0
        self._total_polls = 0
        self._total_failures = 0
        self._last_error: str | None = None

    def needs_look(self, board: Board, now: datetime) -> bool:
        """Return whether an unchanged line in the listing is not enough this time."""
        state = self.state
        return (
            not self._is_base_known
            or self._is_revisit(now)
            or state.board is None
            or state.sync is not SyncState.IN_SYNC
            or bool(state.suspects)
            or board.fingerprint != state.board.fingerprint
        )

    def _is_revisit(self, now: datetime) -> bool:
        return self._revisit_at is not None and now >= self._revisit_at

    def accept(self, at: datetime) -> None:
        """Count a listing's unchanged line as a good look: nothing to store, only a younger age."""
        self._last_poll_at = at
        self._total_polls += 1
        self.show()

    async def look(self) -> None:
        """Take one look; store what changed; note how it went."""
        self.is_looking = True
        started_at, began = self._clock.now(), self._clock.monotonic()
        self._last_attempt_at = started_at
        try:
            outcome = await self._road.run(await self._base(), is_whole=self._is_revisit(started_at))
        except EpochLost as error:
            self.is_lost = True
            self._note_failure(error)
        except SourceError as error:
            self._note_failure(error)
        except LongstopError as error:
            self._is_base_known = False
            self._note_failure(error)
        except Exception as error:  # a bug in one match's look must not end the watching of the others
            self._is_base_known = False
            self._note_failure(error)
            self._bus.emit(TaskFailed.by(error, task=self._name))
        else:
            self._note_success(outcome, started_at, self._clock.monotonic() - began)
        finally:
            self.is_looking = False

    async def _base(self) -> MatchState:
        """Return what the next look goes on from, read again where it is not known."""
        if not self._is_base_known:
            self.state = await self._road.reload(self.state)
            self._is_base_known = True
        return self.state

    async def archive(self) -> None:
        """Put the match away; it is kept and served, but nobody looks at it any more."""
        before = self.state
        try:
            self.state = await self._road.archive(self.state)
        except StorageError as error:  # tried again with the next listing, unless the match is another node's by now
            self.is_lost = isinstance(error, EpochLost)
            self._note_failure(error)
            return
        self._tell_changes(before, self.state)
        self._hot.forget(self.state.row.match_id)

    @property
    def record(self) -> MonitoringRecord:
        row = self.state.row
        return MonitoringRecord(
            match_id=row.match_id,
            ref=row.ref,
            phase=row.phase,
            status=row.status,
            sync=self.state.sync,
            last_poll_at=self._last_poll_at,
            start_at=row.start_at,
            last_attempt_at=self._last_attempt_at,
            not_before=self._not_before,
            consecutive_failures=self._consecutive_failures,
            total_polls=self._total_polls,
            total_failures=self._total_failures,
            last_error=self._last_error,
        )

    @property
    def _name(self) -> str:
        return f"watch {self.state.row.ref}"

    def _note_success(self, outcome: Outcome, started_at: datetime, seconds: float) -> None:
        before, self.state = self.state, outcome.state
        if outcome.receipt is not None:
            self._tell_stored(outcome.receipt)
        self._tell_changes(before, self.state)
        row = self.state.row
        self._bus.emit(PollSucceeded(match_id=row.match_id, ref=str(row.ref), seconds=round(seconds, 3)))
        self._consecutive_failures = 0
        self._last_error = None
        self._not_before = None
        self._plan_revisit(started_at)
        self.accept(started_at)

    def _plan_revisit(self, now: datetime) -> None:
        """Come back to a match with something open: a feed that lagged, or names that were late, may have caught up."""
        if not (self.state.findings or self.state.has_unnamed):
            self._revisit_at, self._visits = None, 0
        elif self._revisit_at is None or now >= self._revisit_at:
            self._revisit_at = now + timedelta(seconds=revisit_after(self._visits))
            self._visits += 1

    def _note_failure(self, error: Exception) -> None:
        self._consecutive_failures += 1
        self._total_failures += 1
        self._last_error = f"{type(error).__name__}: {error}"
        wait = wait_after(error)
        self._not_before = self._clock.now() + timedelta(seconds=wait) if wait else None
        row = self.state.row
        self._bus.emit(
            PollFailed(
                match_id=row.match_id,
                ref=str(row.ref),
                error_type=type(error).__name__,
                error_message=str(error),
            )
        )
        self.show()

    def _tell_stored(self, receipt: Receipt) -> None:
        ops = [stored.event.op.value for stored in receipt.events]
        self._bus.emit(
            UpdateStored(
                match_id=receipt.match.match_id,
                ref=str(receipt.match.ref),
                inserted=ops.count("insert"),
                updated=ops.count("update"),
                voided=ops.count("void"),
                seq=receipt.match.seq,
                latency_ms=receipt.snapshot.update_latency_ms if receipt.snapshot else None,
            )
        )

    def _tell_changes(self, before: MatchState, after: MatchState) -> None:
        match_id, ref = after.row.match_id, str(after.row.ref)
        if before.row.phase is not after.row.phase:
            self._bus.emit(MatchMoved(match_id=match_id, ref=ref, before=before.row.phase, after=after.row.phase))
        if before.sync is not after.sync:
            self._bus.emit(MatchInSync(match_id=match_id, ref=ref, events=len(after.events)))
        self._tell_findings(
            set(after.findings) - set(before.findings),
            lambda finding: FindingOpened(
                match_id=match_id, ref=ref, kind=finding.kind, place=finding.place, detail=finding.detail
            ),
        )
        self._tell_findings(
            set(before.findings) - set(after.findings),
            lambda finding: FindingClosed(match_id=match_id, ref=ref, kind=finding.kind, place=finding.place),
        )

    def _tell_findings(self, findings: set[Finding], tell: Callable[[Finding], FindingOpened | FindingClosed]) -> None:
        for finding in sorted(findings, key=lambda each: (each.kind, each.place)):
            self._bus.emit(tell(finding))

    def show(self) -> None:
        """Put how it goes into the hot view."""
        snapshot = self.state.snapshot
        self._hot.put(
            HotRow(
                record=self.record,
                sequence=snapshot.sequence if snapshot else None,
                checksum=snapshot.checksum if snapshot else None,
                payload=snapshot.payload if snapshot else None,
                captured_at=snapshot.created_at if snapshot else None,
                scraper_id=self._scraper_id,
            )
        )
