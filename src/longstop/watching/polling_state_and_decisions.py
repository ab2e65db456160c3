"""The polling state of one feed, and the decisions that follow from it. Pure.

`WatchState` is frozen: every event returns the next state. Losing it loses no data. Times of type `float` are
monotonic, those of type `datetime` are wall-clock times.
"""

from datetime import datetime, timedelta
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.errors import CircuitOpen, ResourcesExhausted, SourceError
from longstop.model.match import IN_PLAY, MatchRow, MatchStatus, Phase, Priority, priority_of
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.model.source_queries_and_answers import ListingEntry
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.sports.base import MatchState
from longstop.watching.poll_intervals_and_frozen_pages import (
    EARLY,
    Activity,
    Behind,
    ErrorBackoff,
    IntervalReason,
    Lag,
    PollInterval,
    RestartReason,
    WatchRules,
    must_reread,
    page_behind,
    revisit_after,
)

ARCHIVE_AFTER = timedelta(hours=24)
#: What was first seen, or completed, so recently may be of another match: it is polled at this interval.
NEW_FOR = timedelta(minutes=2)
NEW_SECONDS = 15.0
#: If the last full poll keeps failing, the match is archived after this additional time.
ARCHIVE_PATIENCE = timedelta(hours=2)
#: After this many consecutive failures, a match no longer shortens the listing's interval.
MANY_FAILURES = 5
#: More consecutive failed polls restart a watch.
MAX_FAILURES = 10
#: A match whose last answer was not believed is polled again after this time, whatever its status: such a poll may read
#: the whole event list, and a few of them must agree. After more than `MAX_FAILURES` in a row it is polled less often.
DOUBTED_SECONDS = 5.0
LONG_DOUBTED_SECONDS = 20.0
#: A restart waits for a quiet moment, at most for this share of the lifetime.
PATIENCE = 0.1
#: A match is gone after this many 404s, each long enough after the one before.
CONFIRMATIONS = 3
#: Minimum distance between polls that page signals trigger.
SIGNALLED_SECONDS = 1.0
#: After errors, polls start less early than usual.
EARLY_AFTER_ERRORS = 0.25
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


