"""The polling state of one feed, and the decisions that follow from it. Pure.

`WatchState` is frozen: every event returns the next state. Losing it loses no data. Times of type `float` are
monotonic, those of type `datetime` are wall-clock times.
"""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.errors import CircuitOpen, ResourcesExhausted, SourceError
from longstop.model.match import IN_PLAY, MatchStatus, MonitoringRecord, Phase
from longstop.model.observation import ListingEntry
from longstop.sports.base import MatchState
from longstop.storage.base import MatchRow
from longstop.watching.cadence import (
    FROZEN_INTERVALS,
    MOVES,
    Activity,
    Behind,
    ErrorBackoff,
    IntervalInput,
    Lag,
    PollInterval,
    RestartInput,
    RestartReason,
    WatchRestartPolicy,
    WatchRules,
    is_due,
    is_due_for_news,
    may_be_archived,
    must_reread,
    page_behind,
    poll_interval,
    restart_reason,
    revisit_after,
    signalled_poll_at,
)

#: A match is gone after this many 404s, each long enough after the one before.
CONFIRMATIONS = 3
#: An important match is stale after half the usual time.
IMPORTANT_SHARE = 0.5
#: Stored data appears in the hot view within this time.
SHOWN_WITHIN = 5.0
#: While a listing seems frozen, the match is polled this often before the listing counts as frozen.
CHECKS_OF_A_LAG = 3
#: A live match whose entry has not changed for this long is polled.
CHECK_AFTER = 60.0
#: The same in a break, and for a match past its start time that has not begun.
CHECK_IN_BREAK_AFTER = 300.0


class Postponement(Struct, frozen=True, kw_only=True):
    """Why a poll sent no request."""

    #: Whether it applies to all matches of the site: its circuit is open, or it refuses us.
    is_source_wide: bool = False
    #: The machine's exhausted resource, if that is the reason.
    resource: str | None = None

    @classmethod
    def of(cls, error: Exception) -> "Postponement":
        """Return the postponement for an error. Subclasses of `CircuitOpen` concern our own queues and budgets."""
        return cls(
            is_source_wide=type(error) is CircuitOpen,
            resource=error.resource if isinstance(error, ResourcesExhausted) else None,
        )


SOURCE_WIDE = Postponement(is_source_wide=True)


class Absence(Struct, frozen=True, kw_only=True):
    """Consecutive 404s of a match's page."""

    times: int = 0
    #: When the last one was counted.
    counted_at: float = 0.0

    def after_missing(self, now: float, *, apart: float) -> "Absence":
        """Count another 404, unless it follows too soon to be independent."""
        if self.times and now - self.counted_at < apart:
            return self
        return replace(self, times=self.times + 1, counted_at=now)

    def is_gone(self, *, is_listed: bool) -> bool:
        return self.times >= CONFIRMATIONS and not is_listed


def _last_poll_before(former: Moment | None, stored_at: datetime | None) -> Moment | None:
    """Return the last accepted poll of an earlier run, on both clocks; `None` when only the wall clock knows it.

    A scraper that was killed may have stored a change without publishing it. The stored change is then slightly newer,
    and the same difference applies to the monotonic clock.
    """
    if former is None or stored_at is None or former.wall >= stored_at:
        return former
    later = (stored_at - former.wall).total_seconds()
    return Moment(stored_at, former.monotonic + later) if later <= SHOWN_WITHIN else None


