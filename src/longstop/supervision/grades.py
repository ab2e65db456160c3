"""How a scraper is, as a grade that does not flap. Pure: ages and the time come in, a standing goes out.

HEALTHY ⇄ DEGRADED → FAILING → RECOVERING → HEALTHY
               ↑________|  ↑________|
"""

from collections.abc import Sequence
from enum import IntEnum, StrEnum
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.errors import IllegalTransition
from longstop.model.match import IN_PLAY, MonitoringRecord, Phase

EVALUATED_EVERY_SECONDS = 15.0
OLD_SECONDS = 60.0
TOO_OLD_SECONDS = 120.0
STALL_SECONDS = 90.0
#: So many good intervals in a row make a degraded scraper healthy.
GOOD_INTERVALS = 2
_NAMED = 5


class Grade(StrEnum):
    HEALTHY = "healthy"
    #: The matches in play are older than they should be, or some rest.
    DEGRADED = "degraded"
    #: One was not read for two minutes, or none for ninety seconds.
    FAILING = "failing"
    #: What is asked with was made afresh; the first good look ends it.
    RECOVERING = "recovering"


#: The whole table; every other move is a bug.
TRANSITIONS: dict[Grade, frozenset[Grade]] = {
    Grade.HEALTHY: frozenset({Grade.DEGRADED}),
    Grade.DEGRADED: frozenset({Grade.HEALTHY, Grade.FAILING}),
    Grade.FAILING: frozenset({Grade.DEGRADED, Grade.RECOVERING}),
    Grade.RECOVERING: frozenset({Grade.HEALTHY, Grade.FAILING}),
}


class Level(IntEnum):
    """What one look at the ages says, before patience has its word."""

    GOOD = 0
    OLD = 1
    BAD = 2


class Age(Struct, frozen=True, order=True):
    """How long a match in play was not read."""

    seconds: float
    match_id: int
    ref: str
    #: Whether nobody may be asked about it: its site is left alone, or has asked for rest.
    is_held: bool = False


class Sample(Struct, frozen=True, kw_only=True):
    """What a grade is decided on: the matches in play that do not rest, those that do, and the last good look."""

    ages: tuple[Age, ...] = ()
    #: Who rests by its own breaker. Its age does not count; that nothing at all is read counts all the same.
    paused: frozenset[int] = frozenset()
    #: For how long nothing was read anywhere; 0 when nothing is in play.
    stall_seconds: float = 0.0
    #: So long without a good look anywhere is a stall.
    stall_after: float = STALL_SECONDS
    #: What this machine does not give us.
    lacks: tuple[str, ...] = ()

    @property
    def is_stalled(self) -> bool:
        return self.stall_seconds >= self.stall_after

    @property
    def offenders(self) -> tuple[Age, ...]:
        """Return those who were not read for too long, which is sooner when nothing is; who rests is none of them."""
        too_old = min(self.stall_after, TOO_OLD_SECONDS) if self.is_stalled else TOO_OLD_SECONDS
        return tuple(age for age in self.ages if age.seconds >= too_old)

    @property
    def askable(self) -> tuple[Age, ...]:
        """Return those of them whom making things afresh may help; it also gives back what we hold ourselves."""
        return tuple(age for age in self.offenders if not age.is_held)


class Standing(Struct, frozen=True, kw_only=True):
    """A grade, and what its next move depends on."""

    grade: Grade = Grade.HEALTHY
    #: Why it is not healthy, in a sentence; empty when it is.
    reason: str = ""
    good_intervals: int = 0


def level_of(sample: Sample) -> Level:
    if sample.is_stalled or sample.offenders:
        return Level.BAD
    seconds = [age.seconds for age in sample.ages]
    is_old = max(percentile(seconds, 0.5) or 0.0, percentile(seconds, 0.95) or 0.0) >= OLD_SECONDS
    return Level.OLD if is_old or sample.paused or sample.lacks else Level.GOOD


