"""What is known about how the polling of one feed goes, and what follows from it. Pure.

`WatchState` is frozen: everything that happens returns the next state. It can be lost without losing data. Moments are
monotonic where their type is `float`, and on the wall clock where it is `datetime`.
"""

from collections import deque
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.errors import CircuitOpen, ResourcesExhausted, SourceError
from longstop.model.match import IN_PLAY, MatchStatus, MonitoringRecord, Phase
from longstop.model.observation import ListingEntry
from longstop.sports.base import MatchState
from longstop.storage.base import MatchRow
from longstop.watching.cadence import (
    MINUTE,
    Course,
    Life,
    Pace,
    RestartPolicy,
    RestartReason,
    Rhythm,
    Tempo,
    WatchRules,
    hurried_at,
    is_due,
    is_due_for_news,
    may_be_archived,
    must_reread,
    restart_reason,
    revisit_after,
    tempo_of,
)

#: A match is gone after its page was not found this often, each time long enough after the last.
CONFIRMATIONS = 3
#: An important match counts as stale in half the time.
IMPORTANT_SHARE = 0.5
#: What is stored is shown within so many seconds.
SHOWN_WITHIN = 5.0

#: A disagreement of listing and match that lasts for this many usual intervals is no cache: 30 s.
FROZEN_INTERVALS = 12
#: One page must have moved this often while the other stood still.
MOVES = 2
#: How often a match is polled while a lag of the listing turns out to be a frozen listing.
CHECKS_OF_A_LAG = 3
#: A match in play whose line has not moved for this long is polled.
CHECK_AFTER = 60.0
#: The same for one of which no play is expected now: in a break, or past its start and not begun.
CHECK_IN_BREAK_AFTER = 300.0
#: Without an announced break, no game stands still for this long: then both pages are taken for frozen.
SILENT_AFTER = 600.0

#: The error window counts no further than this.
MAX_COUNTED = 200


# --- why the site could not be asked --------------------------------------------------------------------------------


class Obstacle(Struct, frozen=True, kw_only=True):
    """Why a poll asked nothing."""

    #: Whether the circuit of the site is open, or the site refuses us: that holds for all of its matches.
    is_shut_out: bool = False
    #: The resource of which this machine ran out.
    lacking: str | None = None

    @classmethod
    def of(cls, error: Exception) -> "Obstacle":
        """Return what an error says about it. Subclasses of `CircuitOpen` concern our own queues and savings."""
        return cls(
            is_shut_out=type(error) is CircuitOpen,
            lacking=error.resource if isinstance(error, ResourcesExhausted) else None,
        )


SHUT_OUT = Obstacle(is_shut_out=True)


# --- whether the page was not found ---------------------------------------------------------------------------------


class Absence(Struct, frozen=True, kw_only=True):
    """How often in a row a match's page was not found."""

    times: int = 0
    #: When it was counted last.
    counted_at: float = 0.0

    def after_missing(self, now: float, *, apart: float) -> "Absence":
        """Count one more, unless it comes too soon after the last one to say anything new."""
        if self.times and now - self.counted_at < apart:
            return self
        return replace(self, times=self.times + 1, counted_at=now)

    def is_gone(self, *, is_listed: bool) -> bool:
        return self.times >= CONFIRMATIONS and not is_listed


# --- whether one page stands still while the other moves ------------------------------------------------------------


class Behind(StrEnum):
    """Which page shows less than is known to have been played.

    The listing and a match's own pages are two witnesses of the same play. A brief disagreement is a cache; one that
    lasts is a frozen page, which by itself looks exactly like a break.
    """

    NOBODY = "nobody"
    MATCH = "match"
    LIST = "list"
    #: Neither page moves, and only the clock says that one should.
    BOTH = "both"


WITNESS = {Behind.MATCH: "list", Behind.LIST: "match", Behind.BOTH: "clock"}


class Lag(Struct, frozen=True, kw_only=True):
    """Which page is behind, and since when."""

    behind: Behind = Behind.NOBODY
    since: float = 0.0

    def after(self, now: float, behind: Behind) -> "Lag":
        return self if behind is self.behind else Lag(behind=behind, since=now)

    def has_lasted(self, now: float, frozen_after: float) -> bool:
        if self.behind is Behind.BOTH:
            return True
        return self.behind is not Behind.NOBODY and now - self.since >= frozen_after


