"""Polls one feed of a match, one poll at a time, and acts on the outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock, Moment
from longstop.errors import (
    EpochLost,
    LongstopError,
    PageNotFound,
    ResourcesExhausted,
    SourceError,
    StorageError,
    without_frames,
)
from longstop.exhaustion import mapped
from longstop.matches.live_match_and_feeds import Feed, LiveMatch, LiveMatches
from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.source_client_and_poll_attempt import PollAttempt
from longstop.model.data_finding import FindingKind
from longstop.model.match import TRANSITIONS, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState, Unreliability
from longstop.model.request_pause import FormerPause, NoStoredPauses, PauseKind, SourcePauses
from longstop.model.source_queries_and_answers import ListingEntry
from longstop.resilience.breaker import ASKED, Breaker, Permit, Transition
from longstop.resilience.poll_attempt_states import AttemptState
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.sports.base import MatchState
from longstop.storage.base import HotRow, HotWriter
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import MatchGone, PollSucceeded, WatchRestarted
from longstop.telemetry.events.processes import PollPostponed, TaskFailed
from longstop.watching.poll_intervals_and_frozen_pages import RestartReason, WatchRules
from longstop.watching.polling_state_and_decisions import SOURCE_WIDE, Postponement, WatchState
from longstop.watching.watch_telemetry import WatchEvents

#: Failures caused by the match itself; they count for its breaker.
_COUNTED = frozenset({FailureKind.REFUSAL, FailureKind.CONTENT, FailureKind.EXCESS})
#: A feed is alive for this long after a good poll, or for this many of its intervals. Then another feed may lead.
ALIVE_SECONDS = 10.0
ALIVE_INTERVALS = 2.0


class WatchContext(Struct, frozen=True, kw_only=True):
    """What all watches of a source share."""

    pipeline: Pipeline
    matches: LiveMatches
    hot: HotWriter
    bus: Bus
    clock: Clock
    rules: WatchRules = WatchRules()
    #: Among the feeds of a match, the highest leads.
    precedence: int = 0
    #: The last accepted poll of each match by an earlier run, by match id.
    former: Mapping[int, Moment] = {}
    pauses: SourcePauses = NoStoredPauses()

    def now(self) -> Moment:
        return Moment.of(self.clock)


class FeedWatch:
    """Polls one feed. A failed poll never raises; the next one continues from the same base."""

    def __init__(self, match: LiveMatch, feed: Feed, context: WatchContext) -> None:
        self.match = match
        self.feed = feed
        #: Whether another node owns the match now; such a watch is dropped.
        self.is_lost = False
        self._context = context
        # No feed of lower precedence leads before this one had its first poll.
        feed.fresh_until = context.clock.monotonic() + ALIVE_SECONDS
        former = context.former.get(match.row.match_id)
        self.polling = WatchState.starting(match.row, context.rules, context.now(), former)
        self._breaker = Breaker(context.rules.breaker, str(match.row.ref))
        self._events = WatchEvents(context.bus, match.row, context.rules.max_errors)
        self._attempt = PollAttempt()
        self._poll_task: asyncio.Task[object] | None = None
        #: Whether an operator paused the match or its source.
        self._is_paused = False
        #: Whether the watch was stopped for good.
        self._is_stopped = False
        #: The reason of a restart that was requested and has not happened yet.
        self._requested: RestartReason | None = None
        for pause in context.pauses.former:
            if pause.kind is PauseKind.MATCH_CIRCUIT and pause.subject == str(match.row.ref):
                self._resume(pause)

    @property
    def state(self) -> MatchState:
        """Return the match as this feed sees it."""
        return self.feed.state

    @property
    def is_published(self) -> bool:
        """Return whether this watch publishes the match: that of the leading feed does, before a poll the first."""
        first = next(iter(self.match.feeds), self.feed)
        return self.feed.ref == (self.match.leader or first.ref)

    @property
    def record(self) -> MonitoringRecord:
        record = replace(self.polling.record(self.state, self._context.now()), unreliability=self._unreliability())
        if not self._is_paused:
            return record
        return replace(record, phase=Phase.PAUSED if self._is_pausable else record.phase, is_on_hold=True)

    def _unreliability(self) -> tuple[Unreliability, ...]:
        state, trust, now = self.state, self.feed.trust, self._context.clock.monotonic()
        kinds = {finding.kind for finding in state.findings}
        is_contradicted = trust.is_contradicted or state.is_contradicted or FindingKind.MISMATCH in kinds
        postponed = self.polling.postponement
        is_degraded = self.polling.frozen(now) is not None or (postponed is not None and postponed.is_source_wide)
        reasons = {
            Unreliability.RECOVERING: state.sync is SyncState.RECOVERING,
            Unreliability.GAP_OPEN: FindingKind.GAP in kinds,
            Unreliability.CONTRADICTED: is_contradicted or bool(state.suspects),
            Unreliability.UNCONFIRMED: trust.is_unconfirmed(now),
            Unreliability.SOURCE_DEGRADED: is_degraded,
        }
        return tuple(reason for reason, applies in reasons.items() if applies)

    @property
    def _is_pausable(self) -> bool:
        """Return whether the match can be paused; a finished one has no such phase."""
        return Phase.PAUSED in TRANSITIONS[self.state.row.phase]

    @property
    def is_polling(self) -> bool:
        return self._poll_task is not None

    # --- the listing -----------------------------------------------------------------------------------------

    def see_listing(self, entry: ListingEntry | None, asked: Moment) -> bool:
        """Note the match's entry in a listing, or that it has none; return whether to poll the match now."""
        if entry is None:  # a missing match is not finished: its own page is polled
            self.polling = self.polling.after_listing(None)
            return self.is_due()
        if self.see_entry(entry):
            return self.is_due(is_news=True)
        self.accept_entry(asked)
        return False

    def see_entry(self, entry: ListingEntry) -> bool:
        """Note the listing's entry; return whether the match must be polled."""
        self.polling = self.polling.after_listing(entry)
        state, now = self.state, self._context.now()
        if not self.match.leads(self.feed, now.monotonic):
            return False
        return (
            not self.match.is_base_known
            or state.board is None
            or state.sync is not SyncState.IN_SYNC
            or bool(state.suspects)
            or bool(self.feed.trust.doubt)
            or bool(self.feed.trust.overruled and self.feed.trust.overruled != entry.teams)
            or state.is_check_due(now.monotonic)
            or entry.fingerprint != state.board.fingerprint
            or not entry.shows_every_change
            or self.polling.needs_full_poll(state, now)
            or self.polling.needs_check(state, now)
        )

    def see_no_listing(self) -> None:
        self.polling = self.polling.without_listing()

    def see_refusal(self) -> None:
        """Note that the site refuses the listing, so that the match is not polled either."""
        if not self.is_polling:
            self.polling = self.polling.after_postponed(SOURCE_WIDE, self._context.now())
            self.publish()

    def accept_entry(self, at: Moment) -> None:
        """Count an unchanged entry as a good poll: nothing is stored, only the age is reset."""
        if self.state.row.phase is not Phase.PAUSED and not self._is_paused:
            now = self._context.now()
            self.polling = self.polling.after_entry(self.state.board, at, now)
            if not self.polling.failures:  # a cached listing must not keep a feed in the lead whose own pages fail
                self._stay_alive(now)
            self._after_cycle({})

    # --- decisions -------------------------------------------------------------------------------------------

    def is_due(self, *, is_news: bool = False, minimum: float = 0.0) -> bool:
        """Return whether to poll now, at least `minimum` seconds after the last poll."""
        # A pending restart comes first; a poll before it would be cancelled too.
        if self.is_polling or self._is_paused or self.restart_reason() is not None:
            return False
        return self.polling.is_due(self.state, self._context.now(), is_news=is_news, minimum=minimum)

    def signalled_poll_at(self) -> float | None:
        """Return when to poll after the page signalled a change; `None` if not at all."""
        if self.is_polling or self.restart_reason() is not None:
            return None
        return self.polling.signalled_poll_at(self.state, self._context.now())

    def restart_reason(self) -> RestartReason | None:
        """Return why the watch should be restarted; `None` if it should not."""
        if self._is_paused or self._requested is not None:
            return None if self._is_paused else self._requested
        now = self._context.now()
        if self.is_polling:
            self.polling = self.polling.poll_progressed(self._attempt.answers, self.state.row, now)
        return self.polling.restart_reason(self.state.row, now, is_polling=self.is_polling)

    def report_staleness(self) -> None:
        """Report that the match is stale, once for as long as it stays stale."""
        now = self._context.now()
        is_stale = not self._is_paused and self.polling.is_stale(self.state.row, now)
        self._events.staleness(self.record if is_stale else None, now)

    def may_be_archived(self) -> bool:
        return not self.is_polling and self.polling.may_be_archived(self.state, self._context.now())

    def cancel_poll(self) -> None:
        if self._poll_task is not None:
            self._poll_task.cancel()

    def stop(self) -> None:
        """Stop for good: cancel the poll in progress, release the match, publish nothing more."""
        self._is_stopped = True
        self.cancel_poll()
        self._context.pauses.end(PauseKind.MATCH_CIRCUIT, str(self.match.row.ref))
        self._context.matches.drop(self.match, self.feed)

    def recycle(self) -> None:
        """Request a restart, and cancel the poll in progress."""
        self._requested = RestartReason.RECYCLED
        self.cancel_poll()

    # --- commands of an operator -----------------------------------------------------------------------------

    def retry_now(self) -> bool:
        """Restart the watch although the match's breaker may be open; return whether it was."""
        transition = self._breaker.half_open(ASKED)
        self._report(transition)
        self.polling = replace(self.polling, not_before=0.0)
        self.recycle()
        return transition is not None

    def set_paused(self, is_paused: bool) -> None:
        """Stop polling, or resume with a restart and a full poll."""
        if is_paused is self._is_paused:
            return
        self._is_paused = is_paused
        if is_paused:
            self.feed.fresh_until = -inf
            self.cancel_poll()
        else:
            self._requested = RestartReason.ASKED
        self.publish()

    async def store_pause(self) -> None:
        if self._is_pausable:
            await self._store(self.feed.pipeline.pause)

    # --- polling ---------------------------------------------------------------------------------------------

    async def poll(self) -> None:
        """Poll once, store what changed, and note the outcome."""
        if self._is_paused or self._is_stopped:
            return
        permit = self._breaker.permit(self._context.clock.monotonic())
        if permit is None:
            return
        self._report(permit.transition)
        started, attempt = self._context.now(), PollAttempt()
        self._poll_task, self._attempt = asyncio.current_task(), attempt
        self.polling = self.polling.poll_started(started)
        try:
            await self._poll(started, permit, attempt)
        finally:
            self._breaker.release(permit)
            self._poll_task = None

    async def _poll(self, started: Moment, permit: Permit, attempt: PollAttempt) -> None:
        match, feed, before = self.match, self.feed, self.state
        is_full, polled = self.polling.needs_full_poll(before, started), None
        try:
            await match.reload()
            leads = match.leads(feed, started.monotonic)
            if leads:
                is_full = is_full or self.state.sync is not SyncState.IN_SYNC
                polled = await match.poll(feed, is_full=is_full, attempt=attempt, listed=self.polling.listed)
            else:
                await match.check_alive(feed, attempt)
        except Exception as error:
            try:
                await self._note_failure(mapped(error), attempt, permit)
            finally:
                without_frames(error)
        else:
            # A feed that does not lead, or was too slow, was not read in full.
            self._note_success(before, polled, attempt, permit, started, is_full=is_full and polled is not None)
            if polled is not None or not leads:  # a slow feed must not keep a faster one from leading
                self._stay_alive(self._context.now())

    async def restart(self, reason: RestartReason) -> bool:
        """Claim the match again, reload the stored base, and drop what is only in memory.

        Return whether that succeeded; a failed restart is retried.
        """
        if self._is_stopped:
            return False
        now, started_at, row = self._context.now(), self.polling.started_at, self.state.row
        try:
            await self.match.restart(self.feed)
        except StorageError as error:
            await self._note_failure(error, PollAttempt())
            return False
        self._requested = None
        self.polling = self.polling.restarted(now)
        self._context.bus.emit(
            WatchRestarted(
                match_id=row.match_id,
                ref=str(row.ref),
                reason=reason.value,
                age_seconds=round(now.monotonic - started_at, 1),
                epoch=self.state.row.epoch,
            )
        )
        self.publish()
        return True

    async def archive(self) -> None:
        """Archive the match: it is kept and served, but polled no more."""
        if await self._store(self.feed.pipeline.archive):
            self._context.hot.forget(self.state.row.match_id)

    async def _store(self, change: Callable[[MatchState], Awaitable[MatchState]]) -> bool:
        """Store a change of our own, not the site's. A failed one is retried when its reason recurs."""
        before = self.state
        try:
            await self.match.change(self.feed, change)
        except LongstopError as error:
            self.match.is_base_known, self.is_lost = False, self.is_lost or isinstance(error, EpochLost)
            if kind_of(error) is FailureKind.NOT_SENT:
                self._note_postponed(error, self._context.now())
                return False
            self.polling = self.polling.after_failure(error, self._context.now(), errors=0)
            self._events.failure(error, PollAttempt(), AttemptState.VALIDATED)
            return False
        self._events.changes(before, self.state)
        return True

    # --- outcomes --------------------------------------------------------------------------------------------

    def _note_success(
        self,
        before: MatchState,
        polled: PollResult | None,
        attempt: PollAttempt,
        permit: Permit,
        started: Moment,
        *,
        is_full: bool,
    ) -> None:
        """Note a good poll; a feed that does not lead has stored nothing."""
        receipt = polled.receipt if polled else None
        if receipt is not None:
            self._events.stored(receipt)
        self._events.changes(before, self.state)
        now = self._context.now()
        seconds = now.monotonic - started.monotonic
        self._context.bus.emit(
            PollSucceeded(
                match_id=before.row.match_id,
                ref=str(before.row.ref),
                seconds=round(seconds, 3),
                bytes=attempt.bytes,
                busy_seconds=round(attempt.busy_seconds, 3),
            )
        )
        is_news, errors = receipt is not None, attempt.error_count
        self.polling = self.polling.after_poll(
            self.state, started, now, errors=errors, is_news=is_news, is_full=is_full
        )
        self._report(self._breaker.succeed(permit, now.monotonic))
        self._after_cycle(attempt.errors)

    def _stay_alive(self, now: Moment) -> None:
        alive = max(ALIVE_SECONDS, ALIVE_INTERVALS * self.polling.interval(self.state, now).seconds)
        self.feed.fresh_until = now.monotonic + alive

    def _is_alone(self, now: Moment) -> bool:
        """Return whether no other feed keeps the match fresh."""
        return all(each is self.feed or each.fresh_until <= now.monotonic for each in self.match.feeds)

    async def _note_failure(self, error: Exception, attempt: PollAttempt, permit: Permit | None = None) -> None:
        """Note why a poll or restart failed. No error may stop the polls of other matches."""
        now, kind = self._context.now(), kind_of(error)
        if kind is FailureKind.NOT_SENT:
            self._note_postponed(error, now)
            return
        self.is_lost = self.is_lost or isinstance(error, EpochLost)
        if isinstance(error, SourceError):
            attempt.failed(error)  # a refused observation was not counted by the client
        self.polling = self.polling.after_failure(error, now, errors=attempt.error_count)
        self._events.failure(error, attempt)
        if not isinstance(error, LongstopError):  # after the failure, whose error names the match
            self._context.bus.emit(TaskFailed.by(error, task=f"watch {self.feed.ref}"))
        if isinstance(error, PageNotFound):
            await self._finish_if_gone(now)
        if permit is not None and kind in _COUNTED:
            transition = self._breaker.fail(permit, now.monotonic)
            self._report(transition)
            if transition is not None:
                await self._pause_by_breaker(now.monotonic + transition.seconds)
        self._after_cycle(attempt.errors if isinstance(error, SourceError) else {type(error).__name__: 1})

    def _note_postponed(self, error: Exception, now: Moment) -> None:
        """Note that no request was sent, which proves nothing about the match."""
        self.polling = self.polling.after_postponed(Postponement.of(error), now)
        if isinstance(error, ResourcesExhausted):
            self._context.bus.emit(PollPostponed(resource=error.resource, subject=str(self.state.row.ref)))
        self.publish()

    def _report(self, transition: Transition | None) -> None:
        self._events.breaker(transition)
        if transition is not None:
            transition.store(self._context.pauses, PauseKind.MATCH_CIRCUIT)

    def _resume(self, pause: FormerPause) -> None:
        """Continue the pause of an earlier watch."""
        now = self._context.clock.monotonic()
        transition = self._breaker.reopen(now, pause.seconds, pause.explained())
        self._events.breaker(transition)
        self.polling, self.feed.fresh_until = self.polling.paused(now + transition.seconds), -inf

    async def _pause_by_breaker(self, until: float) -> None:
        """Pause the match while its breaker is open."""
        self.polling, self.feed.fresh_until = self.polling.paused(until), -inf
        if self._is_alone(self._context.now()):
            await self.store_pause()

    async def _finish_if_gone(self, now: Moment) -> None:
        """Finish a match whose page was removed, after reading what is left of it."""
        self.polling = self.polling.after_missing(now)
        row = self.state.row
        if row.phase is Phase.COMPLETED or not (self.polling.is_gone() and self._is_alone(now)):
            return
        self._context.bus.emit(MatchGone(match_id=row.match_id, ref=str(row.ref), confirmations=self.polling.missing))
        pipeline, attempt = self.feed.pipeline, PollAttempt()
        try:
            last = await pipeline.read_last(self.state, attempt)
        except ResourcesExhausted as error:
            self._note_postponed(error, now)
            return
        await self._store(lambda state: pipeline.finish(state, last, attempt))

    def _after_cycle(self, errors: dict[str, int]) -> None:
        now = self._context.now()
        self._events.trust(self.feed.trust.doubt, now.monotonic)
        self._events.errors(now.monotonic, errors)
        self._events.frozen(self.polling.frozen(now.monotonic), now.monotonic)
        self._events.interval(self.polling.interval(self.state, now))
        self.publish()

    def publish(self) -> None:
        """Write the match to the hot view; of several feeds, the leading one does."""
        if self._is_stopped or not self.is_published or self.state.row.phase is Phase.ARCHIVED:
            return
        snapshot = self.state.snapshot
        self._context.hot.put(
            HotRow(
                record=self.record,
                sequence=snapshot.sequence if snapshot else None,
                checksum=snapshot.checksum if snapshot else None,
                payload=snapshot.payload if snapshot else None,
                captured_at=snapshot.created_at if snapshot else None,
                scraper_id=self._context.matches.node,
            )
        )
