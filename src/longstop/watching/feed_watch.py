"""Polling one feed of a match: one poll at a time, and what follows from how it went."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
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
)
from longstop.exhaustion import mapped
from longstop.matches.client import PollAttempt
from longstop.matches.live_match import Feed, LiveMatch, LiveMatches
from longstop.matches.pipeline import Pipeline, Polled
from longstop.model.match import TRANSITIONS, MonitoringRecord, Phase, SyncState
from longstop.model.observation import ListingEntry
from longstop.resilience.breaker import Breaker, Permit
from longstop.resilience.taxonomy import AttemptState, FailureKind, kind_of
from longstop.sports.base import MatchState
from longstop.storage.base import HotRow, HotWriter
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import MatchGone, PollSucceeded, WatchRestarted
from longstop.telemetry.events.processes import PollPostponed, TaskFailed
from longstop.watching.cadence import RestartReason, Tempo, WatchRules
from longstop.watching.watch_events import WatchEvents
from longstop.watching.watch_state import SHUT_OUT, ErrorWindow, Obstacle, WatchState

#: Failures that say something about the match itself, and so count for its pause.
_COUNTED = frozenset({FailureKind.REFUSAL, FailureKind.CONTENT})
#: A feed that was polled well counts as alive for this long, or for so many of its intervals; then another may lead.
ALIVE_SECONDS = 10.0
ALIVE_INTERVALS = 2.0


class Hold(StrEnum):
    """What somebody has asked to leave alone, so that a match is not looked at."""

    MATCH = "match"
    SOURCE = "source"


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
    #: When a former life of ours has last read each match, by its number.
    former: Mapping[int, Moment] = {}

    def now(self) -> Moment:
        return Moment.of(self.clock)


class FeedWatch:
    """Polls one feed. It never raises for a bad page: the next poll goes on from the same base."""

    def __init__(self, match: LiveMatch, feed: Feed, context: WatchContext) -> None:
        self.match = match
        self.feed = feed
        #: Whether another owner has taken the match; such a watch is dropped.
        self.is_lost = False
        self._context = context
        # Until it has had its chance, no feed of a lower precedence leads.
        feed.fresh_until = context.clock.monotonic() + ALIVE_SECONDS
        former = context.former.get(match.row.match_id)
        self._watch = WatchState.starting(match.row, context.rules, context.now(), former)
        self._breaker = Breaker(context.rules.breaker)
        self._voice = WatchEvents(context.bus, match.row)
        self._errors = ErrorWindow(context.rules.max_errors)
        self._attempt = PollAttempt()
        self._look: asyncio.Task[object] | None = None
        self._holds: set[Hold] = set()
        #: Whether a hold is over and the watch has not begun anew since.
        self._is_released = False
        #: Whether nobody is to look at the match through this watch any more.
        self._is_ended = False
        #: Whether it is to begin anew because the scraper fails.
        self._is_recycled = False

    @property
    def state(self) -> MatchState:
        """Return the match as this feed sees it."""
        return self.feed.state

    @property
    def is_shown(self) -> bool:
        """Return whether this watch speaks for its match: the leading feed's does, before the first poll the first."""
        first = next(iter(self.match.feeds), self.feed)
        return self.feed.ref == (self.match.leader or first.ref)

    @property
    def record(self) -> MonitoringRecord:
        now = self._context.now()
        record = self._watch.record(self.state, now, paused_for=self._breaker.remaining(now.monotonic))
        if not self._holds:
            return record
        is_pausable = Phase.PAUSED in TRANSITIONS[record.phase]
        return replace(record, phase=Phase.PAUSED if is_pausable else record.phase, is_on_hold=True)

    @property
    def age(self) -> float | None:
        """Return the seconds since the last accepted poll; `None` before the first."""
        return None if self._watch.last_poll_at is None else self._watch.age_at(self._context.now())

    @property
    def failures(self) -> int:
        """Return how many polls have failed in a row."""
        return self._watch.failures

    @property
    def is_important(self) -> bool:
        return self._context.rules.is_important(self.state.row.title)

    @property
    def active_at(self) -> float:
        """Return the moment, monotonic, at which something last moved in the match."""
        return self._watch.rhythm.changed_at

    @property
    def tempo(self) -> Tempo:
        """Return how long a good look lasts at present."""
        return self._watch.tempo(self.state, self._context.now())

    @property
    def is_polling(self) -> bool:
        return self._look is not None

    # --- what the listing says -------------------------------------------------------------------------------

    def listed(self, board: ListingEntry) -> bool:
        """Take note of the listing's line; return whether an unchanged one is not enough this time."""
        self._watch = self._watch.after_listing(board)
        state, now = self.state, self._context.now()
        if not self.match.leads(self.feed, now.monotonic):
            return False
        return (
            not self.match.is_base_known
            or state.board is None
            or state.sync is not SyncState.IN_SYNC
            or bool(state.suspects)
            or board.fingerprint != state.board.fingerprint
            or not board.tells_all
            or self._watch.wants_full(state, now)
            or self._watch.wants_check(state, now)
        )

    def unlisted(self) -> None:
        """Take note that the listing does not show the match."""
        self._watch = self._watch.after_listing(None)

    def unheard(self) -> None:
        """Take note that there is no listing to go by."""
        self._watch = self._watch.without_listing()

    def turned_away(self) -> None:
        """Take note that the site refuses us, so that nobody is asked for now."""
        if not self.is_polling:
            self._watch = self._watch.after_obstacle(SHUT_OUT, self._context.now())
            self.show()

    def accept(self, at: Moment) -> None:
        """Count a listing's unchanged line as a good look: nothing to store, only a younger age."""
        if self.state.row.phase is not Phase.PAUSED and not self._holds:
            now = self._context.now()
            self._watch = self._watch.after_line(self.state.board, at, now)
            if not self._watch.failures:  # a cached listing must not keep a feed in the lead whose own pages fail
                self._stay_alive(now)
            self._after_cycle({})

    # --- when to act -----------------------------------------------------------------------------------------

    def is_due(self, *, is_news: bool = False, at_least: float = 0.0) -> bool:
        """Return whether the match may and should be looked at now, so many seconds after the last time at least."""
        # Who is to begin anew does that first: another look in between would be abandoned like the one before.
        if self.is_polling or self._holds or self.restart_reason() is not None:
            return False
        now = self._context.now()
        paused_for = self._breaker.remaining(now.monotonic)
        return self._watch.is_due(self.state, now, paused_for=paused_for, is_news=is_news, at_least=at_least)

    def hurried_at(self) -> float | None:
        """Return when a match that is said to have changed may be looked at; `None` when something holds it back."""
        if self.is_polling or self.restart_reason() is not None:
            return None
        now = self._context.now()
        return self._watch.hurried_at(self.state, now, paused_for=self._breaker.remaining(now.monotonic))

    def restart_reason(self) -> RestartReason | None:
        """Return why the watch should be begun anew; `None` while it should not."""
        if self._holds:
            return None
        if self._is_released:
            return RestartReason.ASKED
        if self._is_recycled:
            return RestartReason.RECYCLED
        now = self._context.now()
        if self.is_polling:
            self._watch = self._watch.poll_progressed(self._attempt.answers, self.state.row, now)
        paused_for = self._breaker.remaining(now.monotonic)
        return self._watch.restart_reason(self.state.row, now, paused_for=paused_for, is_polling=self.is_polling)

    def mind_staleness(self) -> None:
        """Tell that the match was not read for too long, once as long as that lasts."""
        now = self._context.now()
        is_stale = not self._holds and self._watch.is_stale(self.state.row, now)
        self._voice.staleness(is_stale, self._watch.last_poll_at, self._watch.age_at(now))

    def may_be_archived(self) -> bool:
        return not self.is_polling and self._watch.may_be_archived(self.state, self._context.now())

    def abandon(self) -> None:
        """End a look that does not come back."""
        if self._look is not None:
            self._look.cancel()

    def end(self) -> None:
        """Leave the match for good: what is still on its way to it is not done any more, and it is not shown again."""
        self._is_ended = True
        self.abandon()
        self._context.matches.drop(self.match, self.feed)

    def recycle(self) -> None:
        """Have the watch begun anew; a look that is under way is ended."""
        self._is_recycled = True
        self.abandon()

    # --- what people ask for ---------------------------------------------------------------------------------

    def hold(self, what: Hold) -> None:
        """Leave the match alone from this moment on, until that is taken back."""
        self._holds.add(what)
        self.feed.fresh_until = -inf
        self.abandon()
        self.show()

    def release(self, what: Hold) -> None:
        """Take a hold back; after the last one the watch begins anew, with a comparison of everything."""
        if what in self._holds:
            self._holds.remove(what)
            self._is_released = not self._holds
            self.show()

    async def keep_paused(self) -> None:
        """Store that the match rests. One that is over has no such phase: there the hold is all."""
        if self.state.row.phase is not Phase.PAUSED and Phase.PAUSED in TRANSITIONS[self.state.row.phase]:
            await self._keep(self.feed.pipeline.pause)

    # --- acting ----------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Take one look; store what changed; note how it went."""
        if self._holds or self._is_ended:
            return
        permit = self._breaker.permit(self._context.clock.monotonic())
        if permit is None:
            return
        if permit.transition is not None:
            self._voice.breaker(permit.transition)
        began, attempt = self._context.now(), PollAttempt()
        self._look, self._attempt = asyncio.current_task(), attempt
        self._watch = self._watch.poll_started(began)
        try:
            await self._look_from(began, permit, attempt)
        finally:
            self._breaker.release(permit, self._context.clock.monotonic())
            self._look = None

    async def _look_from(self, began: Moment, permit: Permit, attempt: PollAttempt) -> None:
        match, feed, before = self.match, self.feed, self.state
        is_full, polled = self._watch.wants_full(before, began), None
        try:
            await match.reload()
            leads = match.leads(feed, began.monotonic)
            if leads:
                is_full = is_full or self.state.sync is not SyncState.IN_SYNC
                polled = await match.poll(feed, is_full=is_full, attempt=attempt)
            else:
                await match.glance(feed, attempt)
        except Exception as error:
            await self._note_error(mapped(error), attempt, permit)
        else:
            # A feed that does not lead, or was too slow, was not read in full, whatever was due.
            self._note_success(before, polled, attempt, permit, began, is_full=is_full and polled is not None)
            if polled is not None or not leads:  # one that is too slow must not keep a quicker feed from the lead
                self._stay_alive(self._context.now())

    async def _note_error(self, error: Exception, attempt: PollAttempt, permit: Permit) -> None:
        """Take note of why a poll failed; whatever it was, it must not end the polling of the others."""
        self.is_lost = self.is_lost or isinstance(error, EpochLost)
        if isinstance(error, SourceError):
            attempt.failed(error)  # what was read and is not believed has failed nowhere else
        await self._note_failure(error, attempt, permit)
        if not isinstance(error, LongstopError):
            self._context.bus.emit(TaskFailed.by(error, task=f"watch {self.feed.ref}"))

    async def restart(self, reason: RestartReason) -> bool:
        """Begin the watch anew: claim the match again, go on from what is stored, forget what was only remembered.

        Return whether that was done; a restart that failed is tried again.
        """
        if self._is_ended:
            return False
        now, began, row = self._context.now(), self._watch.began, self.state.row
        try:
            await self.match.restart(self.feed)
        except StorageError as error:
            await self._note_failure(error, PollAttempt())
            return False
        self._is_released = self._is_recycled = False
        self._watch = self._watch.restarted(now)
        self._context.bus.emit(
            WatchRestarted(
                match_id=row.match_id,
                ref=str(row.ref),
                reason=reason.value,
                age_seconds=round(now.monotonic - began, 1),
                epoch=self.state.row.epoch,
            )
        )
        self.show()
        return True

    async def archive(self) -> None:
        """Put the match away; it is kept and served, but nobody looks at it any more."""
        if await self._keep(self.feed.pipeline.archive):
            self._context.hot.forget(self.state.row.match_id)

    async def _keep(self, store: Callable[[MatchState], Awaitable[MatchState]]) -> bool:
        """Store a change that is ours, not the site's; one that fails is tried again when its reason comes again."""
        before = self.state
        try:
            await self.match.change(self.feed, store)
        except LongstopError as error:
            self.match.is_base_known, self.is_lost = False, isinstance(error, EpochLost)
            if kind_of(error) is FailureKind.NOT_SENT:
                self._hold_back(error, self._context.now())
                return False
            self._watch = self._watch.after_failure(error, self._context.now(), errors=0)
            self._voice.failure(error, AttemptState.VALIDATED)
            return False
        self._voice.changes(before, self.state)
        return True

    # --- what follows ----------------------------------------------------------------------------------------

    def _note_success(
        self,
        before: MatchState,
        polled: Polled | None,
        attempt: PollAttempt,
        permit: Permit,
        began: Moment,
        *,
        is_full: bool,
    ) -> None:
        """Take note of a good poll; one of a feed that does not lead has stored nothing."""
        receipt = polled.receipt if polled else None
        if receipt is not None:
            self._voice.stored(receipt)
        self._voice.changes(before, self.state)
        now = self._context.now()
        seconds = now.monotonic - began.monotonic
        self._context.bus.emit(
            PollSucceeded(match_id=before.row.match_id, ref=str(before.row.ref), seconds=round(seconds, 3))
        )
        is_news, errors = receipt is not None, attempt.error_count
        self._watch = self._watch.after_poll(self.state, began, now, errors=errors, is_news=is_news, is_full=is_full)
        if transition := self._breaker.succeed(permit, now.monotonic):
            self._voice.breaker(transition)
        self._after_cycle(attempt.errors)

    def _stay_alive(self, now: Moment) -> None:
        alive = max(ALIVE_SECONDS, ALIVE_INTERVALS * self._watch.tempo(self.state, now).seconds)
        self.feed.fresh_until = now.monotonic + alive

    def _is_alone(self, now: Moment) -> bool:
        """Return whether no other feed keeps the match fresh."""
        return all(each is self.feed or each.fresh_until <= now.monotonic for each in self.match.feeds)

    async def _note_failure(self, error: Exception, attempt: PollAttempt, permit: Permit | None = None) -> None:
        now, kind = self._context.now(), kind_of(error)
        if kind is FailureKind.NOT_SENT:
            self._hold_back(error, now)
            return
        self._watch = self._watch.after_failure(error, now, errors=attempt.error_count)
        self._voice.failure(error, attempt.state)
        if isinstance(error, PageNotFound):
            await self._consider_gone(now)
        if permit is not None and kind in _COUNTED:
            transition = self._breaker.fail(permit, now.monotonic)
            if transition is not None:
                self._voice.breaker(transition)
                await self._pause()
        self._after_cycle(attempt.errors if isinstance(error, SourceError) else {type(error).__name__: 1})

    def _hold_back(self, error: Exception, now: Moment) -> None:
        """Take note that nobody could be asked, which says nothing about the match."""
        self._watch = self._watch.after_obstacle(Obstacle.of(error), now)
        if isinstance(error, ResourcesExhausted):
            self._context.bus.emit(PollPostponed(resource=error.resource, subject=str(self.state.row.ref)))
        self.show()

    async def _pause(self) -> None:
        """Let the match rest. One that is over has no such phase: there the breaker's rest is all."""
        self._watch, self.feed.fresh_until = self._watch.paused(), -inf
        if self._is_alone(self._context.now()) and Phase.PAUSED in TRANSITIONS[self.state.row.phase]:
            await self._keep(self.feed.pipeline.pause)

    async def _consider_gone(self, now: Moment) -> None:
        """End a match whose page is gone for good; once, and after reading what is left of it."""
        self._watch = self._watch.after_missing(now)
        absence, row = self._watch.absence, self.state.row
        if row.phase is Phase.COMPLETED or not (self._watch.is_gone() and self._is_alone(now)):
            return
        self._context.bus.emit(MatchGone(match_id=row.match_id, ref=str(row.ref), confirmations=absence.times))
        await self._keep(lambda state: self.feed.pipeline.finish(state, PollAttempt()))

    def _after_cycle(self, errors: dict[str, int]) -> None:
        now = self._context.now()
        crowd = self._errors.add(now.monotonic, errors)
        if crowd is not None:
            self._voice.crowd(crowd)
        self._voice.frozen(self._watch.frozen(now.monotonic), now.monotonic)
        self._voice.tempo(self.tempo)
        self.show()

    def show(self) -> None:
        """Put how it goes into the hot view; for a match with several feeds the one that leads does so."""
        if self._is_ended or not self.is_shown or self.state.row.phase is Phase.ARCHIVED:
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