def who_is_behind(own: ListingEntry | None, listed: ListingEntry | None, unchanged_seconds: float) -> Behind:
    """Return which of two scoreboards of the same match shows less than the other."""
    if own is None or listed is None:
        return Behind.NOBODY
    if own.shows_less_than(listed):
        return Behind.MATCH
    if listed.shows_less_than(own):
        return Behind.LIST
    # Where much of the play changes nothing that is shown, standing still is usual.
    is_silent = own.tells_all and own.status is MatchStatus.LIVE and unchanged_seconds >= SILENT_AFTER
    return Behind.BOTH if is_silent else Behind.NOBODY


# --- the state ------------------------------------------------------------------------------------------------------


def _youngest(former: Moment | None, stored_at: datetime | None) -> Moment | None:
    """Return the last accepted poll of an earlier run, on both clocks; `None` when only the wall clock knows it.

    A scraper that was killed may have stored a change without showing it: the two are then a moment apart, and what
    lies between them counts on the other clock too.
    """
    if former is None or stored_at is None or former.wall >= stored_at:
        return former
    later = (stored_at - former.wall).total_seconds()
    return Moment(stored_at, former.monotonic + later) if later <= SHOWN_WITHIN else None


class WatchState(Struct, frozen=True, kw_only=True):
    """How the polling of one feed goes: what the next decisions about it are made on."""

    rules: WatchRules
    #: When the watch started or was last restarted.
    began: float
    restarts: int = 0
    #: Whether the match's breaker has paused it and it was not restarted since.
    is_paused: bool = False
    #: No poll before this moment, because the page was not found.
    rest_until: float = 0.0
    #: Why the last poll asked nothing, or was only a canary for all matches of the site.
    obstacle: Obstacle | None = None

    #: The last poll or accepted line, good or not; a restart forgets it.
    tried_at: float | None = None
    #: The last poll of the match's own pages, good or not; a restart forgets it.
    polled_at: float | None = None
    #: When the last poll started.
    last_attempt_at: datetime | None = None
    #: Within the poll that is under way: its answers so far, and when the last one came.
    answers: int = 0
    progress_at: float = 0.0

    #: When something was last accepted, or the watch first started: staleness counts from here. A line counts from its
    #: arrival: a slow listing makes a match older, not stale.
    good_at: float
    #: When what was last accepted was asked for, also by an earlier run: the age that is shown counts from here.
    last_poll: Moment | None = None
    #: When the last stored change was asked for.
    changed_at: datetime | None = None
    #: When the last full poll started.
    full_poll_at: datetime | None = None
    #: When the next full poll is due because something about the match is open, and how many there were.
    revisit_at: float | None = None
    visits: int = 0

    rhythm: Rhythm
    pace: Pace = Pace()
    #: Failed polls in a row.
    failures: int = 0
    last_error: str | None = None
    total_polls: int = 0
    total_failures: int = 0

    #: The listing's last line of the match; `None` while the listing does not show it.
    listed: ListingEntry | None = None
    absence: Absence = Absence()
    #: Whether a listing that was read since the page was first missing does not show the match.
    is_delisted: bool = False
    lag: Lag = Lag()
    #: Which page stands still, and how often the other one has moved since.
    still: Behind = Behind.NOBODY
    moves: int = 0

    @classmethod
    def starting(cls, row: MatchRow, rules: WatchRules, now: Moment, former: Moment | None = None) -> "WatchState":
        """Return the state of a watch that starts; `former` is the last accepted poll of an earlier run."""
        return cls(
            rules=rules,
            began=now.monotonic,
            good_at=now.monotonic,
            last_poll=_youngest(former, row.updated_at),
            changed_at=row.updated_at,
            rhythm=Rhythm(changed_at=now.monotonic),
        )

    # --- what happens ----------------------------------------------------------------------------------------

    def after_listing(self, line: ListingEntry | None) -> "WatchState":
        """Return the state after a listing: with its line of the match, or `None` if it does not show the match."""
        has_moved = line is not None and self.listed is not None and line.fingerprint != self.listed.fingerprint
        state = self.after_move(Behind.MATCH) if has_moved else self
        return replace(state, listed=line, is_delisted=line is None)

    def without_listing(self) -> "WatchState":
        """Return the state after a listing that was not read: it is no witness, for or against anything."""
        return replace(self, listed=None)

    def after_line(self, own: ListingEntry | None, asked: Moment, now: Moment) -> "WatchState":
        """Return the state after an unchanged line of a listing, which counts as a good poll."""
        at = now.monotonic
        state = replace(self, tried_at=at, obstacle=None, rhythm=self.rhythm.after(at, is_news=False))
        return state._accepted(own, asked, at, now)

    def poll_started(self, now: Moment) -> "WatchState":
        return replace(self, last_attempt_at=now.wall, progress_at=now.monotonic, answers=0)

    def poll_progressed(self, answers: int, row: MatchRow, now: Moment) -> "WatchState":
        """Return the state amid a poll: one whose answers come is alive, and no obstacle excuses one that hangs."""
        if answers != self.answers:
            return replace(self, answers=answers, progress_at=now.monotonic)
        is_hung = now.monotonic - self.progress_at > self._restart_policy(row).stale_seconds
        return replace(self, obstacle=None) if is_hung else self

    def after_poll(
        self, match: MatchState, began: Moment, now: Moment, *, errors: int, is_news: bool, is_full: bool
    ) -> "WatchState":
        """Return the state after a good poll, with the errors it met on the way."""
        at = began.monotonic
        state = self.after_move(Behind.LIST) if is_news else self
        return replace(
            state._with_revisit(match, at),
            tried_at=at,
            polled_at=at,
            obstacle=None,
            rest_until=0.0,
            failures=0,
            last_error=None,
            absence=Absence(),
            changed_at=began.wall if is_news else self.changed_at,
            full_poll_at=began.wall if is_full else self.full_poll_at,
            rhythm=self.rhythm.after(at, is_news=is_news),
            pace=self.pace.after(at, errors=errors, calm_after=self.rules.cadence.calm_after),
        )._accepted(match.board, began, at, now)

    def after_failure(self, error: Exception, now: Moment, *, errors: int) -> "WatchState":
        """Return the state after a failed poll; one without an error of the site does not count for the pace."""
        at, is_canary = now.monotonic, isinstance(error, SourceError) and error.is_canary
        calm_after = self.rules.cadence.calm_after
        return replace(
            self,
            tried_at=at,
            polled_at=at,
            obstacle=SHUT_OUT if is_canary else None,
            failures=self.failures + 1,
            total_failures=self.total_failures + 1,
            last_error=f"{type(error).__name__}: {error}",
            pace=self.pace.after(at, errors=errors, calm_after=calm_after) if errors else self.pace,
        )

    def after_missing(self, now: Moment) -> "WatchState":
        """Return the state after a page that was not found: no poll for a while."""
        apart = self.rules.cadence.not_found
        return replace(
            self,
            absence=self.absence.after_missing(now.monotonic, apart=apart),
            is_delisted=self.is_delisted and bool(self.absence.times),
            rest_until=now.monotonic + apart,
        )

    def after_obstacle(self, obstacle: Obstacle, now: Moment) -> "WatchState":
        """Return the state after a poll that asked nothing: it says nothing about the match."""
        return replace(self, tried_at=now.monotonic, obstacle=obstacle)

    def paused(self) -> "WatchState":
        """Return the state after the match's breaker opened; when it closes, the watch is restarted."""
        return replace(self, is_paused=True)

    def restarted(self, now: Moment) -> "WatchState":
        """Return the state of a watch that is restarted: what is known of the game and of the errors stays."""
        return replace(
            self,
            began=now.monotonic,
            restarts=self.restarts + 1,
            is_paused=False,
            rest_until=0.0,
            tried_at=None,
            polled_at=None,
            failures=0,
        )

    def after_move(self, still: Behind) -> "WatchState":
        """Return the state after one page has moved while the other stood still."""
        return replace(self, still=still, moves=self.moves + 1 if still is self.still else 1)

    def _accepted(self, own: ListingEntry | None, asked: Moment, at: float, now: Moment) -> "WatchState":
        """Count something accepted at a moment, unless the match's pages are known to be frozen."""
        behind = who_is_behind(own, self.listed, at - self.rhythm.changed_at)
        state = replace(self, lag=self.lag.after(at, behind), total_polls=self.total_polls + 1)
        return replace(
            state,
            good_at=self.good_at if state.is_blind(at) else at,
            last_poll=self.last_poll if state.is_blind(now.monotonic) else asked,
        )

    def _with_revisit(self, match: MatchState, now: float) -> "WatchState":
        """Plan a full poll while something is open: an event list that lagged, or late names, may have caught up."""
        if not (match.findings or match.has_unnamed):
            return replace(self, revisit_at=None, visits=0)
        if self.revisit_at is None or now >= self.revisit_at:
            return replace(self, revisit_at=now + revisit_after(self.visits), visits=self.visits + 1)
        return self

    # --- when to poll ----------------------------------------------------------------------------------------

    def tempo(self, match: MatchState, now: Moment) -> Tempo:
        row = match.row
        course = Course(
            status=row.status,
            start_at=row.start_at,
            sync=match.sync,
            rhythm=self.rhythm,
            pace=self.pace,
            failures=self.failures,
            is_important=self.rules.is_important(row.title),
            is_silence_a_break=match.board is None or match.board.tells_all,
        )
        return tempo_of(course, now.wall, now.monotonic, self.rules.cadence)

    def is_due(
        self, match: MatchState, now: Moment, *, paused_for: float, is_news: bool = False, at_least: float = 0.0
    ) -> bool:
        """Return whether a poll is due, at least so many seconds after the last one.

        `paused_for` is how long the match's breaker stays open.
        """
        if paused_for or now.monotonic < self.rest_until:
            return False
        if self.tried_at is not None and now.monotonic - self.tried_at < at_least:
            return False
        decide = is_due_for_news if is_news else is_due
        return decide(self.tried_at, self.tempo(match, now), now.monotonic, self.rules.cadence)

    def hurried_at(self, match: MatchState, now: Moment, *, paused_for: float) -> float | None:
        """Return when a signal of change may be followed; `None` after errors and while paused."""
        if paused_for or now.monotonic < self.rest_until:
            return None
        return hurried_at(self.tried_at, self.tempo(match, now), now.monotonic)

    def wants_full(self, match: MatchState, now: Moment) -> bool:
        """Return whether the next poll must be a full one."""
        is_revisit = self.revisit_at is not None and now.monotonic >= self.revisit_at
        return is_revisit or must_reread(match.row.completed_at, self.full_poll_at, now.wall)

    def wants_check(self, match: MatchState, now: Moment) -> bool:
        """Return whether the match's own pages must confirm what the listing says: that nothing happens."""
        board, start_at = match.board, match.row.start_at
        if board is None or board.status is MatchStatus.COMPLETED:
            return False
        if board.status is MatchStatus.LIVE:
            return self.is_unchecked(now.monotonic, CHECK_AFTER)
        may_go_on = board.status is MatchStatus.BREAK or (start_at is not None and start_at <= now.wall)
        return may_go_on and self.is_unchecked(now.monotonic, CHECK_IN_BREAK_AFTER)

    def is_unchecked(self, now: float, check_after: float) -> bool:
        """Return whether nothing has changed, and the match's own pages were not polled, for so long."""
        if self.lag.behind is Behind.LIST:
            check_after = self.frozen_after / CHECKS_OF_A_LAG
        quiet_since = max(self.rhythm.changed_at, self.polled_at or self.began)
        return now - quiet_since >= check_after

    # --- how it goes -----------------------------------------------------------------------------------------

    @property
    def frozen_after(self) -> float:
        """Return how long a disagreement of listing and match must last to be a frozen page."""
        return FROZEN_INTERVALS * self.rules.cadence.live

    def frozen(self, now: float) -> Lag | None:
        """Return which page stands still while play goes on, if one does.

        Two pages may differ for good; only one that stands still while the other *moves* is frozen.
        """
        has_moved = self.lag.behind is Behind.BOTH or (self.lag.behind is self.still and self.moves >= MOVES)
        return self.lag if has_moved and self.lag.has_lasted(now, self.frozen_after) else None

    def is_blind(self, now: float) -> bool:
        """Return whether what the match's own pages show is known to be old."""
        frozen = self.frozen(now)
        return frozen is not None and frozen.behind is Behind.MATCH

    def is_gone(self) -> bool:
        """Return whether the match is gone for good: its page again and again, and its line in a listing since."""
        return self.absence.is_gone(is_listed=not self.is_delisted)

    @property
    def last_poll_at(self) -> datetime | None:
        """Return the last accepted poll; before the first, the last stored change is what we can vouch for."""
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
        """Return whether a match in play was not read for too long, for whatever reason."""
        return self.life(row, is_polling=False).is_stale(now.monotonic, self._restart_policy(row))

    def restart_reason(
        self, row: MatchRow, now: Moment, *, paused_for: float, is_polling: bool
    ) -> RestartReason | None:
        """Return why the watch should be restarted; `None` while it should not."""
        if row.phase is Phase.PAUSED:
            return RestartReason.COOL_DOWN if self.is_paused and not paused_for else None
        return restart_reason(self.life(row, is_polling=is_polling), now.monotonic, self._restart_policy(row))

    def life(self, row: MatchRow, *, is_polling: bool) -> Life:
        """Return what a restart is decided on."""
        return Life(
            began=self.began,
            good_at=max(self.good_at, self.progress_at) if is_polling else self.good_at,
            failures=self.failures,
            is_in_play=row.status in IN_PLAY and row.phase is Phase.ACTIVE,
            is_quiet=self.rhythm.is_quiet,
            is_held=self.obstacle is not None,
            is_first=not self.restarts,
        )

    def _restart_policy(self, row: MatchRow) -> RestartPolicy:
        policy = self.rules.restarts
        if not self.rules.is_important(row.title):
            return policy
        return replace(policy, stale_seconds=policy.stale_seconds * IMPORTANT_SHARE)

    def may_be_archived(self, match: MatchState, now: Moment) -> bool:
        """Return whether the match needs no more polls; an edit that awaits its second poll is not read yet."""
        read_at = None if match.suspects else self.full_poll_at
        return may_be_archived(match.row.phase, match.row.completed_at, read_at, now.wall)

    def record(self, match: MatchState, now: Moment, *, paused_for: float) -> MonitoringRecord:
        row, tempo, frozen, obstacle = match.row, self.tempo(match, now), self.frozen(now.monotonic), self.obstacle
        rest_until = max(self.rest_until, now.monotonic + paused_for)
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
            not_before=now.on_the_wall(rest_until) if rest_until > now.monotonic else None,
            changed_at=self.changed_at,
            frozen_since=now.on_the_wall(frozen.since) if frozen else None,
            interval_seconds=tempo.seconds,
            tempo=tempo.why.value,
            is_important=self.rules.is_important(row.title),
            restarts=self.restarts,
            consecutive_failures=self.failures,
            total_polls=self.total_polls,
            total_failures=self.total_failures,
            last_error=self.last_error,
            sport=row.sport,
            is_held=obstacle is not None,
            is_shut_out=obstacle is not None and obstacle.is_shut_out,
            lacking=obstacle.lacking if obstacle else None,
        )


# --- how many errors there were within a minute ---------------------------------------------------------------------


class Crowd(Struct, frozen=True, kw_only=True):
    """More errors within a minute than allowed."""

    errors: int
    types: dict[str, int]


class ErrorWindow:
    """A sliding minute. It reports once when the threshold is passed, and again only after a calm."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._seen: deque[tuple[float, str]] = deque(maxlen=MAX_COUNTED)
        self._is_reported = False

    def add(self, now: float, types: dict[str, int]) -> Crowd | None:
        """Count the errors of one poll; return what to report when they have become too many."""
        self._seen.extend((now, name) for name, times in types.items() for _ in range(times))
        while self._seen and now - self._seen[0][0] >= MINUTE:
            self._seen.popleft()
        is_crowded = len(self._seen) > self._threshold
        is_news, self._is_reported = is_crowded and not self._is_reported, is_crowded
        return Crowd(errors=len(self._seen), types=self._counts()) if is_news else None

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for _, name in self._seen:
            counts[name] = counts.get(name, 0) + 1
        return dict(sorted(counts.items()))