class WatchState(Struct, frozen=True, kw_only=True):
    """The polling state of one feed."""

    rules: WatchRules
    #: When the watch started or was last restarted.
    started_at: float
    restarts: int = 0
    #: Whether the match's breaker paused it, and it was not restarted since.
    is_paused: bool = False
    #: No poll before this time, because the page was not found, or the match's breaker is open.
    not_before: float = 0.0
    #: Why the last poll sent no request, or was only a canary for all matches of the site.
    postponement: Postponement | None = None

    #: The last poll, good or failed, or accepted entry; reset by a restart.
    tried_at: float | None = None
    #: The last poll of the match's own pages, good or failed, or the start of the watch.
    polled_at: float
    #: When the last poll started.
    last_attempt_at: datetime | None = None
    #: The poll in progress: its answers so far, and when the last one arrived.
    answers: int = 0
    progress_at: float = 0.0

    #: When the last accepted data was requested, or the watch first started: staleness counts from here.
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
    #: Whether the last poll had an answer that was not believed.
    is_doubted: bool = False
    last_error: str | None = None
    total_polls: int = 0
    total_failures: int = 0

    #: The listing's last entry of the match; `None` while the listing does not show it.
    listed: ListingEntry | None = None
    #: Consecutive 404s of the match's page, apart from those that followed too soon to be independent.
    missing: int = 0
    #: When the last counted one was.
    missing_at: float = -inf
    #: Whether a listing since the first 404 does not show the match.
    is_delisted: bool = False
    lag: Lag = Lag()

    @classmethod
    def starting(cls, row: MatchRow, rules: WatchRules, now: Moment, former: Moment | None = None) -> "WatchState":
        """Return the initial state; `former` is the last accepted poll of an earlier run."""
        return cls(
            rules=rules,
            started_at=now.monotonic,
            polled_at=now.monotonic,
            accepted_at=now.monotonic,
            last_poll=_newest_poll(former, row.updated_at, now),
            changed_at=row.updated_at,
            activity=Activity(changed_at=now.monotonic),
        )

    # --- events ----------------------------------------------------------------------------------------------

    def after_listing(self, entry: ListingEntry | None) -> "WatchState":
        """Return the state after a listing with this entry of the match, or without one."""
        has_changed = entry is not None and self.listed is not None and entry.fingerprint != self.listed.fingerprint
        lag = self.lag.after_change(Behind.MATCH) if has_changed else self.lag
        return replace(self, listed=entry, is_delisted=entry is None, lag=lag)

    def without_listing(self) -> "WatchState":
        """Return the state after a failed listing, which proves nothing about the match."""
        return replace(self, listed=None)

    def after_entry(self, own: ListingEntry | None, asked: Moment, now: Moment) -> "WatchState":
        """Return the state after an unchanged entry of a listing, which counts as a good poll."""
        at = now.monotonic
        state = replace(self, tried_at=at, postponement=None, activity=self.activity.after(at, is_news=False))
        return state._accepted(own, asked, now)

    def poll_started(self, now: Moment) -> "WatchState":
        return replace(self, last_attempt_at=now.wall, progress_at=now.monotonic, answers=0)

    def poll_progressed(self, answers: int, row: MatchRow, now: Moment) -> "WatchState":
        """Return the state during a poll. A poll with new answers is alive; one that hangs is not postponed."""
        if answers != self.answers:
            return replace(self, answers=answers, progress_at=now.monotonic)
        is_hung = now.monotonic - self.progress_at > self.rules.stale_after(row.title)
        return replace(self, postponement=None) if is_hung else self

    def after_poll(
        self, match: MatchState, started: Moment, now: Moment, *, errors: int, is_news: bool, is_full: bool
    ) -> "WatchState":
        """Return the state after a good poll; `errors` were retried successfully."""
        at = started.monotonic
        return replace(
            self._with_revisit(match, at),
            tried_at=at,
            polled_at=at,
            postponement=None,
            not_before=0.0,
            failures=0,
            is_doubted=False,
            last_error=None,
            missing=0,
            lag=self.lag.after_change(Behind.LIST) if is_news else self.lag,
            changed_at=started.wall if is_news else self.changed_at,
            full_poll_at=started.wall if is_full else self.full_poll_at,
            activity=self.activity.after(at, is_news=is_news),
            backoff=self.backoff.after(at, errors=errors, calm_after=self.rules.cadence.calm_after),
        )._accepted(match.board, started, now)

    def after_failure(self, error: Exception, now: Moment, *, errors: int) -> "WatchState":
        """Return the state after a failed poll. Only errors of the site slow down the next polls, doubts do not."""
        at, is_canary = now.monotonic, isinstance(error, SourceError) and error.is_canary
        is_doubted, calm_after = kind_of(error) is FailureKind.UNTRUSTED, self.rules.cadence.calm_after
        errors -= is_doubted
        return replace(
            self,
            tried_at=at,
            polled_at=at,
            postponement=SOURCE_WIDE if is_canary else None,
            failures=self.failures + 1,
            is_doubted=is_doubted,
            total_failures=self.total_failures + 1,
            last_error=f"{type(error).__name__}: {error}",
            backoff=self.backoff.after(at, errors=errors, calm_after=calm_after) if errors > 0 else self.backoff,
        )

    def after_missing(self, now: Moment) -> "WatchState":
        """Return the state after a 404: no poll for a while. Another 404 during this wait is not counted."""
        at, wait = now.monotonic, self.rules.cadence.not_found
        is_counted = at - self.missing_at >= wait
        return replace(
            self,
            missing=self.missing + is_counted,
            missing_at=at if is_counted else self.missing_at,
            is_delisted=self.is_delisted and bool(self.missing),
            not_before=at + wait,
        )

    def after_postponed(self, postponement: Postponement, now: Moment) -> "WatchState":
        """Return the state after a poll that sent no request, which proves nothing about the match."""
        return replace(self, tried_at=now.monotonic, postponement=postponement)

    def paused(self, until: float) -> "WatchState":
        """Return the state after the match's breaker opened. The watch restarts when it closes."""
        return replace(self, is_paused=True, not_before=until)

    def restarted(self, now: Moment) -> "WatchState":
        """Return the state after a restart. Activity and error backoff stay."""
        return replace(
            self,
            started_at=now.monotonic,
            restarts=self.restarts + 1,
            is_paused=False,
            tried_at=None,
            polled_at=now.monotonic,
            failures=0,
        )

    def _accepted(self, own: ListingEntry | None, asked: Moment, now: Moment) -> "WatchState":
        """Count accepted data, unless the match's pages are known to be frozen."""
        behind = page_behind(own, self.listed, now.monotonic - self.activity.changed_at)
        state = replace(self, lag=self.lag.after(now.monotonic, behind), total_polls=self.total_polls + 1)
        return (
            state if state.is_outdated(now.monotonic) else replace(state, accepted_at=asked.monotonic, last_poll=asked)
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
        """Return the interval between two polls. Errors only ever extend it."""
        usual = self._usual_interval(match, now)
        if self.is_doubted:
            seconds = DOUBTED_SECONDS if self.failures <= MAX_FAILURES else LONG_DOUBTED_SECONDS
            usual = PollInterval(seconds=seconds, reason=IntervalReason.ERRORS, minimum=seconds)
        if self.backoff.factor == 1.0:
            return usual
        slowed = self.rules.cadence.live * self.backoff.factor
        if slowed > usual.seconds:
            return PollInterval(seconds=slowed, reason=IntervalReason.ERRORS, minimum=slowed)
        return replace(usual, minimum=max(slowed, usual.minimum))

    def _usual_interval(self, match: MatchState, now: Moment) -> PollInterval:
        cadence = self.rules.cadence
        priority = priority_of(match.row.status, match.row.start_at, now.wall)
        if priority is Priority.LIVE:
            return self._live_interval(match, now)
        if (match.sync is SyncState.RECOVERING or match.suspects) and self.failures < MANY_FAILURES:
            return PollInterval(seconds=cadence.live, reason=IntervalReason.BASELINE)
        seconds, reason = cadence.upcoming, IntervalReason.UPCOMING
        if priority is Priority.IMMINENT:
            seconds, reason = cadence.imminent, IntervalReason.IMMINENT
        elif priority is Priority.COMPLETED:
            seconds, reason = cadence.completed, IntervalReason.COMPLETED
        is_new = now.wall - (match.row.completed_at or match.row.created_at) < NEW_FOR
        return PollInterval(seconds=min(seconds, NEW_SECONDS) if is_new else seconds, reason=reason)

    def _live_interval(self, match: MatchState, now: Moment) -> PollInterval:
        cadence = self.rules.cadence
        # In football, play goes on for long without a goal.
        is_silence_a_break = match.board is None or match.board.shows_every_change
        break_after = cadence.break_after if is_silence_a_break else inf
        # While polls fail or await a confirmation, it is unknown whether play has stopped.
        is_settled = not (self.failures or match.suspects or match.sync is SyncState.RECOVERING)
        if is_settled and self.activity.is_break(match.row.status, now.monotonic, break_after):
            return PollInterval(seconds=cadence.in_break, reason=IntervalReason.BREAK)
        if self.rules.is_important(match.row.title):
            return PollInterval(seconds=min(cadence.busy, cadence.live), reason=IntervalReason.IMPORTANT)
        if self.activity.is_busy:
            return PollInterval(seconds=min(cadence.busy, cadence.live), reason=IntervalReason.BUSY)
        return PollInterval(seconds=cadence.live, reason=IntervalReason.BASELINE)

    def is_due(self, match: MatchState, now: Moment, *, is_news: bool = False, minimum: float = 0.0) -> bool:
        """Return whether a poll is due, at least `minimum` seconds after the last one.

        Errors delay a poll of a match with news, a break does not.
        """
        if now.monotonic < self.not_before:
            return False
        if self.tried_at is None:
            return True
        interval, live = self.interval(match, now), self.rules.cadence.live
        seconds = max(interval.minimum, min(interval.seconds, live)) if is_news else interval.seconds
        early = EARLY_AFTER_ERRORS if interval.minimum else EARLY
        return now.monotonic - self.tried_at >= max(minimum, seconds - early * live)

    def signalled_poll_at(self, match: MatchState, now: Moment) -> float | None:
        """Return when to poll after the page signalled a change; `None` after errors and while paused."""
        if now.monotonic < self.not_before or self.interval(match, now).minimum:
            return None
        return now.monotonic if self.tried_at is None else max(now.monotonic, self.tried_at + SIGNALLED_SECONDS)

    def needs_full_poll(self, match: MatchState, now: Moment) -> bool:
        """Return whether the next poll must be a full one."""
        is_revisit = self.revisit_at is not None and now.monotonic >= self.revisit_at
        return is_revisit or must_reread(match.row.completed_at, self.full_poll_at, now.wall)

    def needs_check(self, match: MatchState, now: Moment) -> bool:
        """Return whether the match's own pages must confirm the listing's report that nothing happens."""
        board, start_at = match.board, match.row.start_at
        if board is None or board.status is MatchStatus.COMPLETED:
            return False
        unchecked = now.monotonic - max(self.activity.changed_at, self.polled_at)
        if board.status is MatchStatus.LIVE:
            return unchecked >= CHECK_AFTER
        may_go_on = board.status is MatchStatus.BREAK or (start_at is not None and start_at <= now.wall)
        return may_go_on and unchecked >= CHECK_IN_BREAK_AFTER

    def may_be_archived(self, match: MatchState, now: Moment) -> bool:
        """Return whether a match ended long enough ago, and had its last full poll."""
        row = match.row
        if row.phase is not Phase.COMPLETED or row.completed_at is None:
            return False
        # A correction that awaits confirmation counts as unread.
        read_at, ended_for = (None if match.suspects else self.full_poll_at), now.wall - row.completed_at
        is_read = not must_reread(row.completed_at, read_at, now.wall)
        return ended_for >= ARCHIVE_AFTER and (is_read or ended_for >= ARCHIVE_AFTER + ARCHIVE_PATIENCE)

    # --- status ----------------------------------------------------------------------------------------------

    def frozen(self, now: float) -> Lag | None:
        """Return which page is frozen, if any."""
        return self.lag if self.lag.is_frozen(now, self.rules.cadence.frozen_after) else None

    def is_outdated(self, now: float) -> bool:
        """Return whether the match's own pages are known to show old data."""
        frozen = self.frozen(now)
        return frozen is not None and frozen.behind is Behind.MATCH

    def is_gone(self) -> bool:
        """Return whether the match was removed: repeated 404s, and no entry in a listing since the first."""
        return self.missing >= CONFIRMATIONS and self.is_delisted

    def is_stale(self, row: MatchRow, now: Moment, *, is_polling: bool = False) -> bool:
        """Return whether a match in play had no accepted poll for too long, nor an answer of the poll in progress."""
        progress_at = max(self.accepted_at, self.progress_at) if is_polling else self.accepted_at
        is_silent = now.monotonic - progress_at > self.rules.stale_after(row.title)
        return is_silent and row.status in IN_PLAY and row.phase is Phase.ACTIVE

    def restart_reason(self, row: MatchRow, now: Moment, *, is_polling: bool) -> RestartReason | None:
        """Return why the watch should be restarted; `None` if it should not."""
        if row.phase is Phase.PAUSED:
            return RestartReason.COOL_DOWN if self.is_paused and now.monotonic >= self.not_before else None
        if self.postponement is not None:  # a restart would not help
            return None
        age, rules = now.monotonic - self.started_at, self.rules
        is_new = age <= rules.stale_after(row.title)
        if self.is_stale(row, now, is_polling=is_polling) and not is_new:
            return RestartReason.STALE
        # If a restart did not help, wait before the next one.
        if self.failures > MAX_FAILURES and not (self.restarts and is_new):
            return RestartReason.ERRORS
        if age > rules.lifetime_seconds * (1 if self.activity.is_quiet else 1 + PATIENCE):
            return RestartReason.LIFETIME
        return None

    def record(self, match: MatchState, now: Moment) -> MonitoringRecord:
        row, interval, postponed = match.row, self.interval(match, now), self.postponement
        frozen = self.frozen(now.monotonic)
        return MonitoringRecord(
            match_id=row.match_id,
            ref=row.ref,
            phase=row.phase,
            status=row.status,
            sync=match.sync,
            # Before the first accepted poll, the last stored change.
            last_poll_at=self.last_poll.wall if self.last_poll else self.changed_at,
            last_poll_monotonic=self.last_poll.monotonic if self.last_poll else None,
            start_at=row.start_at,
            last_attempt_at=self.last_attempt_at,
            not_before=now.on_the_wall(self.not_before) if self.not_before > now.monotonic else None,
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


def _newest_poll(former: Moment | None, stored: datetime | None, now: Moment) -> Moment | None:
    """Return the last accepted poll of an earlier run, or the change that it stored later and had not published.

    The time of a change is wall time: if more of it has passed than time itself, the clock jumped in between.
    """
    if former is None or stored is None:
        return former
    later = (stored - former.wall).total_seconds()
    return Moment(stored, former.monotonic + later) if 0 < later <= now.monotonic - former.monotonic else former
