"""How often to poll, and when to restart a watch. Pure: how a match goes and the time go in, decisions come out.

Three things set the interval: the status of the match and how lively it is (`Rhythm`), recent errors (`Pace`), and what
the operator has chosen (`Cadence`, `WatchRules`).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf

import msgspec
from msgspec import Struct

from longstop.model.match import MatchStatus, Phase, Priority, SyncState, priority_of
from longstop.resilience.breaker import BreakerPolicy, match_policy

ARCHIVE_AFTER = timedelta(hours=24)
#: A match whose last full poll keeps failing is archived anyway after this much longer.
ARCHIVE_PATIENCE = timedelta(hours=2)
#: Results are edited: a full poll is due this long after the end of a match.
REREAD_AFTER = (timedelta(hours=2), timedelta(hours=6), timedelta(hours=24))
#: A match that fails this often in a row no longer shortens the interval of the listing.
MANY_FAILURES = 5
#: However often a page signals a change, its match is polled no more often than this.
HURRIED_SECONDS = 1.0
#: A match with open findings is polled in full after 10, 20, 40 … seconds, and then every five minutes.
FIRST_REVISIT_SECONDS = 10.0
LAST_REVISIT_SECONDS = 300.0
#: Polls start with a tick, or somewhat later when they had to wait. One that falls due this share of an interval after
#: a tick would wait for a whole tick more. After errors the share is smaller.
EARLY = 0.5
EARLY_AFTER_ERRORS = 0.25

#: Liveliness is judged over this many cycles.
CYCLES = 10
#: A match is busy when more than this share of them brought news.
BUSY_SHARE = 0.5

MINUTE = 60.0
#: From this many errors on, polls are this many times further apart: 5, 10 and 20 s at the usual 2.5 s.
STEPS: tuple[tuple[int, float], ...] = ((20, 8.0), (10, 4.0), (5, 2.0))
FIRST_STEP, LAST_STEP = STEPS[-1][0], STEPS[0][0]
#: An error with at least this many good polls before it is an accident. One in seven polls of 2 s is still five a
#: minute: what begins a spell must not count as rare within it, or the pace would oscillate.
GOOD_BETWEEN_ACCIDENTS = 7

_MATCH_POLICY = match_policy()


# --- what an operator has chosen ------------------------------------------------------------------------------------


class Cadence(Struct, frozen=True, kw_only=True):
    """How often to poll, in seconds."""

    live: float = 2.5
    busy: float = 2.0
    paused_play: float = 30.0
    #: Without a change for this long, play has stopped.
    break_after: float = 180.0
    imminent: float = 60.0
    upcoming: float = 3600.0
    completed: float = 300.0
    #: How often to ask the listing for new matches when no match needs a poll sooner.
    discovery: float = 60.0
    #: How long errors must be rare before the pace is as before.
    calm_after: float = 300.0
    #: "Not found" is remembered for this long.
    not_found: float = 60.0


class RestartPolicy(Struct, frozen=True, kw_only=True):
    lifetime_seconds: float = 6 * 3600.0
    stale_seconds: float = 300.0


class WatchRules(Struct, frozen=True, kw_only=True):
    """How often to poll, when to restart, when to pause, what to report."""

    cadence: Cadence = Cadence()
    restarts: RestartPolicy = RestartPolicy()
    breaker: BreakerPolicy = _MATCH_POLICY
    #: More errors of one match than these within a minute are reported.
    max_errors: int = 10
    #: A match is important when its title contains one of these words; in lower case.
    important: tuple[str, ...] = ()

    def is_important(self, title: str) -> bool:
        return any(word in title.lower() for word in self.important)


# --- how lively a match is ------------------------------------------------------------------------------------------


class Rhythm(Struct, frozen=True, kw_only=True):
    """The last cycles of a match, newest last. A cycle is one chance to see news: a poll, or a line of the listing."""

    #: When something was last seen to change, or the watch began.
    changed_at: float
    #: Whether each of the last cycles brought news.
    news: tuple[bool, ...] = ()
    #: Cycles in a row without news.
    unchanged: int = 0

    def after(self, now: float, *, is_news: bool) -> "Rhythm":
        """Return the rhythm with one cycle more."""
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
        """Return whether nothing has happened for some cycles: a good moment for a restart."""
        return self.unchanged >= CYCLES

    def is_break(self, status: MatchStatus, now: float, break_after: float) -> bool:
        """Return whether play has stopped. Balls are 30 s apart: a few equal polls alone are no break."""
        if status is MatchStatus.BREAK and self.is_quiet:
            return True
        return now - self.changed_at >= break_after


# --- how errors slow it down ----------------------------------------------------------------------------------------


class Pace(Struct, frozen=True, kw_only=True):
    """The errors of a match as far as they matter for its pace.

    Five errors within a minute begin a bad spell. Within it the pace falls with every few errors more, and it ends once
    errors have been rare for some minutes. Rare is a share of the polls, not a number a minute: a match polled every 20
    seconds never has five errors a minute, and would speed up while everything still fails.
    """

    #: The moments of the errors within the last minute, as many as matter.
    recent: tuple[float, ...] = ()
    #: Errors of the bad spell; 0 when there is none.
    errors: int = 0
    #: When the spell was last seen to be bad.
    bad_at: float = 0.0
    #: Good polls since the last error.
    good: int = 0

    def after(self, now: float, *, errors: int, calm_after: float) -> "Pace":
        """Return the pace after a poll that met this many errors, whether or not it succeeded in the end."""
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
        return Pace(recent=recent, errors=total, bad_at=bad_at)

    def calmed(self, now: float, calm_after: float) -> "Pace":
        """Return the pace with a bad spell ended, if it has been calm for long enough."""
        if self.errors and now - self.bad_at >= calm_after:
            return Pace(good=self.good)
        return self

    @property
    def factor(self) -> float:
        """Return how many times further apart the polls are than usual."""
        return next((factor for errors, factor in STEPS if self.errors >= errors), 1.0)


# --- the interval ---------------------------------------------------------------------------------------------------


class Why(StrEnum):
    """What an interval comes from."""

    BASELINE = "baseline"
    BUSY = "busy"
    IMPORTANT = "important"
    BREAK = "break"
    ERRORS = "errors"
    IMMINENT = "imminent"
    UPCOMING = "upcoming"
    COMPLETED = "completed"


class Tempo(Struct, frozen=True, kw_only=True):
    """The interval between two polls, and where it comes from."""

    seconds: float
    why: Why
    #: With news or without, errors keep the polls this far apart; 0 when there are none.
    at_least: float = 0.0


class Course(Struct, frozen=True, kw_only=True):
    """How a match goes, as far as its tempo depends on it."""

    status: MatchStatus
    start_at: datetime | None
    sync: SyncState
    rhythm: Rhythm
    pace: Pace
    failures: int = 0
    is_important: bool = False
    #: Whether nothing new for a while means that play has stopped: in football it goes on without a goal for long.
    is_silence_a_break: bool = True


def tempo_of(course: Course, now: datetime, monotonic: float, cadence: Cadence) -> Tempo:
    """Return the interval between two polls of this match."""
    usual = _usual(course, now, monotonic, cadence)
    if course.pace.factor == 1.0:
        return usual
    slowed = cadence.live * course.pace.factor
    if slowed > usual.seconds:
        return Tempo(seconds=slowed, why=Why.ERRORS, at_least=slowed)
    return Tempo(seconds=usual.seconds, why=usual.why, at_least=slowed)


def _usual(course: Course, now: datetime, monotonic: float, cadence: Cadence) -> Tempo:
    priority = priority_of(course.status, course.start_at, now)
    is_hurried = course.sync is SyncState.RECOVERING and course.failures < MANY_FAILURES
    if priority is Priority.LIVE:
        return _in_play(course, monotonic, cadence)
    if is_hurried:
        return Tempo(seconds=cadence.live, why=Why.BASELINE)
    match priority:
        case Priority.IMMINENT:
            return Tempo(seconds=cadence.imminent, why=Why.IMMINENT)
        case Priority.COMPLETED:
            return Tempo(seconds=cadence.completed, why=Why.COMPLETED)
        case _:
            return Tempo(seconds=cadence.upcoming, why=Why.UPCOMING)


def _in_play(course: Course, monotonic: float, cadence: Cadence) -> Tempo:
    break_after = cadence.break_after if course.is_silence_a_break else inf
    # While polls fail, nothing is known about whether play has stopped.
    if not course.failures and course.rhythm.is_break(course.status, monotonic, break_after):
        return Tempo(seconds=cadence.paused_play, why=Why.BREAK)
    if course.is_important:
        return Tempo(seconds=min(cadence.busy, cadence.live), why=Why.IMPORTANT)
    if course.rhythm.is_busy:
        return Tempo(seconds=min(cadence.busy, cadence.live), why=Why.BUSY)
    return Tempo(seconds=cadence.live, why=Why.BASELINE)


# --- what is due ----------------------------------------------------------------------------------------------------


def is_due(tried_at: float | None, tempo: Tempo, monotonic: float, cadence: Cadence) -> bool:
    """Return whether the next poll is due, after a good one or a failed one."""
    early = EARLY_AFTER_ERRORS if tempo.at_least else EARLY
    return tried_at is None or monotonic - tried_at >= tempo.seconds - early * cadence.live


def is_due_for_news(tried_at: float | None, tempo: Tempo, monotonic: float, cadence: Cadence) -> bool:
    """Return whether a match that shows something new may be polled: errors delay that, a break does not."""
    seconds = max(tempo.at_least, min(tempo.seconds, cadence.live))
    return is_due(tried_at, msgspec.structs.replace(tempo, seconds=seconds), monotonic, cadence)


def hurried_at(tried_at: float | None, tempo: Tempo, monotonic: float) -> float | None:
    """Return when a match whose page signalled a change may be polled; `None` while errors delay it."""
    if tempo.at_least:
        return None
    return monotonic if tried_at is None else max(monotonic, tried_at + HURRIED_SECONDS)


def revisit_after(visits: int) -> float:
    """Return the seconds until the next full poll of a match with open findings, after this many in vain."""
    return min(FIRST_REVISIT_SECONDS * 2.0 ** min(visits, 10), LAST_REVISIT_SECONDS)


def listing_interval(tempos: Iterable[Tempo], cadence: Cadence) -> float:
    """Return the interval between two listings: that of the most urgent match."""
    return min([cadence.discovery, *(tempo.seconds for tempo in tempos)])


def must_reread(completed_at: datetime | None, read_at: datetime | None, now: datetime) -> bool:
    """Return whether a finished match is due for one of its full polls."""
    if completed_at is None:
        return False
    due = [completed_at + after for after in REREAD_AFTER if completed_at + after <= now]
    return bool(due) and (read_at is None or read_at < max(due))


def may_be_archived(phase: Phase, completed_at: datetime | None, read_at: datetime | None, now: datetime) -> bool:
    """Return whether a match ended long enough ago, and was polled in full since, to need no more polls."""
    if phase is not Phase.COMPLETED or completed_at is None or now - completed_at < ARCHIVE_AFTER:
        return False
    return not must_reread(completed_at, read_at, now) or now - completed_at >= ARCHIVE_AFTER + ARCHIVE_PATIENCE


# --- restarts -------------------------------------------------------------------------------------------------------

#: More failed looks in a row than these.
MAX_FAILURES = 10
#: A restart waits for a quiet moment, but not longer than this share of the lifetime.
PATIENCE = 0.1


class RestartReason(StrEnum):
    STALE = "stale"
    ERRORS = "errors"
    LIFETIME = "lifetime"
    #: A pause is over: what comes next begins afresh.
    COOL_DOWN = "cool_down"
    #: Somebody wants it to go on.
    ASKED = "asked"
    #: The scraper fails, and makes everything afresh.
    RECYCLED = "recycled"


class Life(Struct, frozen=True, kw_only=True):
    """What a restart is decided on; moments are monotonic."""

    began: float
    #: The last accepted poll, or the last answer within a look that is under way.
    good_at: float
    #: Failed looks in a row since the watch began.
    failures: int
    is_in_play: bool
    is_quiet: bool
    #: Whether nobody could be asked last time: then beginning anew would help nobody.
    is_held: bool = False
    #: Whether it was never begun anew.
    is_first: bool = True

    def is_stale(self, now: float, policy: RestartPolicy) -> bool:
        """Return whether a match in play was not read for too long."""
        return self.is_in_play and now - self.good_at > policy.stale_seconds


def restart_reason(life: Life, now: float, policy: RestartPolicy) -> RestartReason | None:
    """Return why the watch should be begun anew; `None` while it should not."""
    if life.is_held:
        return None
    age = now - life.began
    if life.is_stale(now, policy) and age > policy.stale_seconds:
        return RestartReason.STALE
    # A watch that was begun anew in vain is not begun anew at every eleventh failure.
    if life.failures > MAX_FAILURES and (life.is_first or age > policy.stale_seconds):
        return RestartReason.ERRORS
    if age > policy.lifetime_seconds * (1 if life.is_quiet else 1 + PATIENCE):
        return RestartReason.LIFETIME
    return None