class WatchState(Struct, frozen=True, kw_only=True):
    """The polling state of one feed."""

    rules: WatchRules
    #: When the watch started or was last restarted.
    started_at: float
    restarts: int = 0
    #: Whether the match's breaker paused it, and it was not restarted since.
    is_paused: bool = False
    #: No poll before this time, because the page was not found.
    not_before: float = 0.0
    #: Why the last poll sent no request, or was only a canary for all matches of the site.
    postponement: Postponement | None = None

    #: The last poll, good or failed, or accepted entry; reset by a restart.
    tried_at: float | None = None
    #: The last poll of the match's own pages, good or failed; reset by a restart.
    polled_at: float | None = None
    #: When the last poll started.
    last_attempt_at: datetime | None = None
    #: The poll in progress: its answers so far, and when the last one arrived.
    answers: int = 0
    progress_at: float = 0.0

    #: When data was last accepted, or the watch first started: staleness counts from here. An entry counts from its
    #: arrival: a slow listing makes a match older, not stale.
    accepted_at: float
    #: When the last accepted data was requested, also by an earlier run: the published age counts from here.
    last_poll: Moment | None = None
    #: When the last stored change was requested.
    changed_at: datetime | None = None
    #: When the last full poll started.
    full_poll_at: datetime | None = None
    #: When the next full poll is due because of open findings, and how many there were.
    revisit_at: float | None = None
    revisits: int = 0

    activity: Activity
    backoff: ErrorBackoff = ErrorBackoff()
    #: Consecutive failed polls.
    failures: int = 0
    last_error: str | None = None
    total_polls: int = 0
    total_failures: int = 0

    #: The listing's last entry of the match; `None` while the listing does not show it.
    listed: ListingEntry | None = None
    absence: Absence = Absence()
    #: Whether a listing since the first 404 does not show the match.
    is_delisted: bool = False
    lag: Lag = Lag()
    #: Which page does not change, and how often the other one has changed since.
    still: Behind = Behind.NEITHER
    moves: int = 0

    @classmethod
    def starting(cls, row: MatchRow, rules: WatchRules, now: Moment, former: Moment | None = None) -> "WatchState":
        """Return the initial state; `former` is the last accepted poll of an earlier run."""
        return cls(
            rules=rules,
            started_at=now.monotonic,
            accepted_at=now.monotonic,
            last_poll=_last_poll_before(former, row.updated_at),
            changed_at=row.updated_at,
            activity=Activity(changed_at=now.monotonic),
        )

    # --- events ----------------------------------------------------------------------------------------------

    def after_listing(self, entry: ListingEntry | None) -> "WatchState":
        """Return the state after a listing with this entry of the match, or without one."""
        has_changed = entry is not None and self.listed is not None and entry.fingerprint != self.listed.fingerprint
        state = self.after_move(Behind.MATCH) if has_changed else self
        return replace(state, listed=entry, is_delisted=entry is None)

    def without_listing(self) -> "WatchState":
        """Return the state after a failed listing, which proves nothing about the match."""
        return replace(self, listed=None)

    def after_entry(self, own: ListingEntry | None, asked: Moment, now: Moment) -> "WatchState":
        """Return the state after an unchanged entry of a listing, which counts as a good poll."""
        at = now.monotonic
        state = replace(self, tried_at=at, postponement=None, activity=self.activity.after(at, is_news=False))
        return state._accepted(own, asked, at, now)

    def poll_started(self, now: Moment) -> "WatchState":
        return replace(self, last_attempt_at=now.wall, progress_at=now.monotonic, answers=0)

    def poll_progressed(self, answers: int, row: MatchRow, now: Moment) -> "WatchState":
        """Return the state during a poll. A poll with new answers is alive; one that hangs is not postponed."""
        if answers != self.answers:
            return replace(self, answers=answers, progress_at=now.monotonic)
        is_hung = now.monotonic - self.progress_at > self._restart_policy(row).stale_seconds
        return replace(self, postponement=None) if is_hung else self

    def after_poll(
        self, match: MatchState, started: Moment, now: Moment, *, errors: int, is_news: bool, is_full: bool
    ) -> "WatchState":
        """Return the state after a good poll; `errors` were retried successfully."""
        at = started.monotonic
        state = self.after_move(Behind.LIST) if is_news else self
        return replace(
            state._with_revisit(match, at),
            tried_at=at,
            polled_at=at,
            postponement=None,
            not_before=0.0,
            failures=0,
            last_error=None,
            absence=Absence(),
            changed_at=started.wall if is_news else self.changed_at,
            full_poll_at=started.wall if is_full else self.full_poll_at,
            activity=self.activity.after(at, is_news=is_news),
            backoff=self.backoff.after(at, errors=errors, calm_after=self.rules.cadence.calm_after),
        )._accepted(match.board, started, at, now)

    def after_failure(self, error: Exception, now: Moment, *, errors: int) -> "WatchState":
        """Return the state after a failed poll. Only errors of the site slow down the next polls."""
        at, is_canary = now.monotonic, isinstance(error, SourceError) and error.is_canary
        calm_after = self.rules.cadence.calm_after
        return replace(
            self,
            tried_at=at,
            polled_at=at,
            postponement=SOURCE_WIDE if is_canary else None,
            failures=self.failures + 1,
            total_failures=self.total_failures + 1,
            last_error=f"{type(error).__name__}: {error}",
            backoff=self.backoff.after(at, errors=errors, calm_after=calm_after) if errors else self.backoff,
        )

    def after_missing(self, now: Moment) -> "WatchState":
        """Return the state after a 404: no poll for a while."""
        apart = self.rules.cadence.not_found
        return replace(
            self,
            absence=self.absence.after_missing(now.monotonic, apart=apart),
            is_delisted=self.is_delisted and bool(self.absence.times),
            not_before=now.monotonic + apart,
        )

    def after_postponed(self, postponement: Postponement, now: Moment) -> "WatchState":
        """Return the state after a poll that sent no request, which proves nothing about the match."""
        return replace(self, tried_at=now.monotonic, postponement=postponement)

    def paused(self) -> "WatchState":
        """Return the state after the match's breaker opened. The watch restarts when it closes."""
        return replace(self, is_paused=True)

    def restarted(self, now: Moment) -> "WatchState":
        """Return the state after a restart. Activity and error backoff stay."""
        return replace(
            self,
            started_at=now.monotonic,
            restarts=self.restarts + 1,
            is_paused=False,
            not_before=0.0,
            tried_at=None,
            polled_at=None,
            failures=0,
        )

    def after_move(self, still: Behind) -> "WatchState":
        """Return the state after one page changed and the other (`still`) did not."""
        return replace(self, still=still, moves=self.moves + 1 if still is self.still else 1)

    def _accepted(self, own: ListingEntry | None, asked: Moment, at: float, now: Moment) -> "WatchState":
        """Count accepted data, unless the match's pages are known to be frozen."""
        behind = page_behind(own, self.listed, at - self.activity.changed_at)
        state = replace(self, lag=self.lag.after(at, behind), total_polls=self.total_polls + 1)
        return replace(
            state,
            accepted_at=self.accepted_at if state.is_outdated(at) else at,
            last_poll=self.last_poll if state.is_outdated(now.monotonic) else asked,
        )

    def _with_revisit(self, match: MatchState, now: float) -> "WatchState":
        """Plan a full poll while findings are open: a lagging event list or late names may have caught up."""
        if not (match.findings or match.has_unnamed):
            return replace(self, revisit_at=None, revisits=0)
        if self.revisit_at is None or now >= self.revisit_at:
            return replace(self, revisit_at=now + revisit_after(self.revisits), revisits=self.revisits + 1)
        return self

    # --- when to poll ----------------------------------------------------------------------------------------

    def interval(self, match: MatchState, now: Moment) -> PollInterval:
        row = match.row
        facts = IntervalInput(
            status=row.status,
            start_at=row.start_at,
            sync=match.sync,
            activity=self.activity,
            backoff=self.backoff,
            failures=self.failures,
            is_important=self.rules.is_important(row.title),
            is_silence_a_break=match.board is None or match.board.shows_every_change,
        )
        return poll_interval(facts, now.wall, now.monotonic, self.rules.cadence)

    def is_due(
        self, match: MatchState, now: Moment, *, paused_for: float, is_news: bool = False, minimum: float = 0.0
    ) -> bool:
        """Return whether a poll is due, at least `minimum` seconds after the last one.

        `paused_for` is how long the match's breaker stays open.
        """
        if paused_for or now.monotonic < self.not_before:
            return False
        if self.tried_at is not None and now.monotonic - self.tried_at < minimum:
            return False
        decide = is_due_for_news if is_news else is_due
        return decide(self.tried_at, self.interval(match, now), now.monotonic, self.rules.cadence)

    def signalled_poll_at(self, match: MatchState, now: Moment, *, paused_for: float) -> float | None:
        """Return when to poll after a signal of change; `None` after errors and while paused."""
        if paused_for or now.monotonic < self.not_before:
            return None
        return signalled_poll_at(self.tried_at, self.interval(match, now), now.monotonic)

    def needs_full_poll(self, match: MatchState, now: Moment) -> bool:
        """Return whether the next poll must be a full one."""
        is_revisit = self.revisit_at is not None and now.monotonic >= self.revisit_at
        return is_revisit or must_reread(match.row.completed_at, self.full_poll_at, now.wall)

    def needs_check(self, match: MatchState, now: Moment) -> bool:
        """Return whether the match's own pages must confirm the listing's report that nothing happens."""
        board, start_at = match.board, match.row.start_at
        if board is None or board.status is MatchStatus.COMPLETED:
            return False
        if board.status is MatchStatus.LIVE:
            return self.is_unchecked(now.monotonic, CHECK_AFTER)
        may_go_on = board.status is MatchStatus.BREAK or (start_at is not None and start_at <= now.wall)
        return may_go_on and self.is_unchecked(now.monotonic, CHECK_IN_BREAK_AFTER)

    def is_unchecked(self, now: float, check_after: float) -> bool:
        """Return whether for this long nothing changed, and the match's own pages were not polled."""
        if self.lag.behind is Behind.LIST:
            check_after = self.frozen_after / CHECKS_OF_A_LAG
        quiet_since = max(self.activity.changed_at, self.polled_at or self.started_at)
        return now - quiet_since >= check_after

    # --- status ----------------------------------------------------------------------------------------------

    @property
    def frozen_after(self) -> float:
        """Return how long listing and match must disagree before one counts as frozen."""
        return FROZEN_INTERVALS * self.rules.cadence.live

    def frozen(self, now: float) -> Lag | None:
        """Return which page is frozen, if any.

        Two pages may differ permanently. Only a page that stays the same while the other one changes is frozen.
        """
        has_changed = self.lag.behind is Behind.BOTH or (self.lag.behind is self.still and self.moves >= MOVES)
        return self.lag if has_changed and self.lag.has_lasted(now, self.frozen_after) else None

    def is_outdated(self, now: float) -> bool:
        """Return whether the match's own pages are known to show old data."""
        frozen = self.frozen(now)
        return frozen is not None and frozen.behind is Behind.MATCH

    def is_gone(self) -> bool:
        """Return whether the match was removed: repeated 404s, and no entry in a listing since the first."""
        return self.absence.is_gone(is_listed=not self.is_delisted)

    @property
    def last_poll_at(self) -> datetime | None:
        """Return the last accepted poll; before the first, the last stored change."""
        return self.last_poll.wall if self.last_poll else self.changed_at

    @property
    def last_poll_monotonic(self) -> float | None:
        return self.last_poll.monotonic if self.last_poll else None

    def age_at(self, now: Moment) -> float:
        """Return the seconds since the last accepted poll; 0 before the first."""
        if self.last_poll_at is None:
            return 0.0
        return max(0.0, now.seconds_since(self.last_poll_at, self.last_poll_monotonic))

    def is_stale(self, row: MatchRow, now: Moment) -> bool:
        """Return whether a match in play had no accepted poll for too long, for any reason."""
        return self._restart_input(row, is_polling=False).is_stale(now.monotonic, self._restart_policy(row))

    def restart_reason(
        self, row: MatchRow, now: Moment, *, paused_for: float, is_polling: bool
    ) -> RestartReason | None:
        """Return why the watch should be restarted; `None` if it should not."""
        if row.phase is Phase.PAUSED:
            return RestartReason.COOL_DOWN if self.is_paused and not paused_for else None
        return restart_reason(self._restart_input(row, is_polling=is_polling), now.monotonic, self._restart_policy(row))

    def _restart_input(self, row: MatchRow, *, is_polling: bool) -> RestartInput:
        return RestartInput(
            started_at=self.started_at,
            accepted_at=max(self.accepted_at, self.progress_at) if is_polling else self.accepted_at,
            failures=self.failures,
            is_in_play=row.status in IN_PLAY and row.phase is Phase.ACTIVE,
            is_quiet=self.activity.is_quiet,
            is_postponed=self.postponement is not None,
            is_first=not self.restarts,
        )

    def _restart_policy(self, row: MatchRow) -> WatchRestartPolicy:
        policy = self.rules.restarts
        if not self.rules.is_important(row.title):
            return policy
        return replace(policy, stale_seconds=policy.stale_seconds * IMPORTANT_SHARE)

    def may_be_archived(self, match: MatchState, now: Moment) -> bool:
        """Return whether the match needs no more polls. A correction that awaits confirmation counts as unread."""
        read_at = None if match.suspects else self.full_poll_at
        return may_be_archived(match.row.phase, match.row.completed_at, read_at, now.wall)

    def record(self, match: MatchState, now: Moment, *, paused_for: float) -> MonitoringRecord:
        row, interval, postponed = match.row, self.interval(match, now), self.postponement
        frozen = self.frozen(now.monotonic)
        not_before = max(self.not_before, now.monotonic + paused_for)
        return MonitoringRecord(
            match_id=row.match_id,
            ref=row.ref,
            phase=row.phase,
            status=row.status,
            sync=match.sync,
            last_poll_at=self.last_poll_at,
            last_poll_monotonic=self.last_poll_monotonic,
            start_at=row.start_at,
            last_attempt_at=self.last_attempt_at,
            not_before=now.on_the_wall(not_before) if not_before > now.monotonic else None,
            changed_at=self.changed_at,
            frozen_since=now.on_the_wall(frozen.since) if frozen else None,
            interval_seconds=interval.seconds,
            tempo=interval.reason.value,
            is_important=self.rules.is_important(row.title),
            restarts=self.restarts,
            consecutive_failures=self.failures,
            total_polls=self.total_polls,
            total_failures=self.total_failures,
            last_error=self.last_error,
            sport=row.sport,
            is_held=postponed is not None,
            is_shut_out=postponed is not None and postponed.is_source_wide,
            lacking=postponed.resource if postponed else None,
        )
