"""When to look next. Pure: how a match goes and a moment go in, seconds come out."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf

import msgspec
from msgspec import Struct

from longstop.model.match import MatchStatus, Phase, Priority, SyncState, priority_of
from longstop.watching.pace import Pace
from longstop.watching.rhythm import Rhythm

ARCHIVE_AFTER = timedelta(hours=24)
#: A match that cannot be read for the last time is put away all the same after this much longer.
ARCHIVE_PATIENCE = timedelta(hours=2)
#: Results are edited: a match is read whole again so long after its end.
REREAD_AFTER = (timedelta(hours=2), timedelta(hours=6), timedelta(hours=24))
#: A match that fails this often in a row no longer hurries everybody else's listing.
MANY_FAILURES = 5
#: However often a page says that something has changed, its match is looked at no more often than this.
HURRIED_SECONDS = 1.0
#: What is open about a match is looked into after 10, 20, 40 … seconds, and then every five minutes.
FIRST_REVISIT_SECONDS = 10.0
LAST_REVISIT_SECONDS = 300.0
#: Looks begin with a tick, or somewhat after it when they had to wait: one that falls due this share of an interval
#: later would wait for a whole tick more. Whoever is slowed down by errors is not let off so much.
EARLY = 0.5
EARLY_AFTER_ERRORS = 0.25


class Cadence(Struct, frozen=True, kw_only=True):
    """How often to look, in seconds."""

    live: float = 2.5
    busy: float = 2.0
    paused_play: float = 30.0
    #: Without a change for this long, play has stopped.
    break_after: float = 180.0
    imminent: float = 60.0
    upcoming: float = 3600.0
    completed: float = 300.0
    #: How often to ask the listing for new matches when no match needs a look sooner.
    discovery: float = 60.0
    #: How long errors must be rare before the pace is as before.
    calm_after: float = 300.0
    #: "Not found" is remembered for this long.
    not_found: float = 60.0


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
    """How long a good look lasts, and why so long."""

    seconds: float
    why: Why
    #: News or not, errors keep the looks so far apart; 0 when there are none.
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
    """Return how long a good look at this match lasts."""
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
    # Of a match that cannot be read nobody knows whether it stands still.
    if not course.failures and course.rhythm.is_break(course.status, monotonic, break_after):
        return Tempo(seconds=cadence.paused_play, why=Why.BREAK)
    if course.is_important:
        return Tempo(seconds=min(cadence.busy, cadence.live), why=Why.IMPORTANT)
    if course.rhythm.is_busy:
        return Tempo(seconds=min(cadence.busy, cadence.live), why=Why.BUSY)
    return Tempo(seconds=cadence.live, why=Why.BASELINE)


def is_due(tried_at: float | None, tempo: Tempo, monotonic: float, cadence: Cadence) -> bool:
    """Return whether it is time for the next look, be it after a good one or a bad one."""
    early = EARLY_AFTER_ERRORS if tempo.at_least else EARLY
    return tried_at is None or monotonic - tried_at >= tempo.seconds - early * cadence.live


def is_due_for_news(tried_at: float | None, tempo: Tempo, monotonic: float, cadence: Cadence) -> bool:
    """Return whether a match that shows something new may be looked at: only errors hold it back, never a break."""
    seconds = max(tempo.at_least, min(tempo.seconds, cadence.live))
    return is_due(tried_at, msgspec.structs.replace(tempo, seconds=seconds), monotonic, cadence)


def hurried_at(tried_at: float | None, tempo: Tempo, monotonic: float) -> float | None:
    """Return when a match that is said to have changed may be looked at; `None` while errors hold it back."""
    if tempo.at_least:
        return None
    return monotonic if tried_at is None else max(monotonic, tried_at + HURRIED_SECONDS)


def revisit_after(visits: int) -> float:
    """Return the seconds until what is open about a match is looked into again, after this many visits in vain."""
    return min(FIRST_REVISIT_SECONDS * 2.0 ** min(visits, 10), LAST_REVISIT_SECONDS)


def listing_interval(tempos: Iterable[Tempo], cadence: Cadence) -> float:
    """Return the pause between two listings: as short as the most urgent match wants it."""
    return min([cadence.discovery, *(tempo.seconds for tempo in tempos)])


def must_reread(completed_at: datetime | None, read_at: datetime | None, now: datetime) -> bool:
    """Return whether a finished match is due for one of its whole re-reads."""
    if completed_at is None:
        return False
    due = [completed_at + after for after in REREAD_AFTER if completed_at + after <= now]
    return bool(due) and (read_at is None or read_at < max(due))


def may_be_archived(phase: Phase, completed_at: datetime | None, read_at: datetime | None, now: datetime) -> bool:
    """Return whether a match has been over for so long, and read once more, that nobody needs to look any more."""
    if phase is not Phase.COMPLETED or completed_at is None or now - completed_at < ARCHIVE_AFTER:
        return False
    return not must_reread(completed_at, read_at, now) or now - completed_at >= ARCHIVE_AFTER + ARCHIVE_PATIENCE
