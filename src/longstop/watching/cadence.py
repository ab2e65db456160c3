"""How often to poll, and when to restart a watch. Pure: the state of a match and the time go in, decisions come out.

Three things set the interval: the status and activity of the match (`Activity`), recent errors (`ErrorBackoff`), and
the operator's settings (`Cadence`, `WatchRules`).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf

import msgspec
from msgspec import Struct

from longstop.model.match import MatchStatus, Phase, Priority, SyncState, priority_of
from longstop.model.observation import ListingEntry
from longstop.resilience.breaker import BreakerPolicy, match_policy

ARCHIVE_AFTER = timedelta(hours=24)
#: If the last full poll keeps failing, the match is archived after this additional time.
ARCHIVE_PATIENCE = timedelta(hours=2)
#: Sites correct results later: a full poll is due at these times after the end of a match.
REREAD_AFTER = (timedelta(hours=2), timedelta(hours=6), timedelta(hours=24))
#: After this many consecutive failures, a match no longer shortens the listing's interval.
MANY_FAILURES = 5
#: Minimum distance between polls that page signals trigger.
SIGNALLED_SECONDS = 1.0
#: A match with open findings gets a full poll after 10, 20, 40 … seconds, then every five minutes.
FIRST_REVISIT_SECONDS = 10.0
LAST_REVISIT_SECONDS = 300.0
#: Polls start on a tick, or slightly later when they had to queue. A poll may start this share of an interval early;
#: otherwise it would wait for another tick. The share is smaller after errors.
EARLY = 0.5
EARLY_AFTER_ERRORS = 0.25

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


class WatchRestartPolicy(Struct, frozen=True, kw_only=True):
    lifetime_seconds: float = 6 * 3600.0
    stale_seconds: float = 300.0


class WatchRules(Struct, frozen=True, kw_only=True):
    """When to poll, restart, pause and alert."""

    cadence: Cadence = Cadence()
    restarts: WatchRestartPolicy = WatchRestartPolicy()
    breaker: BreakerPolicy = _MATCH_POLICY
    #: More errors of one match within a minute are reported.
    max_errors: int = 10
    #: Lower-case words; a match whose title contains one is important.
    important: tuple[str, ...] = ()

    def is_important(self, title: str) -> bool:
        return any(word in title.lower() for word in self.important)


# --- activity -------------------------------------------------------------------------------------------------------


class Activity(Struct, frozen=True, kw_only=True):
    """The last cycles of a match, newest last. A cycle is one poll, or one entry of the listing."""

    #: When something last changed, or the watch started.
    changed_at: float
    #: Whether each of the last cycles brought news.
    news: tuple[bool, ...] = ()
    #: Consecutive cycles without news.
    unchanged: int = 0

    def after(self, now: float, *, is_news: bool) -> "Activity":
        """Return the activity after one more cycle."""
        return msgspec.structs.replace(
            self,
            changed_at=now if is_news else self.changed_at,
            news=(*self.news, is_news)[-CYCLES:],
            unchanged=0 if is_news else self.unchanged + 1,
        )

    @property
    def is_busy(self) -> bool:
        return len(self.news) == CYCLES and sum(self.news) > BUSY_SHARE * CYCLES

    @property
    def is_quiet(self) -> bool:
        """Return whether some cycles passed without news: a good moment for a restart."""
        return self.unchanged >= CYCLES

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
            calmed = self.calmed(now, calm_after)
            return msgspec.structs.replace(calmed, good=self.good + 1)
        latest = (*self.recent, *[now] * min(errors, LAST_STEP))
        recent = tuple(at for at in latest if now - at < MINUTE)[-LAST_STEP:]
        if not self.errors:
            total, bad_at = (len(recent) if len(recent) >= FIRST_STEP else 0), now
        elif self.good >= GOOD_BETWEEN_ACCIDENTS:
            total, bad_at = self.errors, self.bad_at
        else:
            total, bad_at = self.errors + errors, now
        return ErrorBackoff(recent=recent, errors=total, bad_at=bad_at)

    def calmed(self, now: float, calm_after: float) -> "ErrorBackoff":
        """Return the backoff with its slow phase ended, if errors have been rare for long enough."""
        if self.errors and now - self.bad_at >= calm_after:
            return ErrorBackoff(good=self.good)
        return self

    @property
    def factor(self) -> float:
        """Return the factor by which the interval grows."""
        return next((factor for errors, factor in STEPS if self.errors >= errors), 1.0)


# --- the interval ---------------------------------------------------------------------------------------------------


class IntervalReason(StrEnum):
    """What determined an interval."""

    BASELINE = "baseline"
    BUSY = "busy"
    IMPORTANT = "important"
    BREAK = "break"
    ERRORS = "errors"
    IMMINENT = "imminent"
    UPCOMING = "upcoming"
    COMPLETED = "completed"


class PollInterval(Struct, frozen=True, kw_only=True):
    """The interval between two polls, and its reason."""

    seconds: float
    reason: IntervalReason
    #: After errors, polls are at least this far apart, even with news; 0 without errors.
    minimum: float = 0.0


class IntervalInput(Struct, frozen=True, kw_only=True):
    """The facts about a match that determine its interval."""

    status: MatchStatus
    start_at: datetime | None
    sync: SyncState
    activity: Activity
    backoff: ErrorBackoff
    failures: int = 0
    is_important: bool = False
    #: Whether a long time without news means a break. In football, play goes on for long without a goal.
    is_silence_a_break: bool = True


def poll_interval(match: IntervalInput, now: datetime, monotonic: float, cadence: Cadence) -> PollInterval:
    """Return the interval between two polls of this match."""
    usual = _usual_interval(match, now, monotonic, cadence)
    if match.backoff.factor == 1.0:
        return usual
    slowed = cadence.live * match.backoff.factor
    if slowed > usual.seconds:
        return PollInterval(seconds=slowed, reason=IntervalReason.ERRORS, minimum=slowed)
    return PollInterval(seconds=usual.seconds, reason=usual.reason, minimum=slowed)


def _usual_interval(match: IntervalInput, now: datetime, monotonic: float, cadence: Cadence) -> PollInterval:
    priority = priority_of(match.status, match.start_at, now)
    is_urgent = match.sync is SyncState.RECOVERING and match.failures < MANY_FAILURES
    if priority is Priority.LIVE:
        return _live_interval(match, monotonic, cadence)
    if is_urgent:
        return PollInterval(seconds=cadence.live, reason=IntervalReason.BASELINE)
    match priority:
        case Priority.IMMINENT:
            return PollInterval(seconds=cadence.imminent, reason=IntervalReason.IMMINENT)
        case Priority.COMPLETED:
            return PollInterval(seconds=cadence.completed, reason=IntervalReason.COMPLETED)
        case _:
            return PollInterval(seconds=cadence.upcoming, reason=IntervalReason.UPCOMING)


def _live_interval(match: IntervalInput, monotonic: float, cadence: Cadence) -> PollInterval:
    break_after = cadence.break_after if match.is_silence_a_break else inf
    # While polls fail, it is unknown whether play has stopped.
    if not match.failures and match.activity.is_break(match.status, monotonic, break_after):
        return PollInterval(seconds=cadence.in_break, reason=IntervalReason.BREAK)
    if match.is_important:
        return PollInterval(seconds=min(cadence.busy, cadence.live), reason=IntervalReason.IMPORTANT)
    if match.activity.is_busy:
        return PollInterval(seconds=min(cadence.busy, cadence.live), reason=IntervalReason.BUSY)
    return PollInterval(seconds=cadence.live, reason=IntervalReason.BASELINE)


# --- what is due ----------------------------------------------------------------------------------------------------


def is_due(tried_at: float | None, interval: PollInterval, monotonic: float, cadence: Cadence) -> bool:
    """Return whether the next poll is due, after a good or a failed one."""
    early = EARLY_AFTER_ERRORS if interval.minimum else EARLY
    return tried_at is None or monotonic - tried_at >= interval.seconds - early * cadence.live


def is_due_for_news(tried_at: float | None, interval: PollInterval, monotonic: float, cadence: Cadence) -> bool:
    """Return whether a match with news may be polled: errors delay that, a break does not."""
    seconds = max(interval.minimum, min(interval.seconds, cadence.live))
    return is_due(tried_at, msgspec.structs.replace(interval, seconds=seconds), monotonic, cadence)


def signalled_poll_at(tried_at: float | None, interval: PollInterval, monotonic: float) -> float | None:
    """Return when a match whose page signalled a change may be polled; `None` while errors delay it."""
    if interval.minimum:
        return None
    return monotonic if tried_at is None else max(monotonic, tried_at + SIGNALLED_SECONDS)


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


def may_be_archived(phase: Phase, completed_at: datetime | None, read_at: datetime | None, now: datetime) -> bool:
    """Return whether a match ended long enough ago, and had its last full poll."""
    if phase is not Phase.COMPLETED or completed_at is None or now - completed_at < ARCHIVE_AFTER:
        return False
    return not must_reread(completed_at, read_at, now) or now - completed_at >= ARCHIVE_AFTER + ARCHIVE_PATIENCE


# --- restarts -------------------------------------------------------------------------------------------------------

#: More consecutive failed polls restart a watch.
MAX_FAILURES = 10
#: A restart waits for a quiet moment, at most for this share of the lifetime.
PATIENCE = 0.1


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


class RestartInput(Struct, frozen=True, kw_only=True):
    """The facts about a watch that decide on a restart; times are monotonic."""

    started_at: float
    #: The last accepted poll, or the last answer of the poll in progress.
    accepted_at: float
    #: Consecutive failed polls since the watch started.
    failures: int
    is_in_play: bool
    is_quiet: bool
    #: Whether the last poll was postponed: then a restart would not help.
    is_postponed: bool = False
    #: Whether the watch was never restarted.
    is_first: bool = True

    def is_stale(self, now: float, policy: WatchRestartPolicy) -> bool:
        """Return whether a match in play had no accepted poll for too long."""
        return self.is_in_play and now - self.accepted_at > policy.stale_seconds


def restart_reason(watch: RestartInput, now: float, policy: WatchRestartPolicy) -> RestartReason | None:
    """Return why a watch should be restarted; `None` if it should not."""
    if watch.is_postponed:
        return None
    age = now - watch.started_at
    if watch.is_stale(now, policy) and age > policy.stale_seconds:
        return RestartReason.STALE
    # If a restart did not help, wait before the next one.
    if watch.failures > MAX_FAILURES and (watch.is_first or age > policy.stale_seconds):
        return RestartReason.ERRORS
    if age > policy.lifetime_seconds * (1 if watch.is_quiet else 1 + PATIENCE):
        return RestartReason.LIFETIME
    return None


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
    """Which page is behind, and since when."""

    behind: Behind = Behind.NEITHER
    since: float = 0.0

    def after(self, now: float, behind: Behind) -> "Lag":
        return self if behind is self.behind else Lag(behind=behind, since=now)

    def has_lasted(self, now: float, frozen_after: float) -> bool:
        if self.behind is Behind.BOTH:
            return True
        return self.behind is not Behind.NEITHER and now - self.since >= frozen_after


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