def after_interval(standing: Standing, sample: Sample) -> Standing:
    """Return the standing after one more look at the ages, every 15 s; a recycle's outcome is told by the others."""
    level, grade = level_of(sample), standing.grade
    good = standing.good_intervals + 1 if level is Level.GOOD else 0
    match grade, level:
        case Grade.HEALTHY, Level.OLD | Level.BAD:
            grade = Grade.DEGRADED
        case Grade.DEGRADED, Level.BAD:
            grade = Grade.FAILING
        case Grade.DEGRADED, Level.GOOD if good >= GOOD_INTERVALS:
            grade = Grade.HEALTHY
        case Grade.FAILING, Level.GOOD | Level.OLD:
            grade, good = Grade.DEGRADED, min(good, 1)
        case _:
            pass
    reason = "" if grade is Grade.HEALTHY else reason_of(sample) or standing.reason
    return replace(standing, grade=grade, good_intervals=good, reason=reason)


def recycled(standing: Standing) -> Standing:
    return _moved(standing, Grade.RECOVERING)


def recovered(standing: Standing) -> Standing:
    """Return the standing after the first good look since the recycle."""
    return replace(_moved(standing, Grade.HEALTHY), reason="")


def in_vain(standing: Standing) -> Standing:
    """Return the standing after a recycle that nothing good came of."""
    return _moved(standing, Grade.FAILING)


def _moved(standing: Standing, to: Grade) -> Standing:
    if to not in TRANSITIONS[standing.grade]:
        raise IllegalTransition(f"a grade cannot go from {standing.grade} to {to}")
    return replace(standing, grade=to, good_intervals=0)


def reason_of(sample: Sample) -> str:
    """Return what is wrong, in a sentence; empty when nothing is."""
    lack = f"this machine has no {' and no '.join(sample.lacks)} left" if sample.lacks else ""
    return "; ".join(part for part in (*_about_ages(sample), lack) if part)


def _about_ages(sample: Sample) -> tuple[str, ...]:
    rest = f"{len(sample.paused)} paused" if sample.paused else ""
    if sample.is_stalled:
        return (f"nothing in play was read for {sample.stall_seconds:.0f} s", rest)
    if sample.offenders:
        return (f"not read for {TOO_OLD_SECONDS:.0f} s: {_named(sample.offenders)}",)
    if level_of(sample) is Level.GOOD:
        return ()
    old = [age for age in sample.ages if age.seconds >= OLD_SECONDS]
    return (f"older than {OLD_SECONDS:.0f} s: {_named(old)}" if old else "", rest)


def _named(ages: Sequence[Age]) -> str:
    names = ", ".join(age.ref for age in sorted(ages, reverse=True)[:_NAMED])
    more = len(ages) - _NAMED
    return names + (f" and {more} more" if more > 0 else "")


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that so many of all do not exceed; `None` of none."""
    return sorted(values)[ceil(share * len(values)) - 1] if values else None


#: Seed 001's thresholds of one match: failures in a row, and seconds without a good look while in play.
FAILING_FAILURES, FAILING_SECONDS = 5, 300.0
DEGRADED_FAILURES, DEGRADED_SECONDS = 2, 120.0


def match_grade(record: MonitoringRecord, now: Moment) -> Grade:
    """Return how one match is; only while it is in play and does not rest, its age counts."""
    is_paused = record.phase is Phase.PAUSED
    counts = record.status in IN_PLAY and not is_paused
    age = (record.age_at(now) or 0.0) if counts else 0.0
    if record.consecutive_failures > FAILING_FAILURES or age > FAILING_SECONDS:
        return Grade.FAILING
    if (
        record.consecutive_failures > DEGRADED_FAILURES
        or age > DEGRADED_SECONDS
        or (is_paused and not record.is_on_hold)
    ):
        return Grade.DEGRADED
    return Grade.HEALTHY
