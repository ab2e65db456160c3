"""Watching one match: one look at a time, and what follows from how it went."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

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
from longstop.lacking import own_lacks
from longstop.model.match import TRANSITIONS, MonitoringRecord, Phase, SyncState
from longstop.pipeline.effort import Effort
from longstop.pipeline.held import HeldMatch
from longstop.pipeline.road import Looked, MatchRoad
from longstop.resilience.breaker import Breaker, Permit
from longstop.resilience.taxonomy import AttemptState, FailureKind, kind_of
from longstop.sources.base import Line
from longstop.storage.base import HotRow, HotWriter, MatchStore
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import MatchGone, PollSucceeded, WatchRestarted
from longstop.telemetry.events.processes import MachineLacked, TaskFailed
from longstop.watching.cadence import Tempo, WatchRules
from longstop.watching.ownership import take
from longstop.watching.restarts import RestartReason
from longstop.watching.telling import Voice
from longstop.watching.watch_state import SHUT_OUT, ErrorWindow, Obstacle, WatchState

#: Failures that say something about the match itself, and so count for its pause.
_COUNTED = frozenset({FailureKind.REFUSAL, FailureKind.CONTENT})


class Hold(StrEnum):
    """What somebody has asked to leave alone, so that a match is not looked at."""

    MATCH = "match"
    SOURCE = "source"


class Surroundings(Struct, frozen=True, kw_only=True):
    """What all watches of a source share."""

    road: MatchRoad
    store: MatchStore
    hot: HotWriter
    bus: Bus
    clock: Clock
    node: str
    rules: WatchRules = WatchRules()
    #: When a former life of ours has last read each match, by its number.
    former: Mapping[int, Moment] = {}

    def now(self) -> Moment:
        return Moment.of(self.clock)


class Watcher:
    """The one who looks at one match. It never raises for a bad page: the next look goes on from the same base."""

    def __init__(self, state: HeldMatch, around: Surroundings) -> None:
        self.state = state
        #: Whether another owner has taken the match; such a watcher is dropped.
        self.is_lost = False
        #: Whether `state` is what is stored; a commit that was reported as failed may be durable all the same.
        self._is_base_known = True
        self._around = around
        former = around.former.get(state.row.match_id)
        self._watch = WatchState.starting(state.row, around.rules, around.now(), former)
        self._breaker = Breaker(around.rules.breaker)
        self._voice = Voice(around.bus, state.row)
        self._errors = ErrorWindow(around.rules.max_errors)
        self._effort = Effort()
        self._look: asyncio.Task[object] | None = None
        self._holds: set[Hold] = set()
        #: Whether a hold is over and the watch has not begun anew since.
        self._is_released = False
        #: Whether nobody is to look at the match through this watcher any more.
        self._is_ended = False
        #: Whether it is to begin anew because the scraper fails.
        self._is_recycled = False

    @property
    def record(self) -> MonitoringRecord:
        now = self._around.now()
        record = self._watch.record(self.state, now, paused_for=self._breaker.remaining(now.monotonic))
        if not self._holds:
            return record
        is_pausable = Phase.PAUSED in TRANSITIONS[record.phase]
        return replace(record, phase=Phase.PAUSED if is_pausable else record.phase, is_on_hold=True)

    @property
    def active_at(self) -> float:
        """Return the moment, monotonic, at which something last moved in the match."""
        return self._watch.rhythm.changed_at

    @property
    def tempo(self) -> Tempo:
        """Return how long a good look lasts at present."""
        return self._watch.tempo(self.state, self._around.now())

    @property
    def is_looking(self) -> bool:
        return self._look is not None

    # --- what the listing says -------------------------------------------------------------------------------

    def listed(self, board: Line) -> bool:
        """Take note of the listing's line; return whether an unchanged one is not enough this time."""
        self._watch = self._watch.after_listing(board)
        state, now = self.state, self._around.now()
        return (
            not self._is_base_known
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
        if not self.is_looking:
            self._watch = self._watch.after_obstacle(SHUT_OUT, self._around.now())
            self.show()

    def accept(self, at: Moment) -> None:
        """Count a listing's unchanged line as a good look: nothing to store, only a younger age."""
        if self.state.row.phase is not Phase.PAUSED and not self._holds:
            self._watch = self._watch.after_line(self.state.board, at, self._around.now())
            self._after_cycle({})

    # --- when to act -----------------------------------------------------------------------------------------

    def is_due(self, *, is_news: bool = False, at_least: float = 0.0) -> bool:
        """Return whether the match may and should be looked at now, so many seconds after the last time at least."""
        # Who is to begin anew does that first: another look in between would be abandoned like the one before.
        if self.is_looking or self._holds or self.restart_reason() is not None:
            return False
        now = self._around.now()
        paused_for = self._breaker.remaining(now.monotonic)
        return self._watch.is_due(self.state, now, paused_for=paused_for, is_news=is_news, at_least=at_least)

    def hurried_at(self) -> float | None:
        """Return when a match that is said to have changed may be looked at; `None` when something holds it back."""
        if self.is_looking or self.restart_reason() is not None:
            return None
        now = self._around.now()
        return self._watch.hurried_at(self.state, now, paused_for=self._breaker.remaining(now.monotonic))

    def restart_reason(self) -> RestartReason | None:
        """Return why the watch should be begun anew; `None` while it should not."""
        if self._holds:
            return None
        if self._is_released:
            return RestartReason.ASKED
        if self._is_recycled:
            return RestartReason.RECYCLED
        now = self._around.now()
        if self.is_looking:
            self._watch = self._watch.poll_progressed(self._effort.answers, self.state.row, now)
        paused_for = self._breaker.remaining(now.monotonic)
        return self._watch.restart_reason(self.state.row, now, paused_for=paused_for, is_polling=self.is_looking)

    def mind_staleness(self) -> None:
        """Tell that the match was not read for too long, once as long as that lasts."""
        now = self._around.now()
        is_stale = not self._holds and self._watch.is_stale(self.state.row, now)
        self._voice.staleness(is_stale, self._watch.last_poll_at, self._watch.age_at(now))

    def may_be_archived(self) -> bool:
        return not self.is_looking and self._watch.may_be_archived(self.state.row, self._around.now())

    def abandon(self) -> None:
        """End a look that does not come back."""
        if self._look is not None:
            self._look.cancel()

    def end(self) -> None:
        """Leave the match for good: what is still on its way to it is not done any more, and it is not shown again."""
        self._is_ended = True
        self.abandon()

    def recycle(self) -> None:
        """Have the watch begun anew; a look that is under way is ended."""
        self._is_recycled = True
        self.abandon()

    # --- what people ask for ---------------------------------------------------------------------------------

    def hold(self, what: Hold) -> None:
        """Leave the match alone from this moment on, until that is taken back."""
        self._holds.add(what)
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
            await self._keep(self._around.road.pause)

    # --- acting ----------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Take one look; store what changed; note how it went."""
        if self._holds or self._is_ended:
            return
        permit = self._breaker.permit(self._around.clock.monotonic())
        if permit is None:
            return
        self._voice.breaker(permit.transition)
        began, effort = self._around.now(), Effort()
        self._look, self._effort = asyncio.current_task(), effort
        self._watch = self._watch.poll_started(began)
        try:
            await self._look_from(began, permit, effort)
        finally:
            self._breaker.release(permit, self._around.clock.monotonic())
            self._look = None

    async def _look_from(self, began: Moment, permit: Permit, effort: Effort) -> None:
        is_whole = self._watch.wants_full(self.state, began)
        try:
            with own_lacks():
                state = await self._base()
                is_whole = is_whole or state.sync is not SyncState.IN_SYNC
                outcome = await self._around.road.run(state, is_whole=is_whole, effort=effort)
        except SourceError as error:
            effort.failed(error)  # what was read and is not believed has failed nowhere else
            # Perhaps it was the store that could not be had.
            self._is_base_known = self._is_base_known and not isinstance(error, StorageError)
            await self._note_failure(error, effort, permit)
        except LongstopError as error:
            self._is_base_known, self.is_lost = False, isinstance(error, EpochLost)
            await self._note_failure(error, effort, permit)
        except Exception as error:  # a bug in one match's look must not end the watching of the others
            self._is_base_known = False
            await self._note_failure(error, effort, permit)
            self._around.bus.emit(TaskFailed.by(error, task=f"watch {self.state.row.ref}"))
        else:
            self._note_success(outcome, effort, permit, began, is_whole=is_whole)

    async def _base(self) -> HeldMatch:
        """Return what the next look goes on from, read again where it is not known."""
        if not self._is_base_known:
            self.state = await self._around.road.reload(self.state)
            self._is_base_known = True
        return self.state

    async def restart(self, reason: RestartReason) -> None:
        """Begin the watch anew: claim the match again, go on from what is stored, forget what was only remembered."""
        if self._is_ended:
            return
        now, began, row = self._around.now(), self._watch.began, self.state.row
        try:
            self.state = await take(self._around.store, row.match_id, self._around.node)
        except StorageError as error:
            self._is_base_known = False
            await self._note_failure(error, Effort())
            return
        self._is_base_known = True
        self._is_released = self._is_recycled = False
        self._watch = self._watch.restarted(now)
        self._around.bus.emit(
            WatchRestarted(
                match_id=row.match_id,
                ref=str(row.ref),
                reason=reason.value,
                age_seconds=round(now.monotonic - began, 1),
                epoch=self.state.row.epoch,
            )
        )
        self.show()

    async def archive(self) -> None:
        """Put the match away; it is kept and served, but nobody looks at it any more."""
        if await self._keep(self._around.road.archive):
            self._around.hot.forget(self.state.row.match_id)

    async def _keep(self, store: Callable[[HeldMatch], Awaitable[HeldMatch]]) -> bool:
        """Store a change that is ours, not the site's; one that fails is tried again when its reason comes again."""
        before = self.state
        try:
            self.state = await store(self.state)
        except LongstopError as error:
            self._is_base_known, self.is_lost = False, isinstance(error, EpochLost)
            if kind_of(error) is FailureKind.HELD:
                self._hold_back(error, self._around.now())
                return False
            self._watch = self._watch.after_failure(error, self._around.now(), errors=0)
            self._voice.failure(error, AttemptState.VALIDATED)
            return False
        self._voice.changes(before, self.state)
        return True

    # --- what follows ----------------------------------------------------------------------------------------

    def _note_success(self, outcome: Looked, effort: Effort, permit: Permit, began: Moment, *, is_whole: bool) -> None:
        before, self.state = self.state, outcome.state
        if outcome.receipt is not None:
            self._voice.stored(outcome.receipt)
        self._voice.changes(before, self.state)
        now = self._around.now()
        seconds = now.monotonic - began.monotonic
        self._around.bus.emit(
            PollSucceeded(match_id=before.row.match_id, ref=str(before.row.ref), seconds=round(seconds, 3))
        )
        is_news, errors = outcome.receipt is not None, effort.error_count
        self._watch = self._watch.after_poll(self.state, began, now, errors=errors, is_news=is_news, is_full=is_whole)
        self._voice.breaker(self._breaker.succeed(permit, now.monotonic))
        self._after_cycle(effort.errors)

    async def _note_failure(self, error: Exception, effort: Effort, permit: Permit | None = None) -> None:
        now, kind = self._around.now(), kind_of(error)
        if kind is FailureKind.HELD:
            self._hold_back(error, now)
            return
        self._watch = self._watch.after_failure(error, now, errors=effort.error_count)
        self._voice.failure(error, effort.state)
        if isinstance(error, PageNotFound):
            await self._consider_gone(now)
        if permit is not None and kind in _COUNTED:
            transition = self._breaker.fail(permit, now.monotonic)
            self._voice.breaker(transition)
            if transition is not None:
                await self._pause()
        self._after_cycle(effort.errors if isinstance(error, SourceError) else {type(error).__name__: 1})

    def _hold_back(self, error: Exception, now: Moment) -> None:
        """Take note that nobody could be asked, which says nothing about the match."""
        self._watch = self._watch.after_obstacle(Obstacle.of(error), now)
        if isinstance(error, ResourcesExhausted):
            self._around.bus.emit(MachineLacked(resource=error.resource, subject=str(self.state.row.ref)))
        self.show()

    async def _pause(self) -> None:
        """Let the match rest. One that is over has no such phase: there the breaker's rest is all."""
        self._watch = self._watch.paused()
        if Phase.PAUSED in TRANSITIONS[self.state.row.phase]:
            await self._keep(self._around.road.pause)

    async def _consider_gone(self, now: Moment) -> None:
        """End a match whose page is gone for good; once, and after reading what is left of it."""
        self._watch = self._watch.after_missing(now)
        absence, row = self._watch.absence, self.state.row
        if row.phase is Phase.COMPLETED or not self._watch.is_gone():
            return
        self._around.bus.emit(MatchGone(match_id=row.match_id, ref=str(row.ref), confirmations=absence.times))
        await self._keep(lambda state: self._around.road.finish(state, Effort()))

    def _after_cycle(self, errors: dict[str, int]) -> None:
        now = self._around.now()
        crowd = self._errors.add(now.monotonic, errors)
        if crowd is not None:
            self._voice.crowd(crowd)
        self._voice.frozen(self._watch.frozen(now.monotonic), now.monotonic)
        self._voice.tempo(self.tempo)
        self.show()

    def show(self) -> None:
        """Put how it goes into the hot view."""
        if self._is_ended:
            return
        snapshot = self.state.snapshot
        self._around.hot.put(
            HotRow(
                record=self.record,
                sequence=snapshot.sequence if snapshot else None,
                checksum=snapshot.checksum if snapshot else None,
                payload=snapshot.payload if snapshot else None,
                captured_at=snapshot.created_at if snapshot else None,
                scraper_id=self._around.node,
            )
        )
