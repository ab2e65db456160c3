"""What determines when to poll: the operator's settings, a match's activity, its errors, and frozen pages. Pure.

`WatchState` holds these values for one feed, and decides.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import ListingEntry
from longstop.resilience.breaker import BreakerPolicy, match_policy

#: Sites correct results later: a full poll is due at these times after the end of a match.
REREAD_AFTER = (timedelta(hours=2), timedelta(hours=6), timedelta(hours=24))
#: A match with open findings gets a full poll after 10, 20, 40 … seconds, then every five minutes.
FIRST_REVISIT_SECONDS = 10.0
LAST_REVISIT_SECONDS = 300.0
#: Polls start on a tick, or slightly later when they had to queue. A poll may start this share of an interval early;
#: otherwise it would wait for another tick.
EARLY = 0.5
#: An important match is stale after half the usual time.
IMPORTANT_SHARE = 0.5

#: Activity is measured over this many cycles.
CYCLES = 10
#: A match is busy when more than this share of the cycles brought news.
BUSY_SHARE = 0.5

MINUTE = 60.0
#: (errors, factor): from this many errors on, the interval grows by the factor: 5, 10 and 20 s at the usual 2.5 s.
STEPS: tuple[tuple[int, float], ...] = ((20, 8.0), (10, 4.0), (5, 2.0))
FIRST_STEP, LAST_STEP = STEPS[-1][0], STEPS[0][0]
#: An error after at least this many good polls is isolated. With a lower number, an error rate that starts a slow
#: phase could count as isolated errors within it, and the interval would oscillate.
GOOD_BETWEEN_ACCIDENTS = 7

_MATCH_POLICY = match_policy()


# --- the operator's settings ----------------------------------------------------------------------------------------


class Cadence(Struct, frozen=True, kw_only=True):
    """Poll intervals, in seconds."""

    live: float = 2.5
    busy: float = 2.0
    in_break: float = 30.0
    #: Without a change for this long, play has stopped.
    break_after: float = 180.0
    imminent: float = 60.0
    upcoming: float = 3600.0
    completed: float = 300.0
    #: How often to read the listing when no match needs it sooner.
    discovery: float = 60.0
    #: How long errors must be rare before the usual interval returns.
    calm_after: float = 300.0
    #: A page that was not found is not requested again for this long.
    not_found: float = 60.0

    @property
    def frozen_after(self) -> float:
        """Return how long listing and match must disagree before one counts as frozen: longer than a cache lasts."""
        return FROZEN_INTERVALS * self.live


class WatchRules(Struct, frozen=True, kw_only=True):
    """When to poll, restart, pause and alert."""

    cadence: Cadence = Cadence()
    #: A watch is restarted at this age, and when a match in play had no accepted poll for this long.
    lifetime_seconds: float = 6 * 3600.0
    stale_seconds: float = 300.0
    breaker: BreakerPolicy = _MATCH_POLICY
    #: More errors of one match within a minute are reported.
    max_errors: int = 10
    #: Lower-case words; a match whose title contains one is important.
    important: tuple[str, ...] = ()

    def is_important(self, title: str) -> bool:
        return any(word in title.lower() for word in self.important)

    def stale_after(self, title: str) -> float:
        return self.stale_seconds * (IMPORTANT_SHARE if self.is_important(title) else 1.0)


# --- activity -------------------------------------------------------------------------------------------------------


class Activity(Struct, frozen=True, kw_only=True):
    """The last cycles of a match, newest last. A cycle is one poll, or one entry of the listing."""

    #: When something last changed, or the watch started.
    changed_at: float
    #: Whether each of the last cycles brought news.
    news: tuple[bool, ...] = ()

    def after(self, now: float, *, is_news: bool) -> "Activity":
        return Activity(changed_at=now if is_news else self.changed_at, news=(*self.news, is_news)[-CYCLES:])

    @property
    def is_busy(self) -> bool:
        return len(self.news) == CYCLES and sum(self.news) > BUSY_SHARE * CYCLES

    @property
    def is_quiet(self) -> bool:
        """Return whether the last cycles brought no news: a good moment for a restart."""
        return len(self.news) == CYCLES and not any(self.news)

    def is_break(self, status: MatchStatus, now: float, break_after: float) -> bool:
        """Return whether play has stopped. Balls are 30 s apart, so a few unchanged polls are not enough."""
        if status is MatchStatus.BREAK and self.is_quiet:
            return True
        return now - self.changed_at >= break_after


# --- slowing down after errors --------------------------------------------------------------------------------------


class ErrorBackoff(Struct, frozen=True, kw_only=True):
    """The recent errors of a match, and how much they slow down its polls.

    Five errors within a minute start a slow phase. More errors slow it down further. It ends once errors have been rare
    for some minutes. Rare means a share of the polls, not a number per minute: a match polled every 20 seconds never
    has five errors a minute, and would speed up while every poll still fails.
    """

    #: Times of the errors within the last minute, limited to those that matter.
    recent: tuple[float, ...] = ()
    #: Errors of the slow phase; 0 outside of one.
    errors: int = 0
    #: When errors were last frequent.
    bad_at: float = 0.0
    #: Good polls since the last error.
    good: int = 0

    def after(self, now: float, *, errors: int, calm_after: float) -> "ErrorBackoff":
        """Return the backoff after a poll with this many errors, whether or not the poll succeeded in the end."""
        if not errors:
            is_over = self.errors and now - self.bad_at >= calm_after
            return replace(ErrorBackoff() if is_over else self, good=self.good + 1)
        latest = (*self.recent, *[now] * min(errors, LAST_STEP))
        recent = tuple(at for at in latest if now - at < MINUTE)[-LAST_STEP:]
        if not self.errors:
            total, bad_at = (len(recent) if len(recent) >= FIRST_STEP else 0), now
        elif self.good >= GOOD_BETWEEN_ACCIDENTS:
            total, bad_at = self.errors, self.bad_at
        else:
            total, bad_at = self.errors + errors, now
        return ErrorBackoff(recent=recent, errors=total, bad_at=bad_at)

    @property
    def factor(self) -> float:
        return next((factor for errors, factor in STEPS if self.errors >= errors), 1.0)


# --- the interval ---------------------------------------------------------------------------------------------------


class IntervalReason(StrEnum):
    BASELINE = "baseline"
    BUSY = "busy"
    IMPORTANT = "important"
    BREAK = "break"
    ERRORS = "errors"
    IMMINENT = "imminent"
    UPCOMING = "upcoming"
    COMPLETED = "completed"


class PollInterval(Struct, frozen=True, kw_only=True):
    seconds: float
    reason: IntervalReason
    #: After errors, polls are at least this far apart, even with news; 0 without errors.
    minimum: float = 0.0


def revisit_after(revisits: int) -> float:
    """Return the seconds until the next full poll of a match with open findings, after this many full polls."""
    return min(FIRST_REVISIT_SECONDS * 2.0 ** min(revisits, 10), LAST_REVISIT_SECONDS)


def listing_interval(intervals: Iterable[PollInterval], cadence: Cadence) -> float:
    """Return the interval between two listings: that of the most urgent match."""
    return min([cadence.discovery, *(interval.seconds for interval in intervals)])


def must_reread(completed_at: datetime | None, read_at: datetime | None, now: datetime) -> bool:
    """Return whether one of the full polls of a finished match is due."""
    if completed_at is None:
        return False
    due = [completed_at + after for after in REREAD_AFTER if completed_at + after <= now]
    return bool(due) and (read_at is None or read_at < max(due))


class RestartReason(StrEnum):
    STALE = "stale"
    ERRORS = "errors"
    LIFETIME = "lifetime"
    #: The match's breaker has closed.
    COOL_DOWN = "cool_down"
    #: An operator resumed the match or its source.
    ASKED = "asked"
    #: The scraper is failing, and restarts its connections and watches.
    RECYCLED = "recycled"


# --- frozen pages ----------------------------------------------------------------------------------------------------
#
# The listing and a match's own pages show the same play. A short disagreement is a cache. One that lasts is a frozen
# page, which alone cannot be distinguished from a break.

#: A disagreement that lasts this many usual intervals (30 s) is not a cache.
FROZEN_INTERVALS = 12
#: One page must have changed this often while the other did not.
MOVES = 2
#: Without an announced break, play never stops for this long: both pages are then considered frozen.
SILENT_AFTER = 600.0


class Behind(StrEnum):
    """Which page shows less play than the other."""

    NEITHER = "neither"
    MATCH = "match"
    LIST = "list"
    #: Neither page changes, although play should go on.
    BOTH = "both"


#: What shows that a page is frozen.
WITNESS = {Behind.MATCH: "list", Behind.LIST: "match", Behind.BOTH: "clock"}


class Lag(Struct, frozen=True, kw_only=True):
    """Which page is behind, and whether it has stopped changing."""

    behind: Behind = Behind.NEITHER
    since: float = 0.0
    #: Which page does not change, and how often the other one has changed since.
    still: Behind = Behind.NEITHER
    moves: int = 0

    def after(self, now: float, behind: Behind) -> "Lag":
        return self if behind is self.behind else replace(self, behind=behind, since=now)

    def after_change(self, still: Behind) -> "Lag":
        """Return the lag after one page changed and the other (`still`) did not."""
        return replace(self, still=still, moves=self.moves + 1 if still is self.still else 1)

    def is_frozen(self, now: float, frozen_after: float) -> bool:
        """Return whether a page is frozen: it stays the same while the other one changes.

        Two pages may differ permanently, so that a difference alone proves nothing.
        """
        if self.behind is Behind.BOTH:
            return True
        has_stopped = self.behind is self.still and self.moves >= MOVES
        return has_stopped and now - self.since >= frozen_after


def page_behind(own: ListingEntry | None, listed: ListingEntry | None, unchanged_seconds: float) -> Behind:
    """Return which of two scoreboards of the same match shows less than the other."""
    if own is None or listed is None:
        return Behind.NEITHER
    if own.shows_less_than(listed):
        return Behind.MATCH
    if listed.shows_less_than(own):
        return Behind.LIST
    # A board that does not show every event may stay the same for long during play.
    is_silent = own.shows_every_change and own.status is MatchStatus.LIVE and unchanged_seconds >= SILENT_AFTER
    return Behind.BOTH if is_silent else Behind.NEITHER
