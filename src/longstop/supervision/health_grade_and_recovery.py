"""The health grade of one scraper, and what to do when it fails. Pure: records and the time come in, decisions go out.

`Freshness` measures how long ago each match in play was read, and takes a `Sample`. `after_interval` turns samples into
a grade that does not flap; `recovery_action` decides what to do about a failing one:

HEALTHY ⇄ DEGRADED → FAILING → RECOVERING → HEALTHY
               ↑________|  ↑________|

`health_verdict.py` combines the grades of all scrapers for clients.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from math import ceil

from msgspec import Struct, field
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.model.match import IN_PLAY, Phase
from longstop.model.polling_status import MonitoringRecord

EVALUATED_EVERY_SECONDS = 15.0
OLD_SECONDS = 60.0
TOO_OLD_SECONDS = 120.0
#: Without a successful poll of any match in play for this long, the scraper has stalled.
STALL_SECONDS = 90.0
#: Good intervals in a row that make a degraded scraper healthy.
GOOD_INTERVALS = 2
#: Unsuccessful recycles in a row after which a match is left to the restart rules of its own watch.
MAX_RECYCLES = 2
#: Thresholds of one match (seed 001): failures in a row, and seconds without a successful poll while in play.
FAILING_FAILURES, FAILING_SECONDS = 5, 300.0
DEGRADED_FAILURES, DEGRADED_SECONDS = 2, 120.0
_NAMED_MATCHES = 5


class Grade(StrEnum):
    HEALTHY = "healthy"
    #: Matches in play are old, some are paused by their breakers, or the machine is out of a resource.
    DEGRADED = "degraded"
    #: A match was not read for two minutes, or none for ninety seconds.
    FAILING = "failing"
    #: Connections, watches and browsers were restarted; the first successful poll ends this.
    RECOVERING = "recovering"


class Age(Struct, frozen=True, order=True):
    """Time since a match in play was last read."""

    seconds: float
    match_id: int
    ref: str
    #: Whether polling is blocked: the circuit is open, or the site has rate-limited us.
    is_blocked: bool = False


class Sample(Struct, frozen=True, kw_only=True):
    """Everything that a grade is decided on."""

    #: The matches in play that are not paused.
    ages: tuple[Age, ...] = ()
    #: Matches in play that their own breakers pause. Their ages do not count, but they count towards a stall.
    paused: frozenset[int] = frozenset()
    #: Time since any match in play was read; 0 when nothing is in play.
    stall_seconds: float = 0.0
    stall_after: float = STALL_SECONDS
    #: Resources that the machine is out of.
    exhausted: tuple[str, ...] = ()

    @property
    def is_stalled(self) -> bool:
        return self.stall_seconds >= self.stall_after

    @property
    def overdue(self) -> tuple[Age, ...]:
        """The matches that were not read for too long. In a stall the limit is lower."""
        too_old = min(self.stall_after, TOO_OLD_SECONDS) if self.is_stalled else TOO_OLD_SECONDS
        return tuple(age for age in self.ages if age.seconds >= too_old)

    @property
    def pollable(self) -> tuple[Age, ...]:
        """The overdue matches that may be polled: only these can a recycle help."""
        return tuple(age for age in self.overdue if not age.is_blocked)


class GradeState(Struct, frozen=True, kw_only=True):
    """A grade, and what its next transition depends on."""

    grade: Grade = Grade.HEALTHY
    #: Why it is not healthy; empty when it is.
    reason: str = ""
    good_intervals: int = 0


# --- freshness --------------------------------------------------------------------------------------------------------


def is_wanted(record: MonitoringRecord) -> bool:
    """Return whether a match is in play, and no operator has paused it."""
    return record.status in IN_PLAY and not record.is_on_hold


def _is_active(record: MonitoringRecord) -> bool:
    """Return whether a match is wanted and not paused by its breaker: only then it has an age."""
    return is_wanted(record) and record.phase is not Phase.PAUSED


class Freshness:
    """When each watched match was last read, in monotonic time: the wall clock may jump."""

    def __init__(self, stall_after: float = STALL_SECONDS, started_at: float = 0.0) -> None:
        self._started_at = started_at
        self._stall_after = stall_after
        self._records: dict[int, MonitoringRecord] = {}
        #: Since when each active match is active: it cannot be late before that.
        self._active_since: dict[int, float] = {}
        #: Since when a match is wanted; `None` while none is.
        self._wanted_since: float | None = None
        #: The last successful poll of any match in play.
        self._read_at: float | None = None

    @property
    def has_read(self) -> bool:
        """Whether any match in play has been read so far."""
        return self._read_at is not None

    def observe(self, records: Iterable[MonitoringRecord], now: float) -> None:
        """Update from the current records; `now` is monotonic."""
        # A poll that shows the end of a match is successful too.
        were_wanted = {match_id for match_id, record in self._records.items() if is_wanted(record)}
        self._records = {record.match_id: record for record in records}
        are_wanted = {match_id for match_id, record in self._records.items() if is_wanted(record)}
        for match_id in were_wanted & self._records.keys() | are_wanted:
            read_at = self._records[match_id].last_poll_monotonic
            # A record starts with the last poll of the process before this one.
            if read_at is not None and read_at >= self._started_at:
                self._read_at = max(read_at, self._read_at or read_at)
        if not are_wanted:
            self._wanted_since = None
        elif self._wanted_since is None:
            self._wanted_since = now
        active = (match_id for match_id, record in self._records.items() if _is_active(record))
        self._active_since = {match_id: self._active_since.get(match_id, now) for match_id in active}

    def sample(self, now: float) -> Sample:
        stall_seconds = self._stall_seconds(now)
        active = [self._records[match_id] for match_id in self._active_since]
        # In a stall, an open circuit blocks all matches of its source, also the one that was polled last as its canary.
        is_stalled = stall_seconds >= self._stall_after
        shut_out = {record.ref.source for record in active if is_stalled and record.is_shut_out}
        return Sample(
            ages=tuple(self._age(record, now, shut_out) for record in active),
            paused=frozenset(
                match_id
                for match_id, record in self._records.items()
                if is_wanted(record) and match_id not in self._active_since
            ),
            stall_seconds=stall_seconds,
            stall_after=self._stall_after,
            exhausted=tuple(sorted({record.lacking for record in active if record.lacking})),
        )

    def read_since(self, match_ids: Collection[int], moment: float) -> tuple[str, ...]:
        """Return which of these matches were read after a moment, including those that ended with that poll."""
        return tuple(
            str(record.ref)
            for match_id, record in self._records.items()
            if match_id in match_ids and (record.last_poll_monotonic or 0.0) > moment
        )

    def is_any_wanted(self, match_ids: Collection[int]) -> bool:
        """Return whether one of these matches is in play and not paused by an operator."""
        return any(is_wanted(record) for match_id, record in self._records.items() if match_id in match_ids)

    def _age(self, record: MonitoringRecord, now: float, shut_out: Collection[str]) -> Age:
        since = max(self._active_since[record.match_id], record.last_poll_monotonic or 0.0)
        # A poll postponed for want of memory or descriptors is not blocked by the site.
        is_held = record.is_held and record.lacking is None
        return Age(
            seconds=round(max(0.0, now - since), 3),
            match_id=record.match_id,
            ref=str(record.ref),
            is_blocked=is_held or record.ref.source in shut_out,
        )

    def _stall_seconds(self, now: float) -> float:
        """Return for how long no wanted match was read; new and paused matches do not shorten it."""
        if self._wanted_since is None:
            return 0.0
        return round(max(0.0, now - max(self._wanted_since, self._read_at or 0.0)), 3)


# --- the grade --------------------------------------------------------------------------------------------------------


def grade_of(sample: Sample) -> Grade:
    """Return the grade that one sample alone shows, before hysteresis."""
    if sample.is_stalled or sample.overdue:
        return Grade.FAILING
    # The median is never above it.
    p95 = percentile([age.seconds for age in sample.ages], 0.95) or 0.0
    return Grade.DEGRADED if p95 >= OLD_SECONDS or sample.paused or sample.exhausted else Grade.HEALTHY


def after_interval(state: GradeState, sample: Sample) -> GradeState:
    """Return the state after one more interval of 15 s. Only the outcome of a recycle leaves RECOVERING."""
    shown, grade = grade_of(sample), state.grade
    good = state.good_intervals + 1 if shown is Grade.HEALTHY else 0
    match grade, shown:
        case Grade.HEALTHY, Grade.DEGRADED | Grade.FAILING:
            grade = Grade.DEGRADED
        case Grade.DEGRADED, Grade.FAILING:
            grade = Grade.FAILING
        case Grade.DEGRADED, Grade.HEALTHY if good >= GOOD_INTERVALS:
            grade = Grade.HEALTHY
        case Grade.FAILING, Grade.HEALTHY | Grade.DEGRADED:
            grade, good = Grade.DEGRADED, min(good, 1)
    reason = "" if grade is Grade.HEALTHY else reason_of(sample) or state.reason
    return replace(state, grade=grade, good_intervals=good, reason=reason)


def moved(state: GradeState, to: Grade) -> GradeState:
    """Return the state when a recycle has started, or its outcome is known."""
    return GradeState(grade=to, reason="" if to is Grade.HEALTHY else state.reason)


def reason_of(sample: Sample) -> str:
    """Return what is wrong; empty when nothing is."""
    exhausted = f"out of {' and '.join(sample.exhausted)}" if sample.exhausted else ""
    return "; ".join(part for part in (*_age_reasons(sample), exhausted) if part)


def _age_reasons(sample: Sample) -> tuple[str, ...]:
    paused = f"{len(sample.paused)} paused" if sample.paused else ""
    if sample.is_stalled:
        return (f"nothing in play was read for {sample.stall_seconds:.0f} s", paused)
    if sample.overdue:
        return (f"not read for {TOO_OLD_SECONDS:.0f} s: {_named(sample.overdue)}",)
    if grade_of(sample) is Grade.HEALTHY:
        return ()
    old = [age for age in sample.ages if age.seconds >= OLD_SECONDS]
    return (f"older than {OLD_SECONDS:.0f} s: {_named(old)}" if old else "", paused)


def _named(ages: Sequence[Age]) -> str:
    return name_some([age.ref for age in sorted(ages, reverse=True)])


def name_some(names: Sequence[str]) -> str:
    """Return the first few names, and how many there are beyond them."""
    more = len(names) - _NAMED_MATCHES
    return ", ".join(names[:_NAMED_MATCHES]) + (f" and {more} more" if more > 0 else "")


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that this share of the values does not exceed; `None` without values."""
    return sorted(values)[ceil(share * len(values)) - 1] if values else None


def match_grade(record: MonitoringRecord, now: Moment, *, is_running: bool = True) -> Grade:
    """Return the grade of one match. Its age counts only while it is in play and not paused.

    Without a running scraper no retry will follow, so the lower limits of a whole scraper apply.
    """
    degraded_after, failing_after = DEGRADED_SECONDS, FAILING_SECONDS
    if not is_running:
        degraded_after, failing_after = OLD_SECONDS, TOO_OLD_SECONDS
    is_paused = record.phase is Phase.PAUSED
    counts = record.status in IN_PLAY and not is_paused
    age = (record.age_at(now) or 0.0) if counts else 0.0
    failures = record.consecutive_failures
    if failures > FAILING_FAILURES or age > failing_after:
        return Grade.FAILING
    is_degraded = failures > DEGRADED_FAILURES or age > degraded_after or (is_paused and not record.is_on_hold)
    return Grade.DEGRADED if is_degraded else Grade.HEALTHY


# --- recovery ---------------------------------------------------------------------------------------------------------


class RecoveryAction(StrEnum):
    """What to do about a failing scraper.

    A recycle restarts connections, watches and browsers. That helps against faults on our side, not against a site that
    may not be polled, and one match that stays broken must not disturb all others again and again.
    """

    #: Polling is blocked by an open circuit or a rate limit, or the matches that may be polled are not overdue yet.
    WAIT = "wait"
    RECYCLE = "recycle"
    #: Nothing is read at all and recycling did not help: restart the process.
    RESTART = "restart"
    #: Recycling did not help, and a new process would not either: each match is left to its own watch.
    GIVE_UP = "give_up"


class FailedRecycles(Struct, frozen=True, kw_only=True):
    """Unsuccessful recycles in a row."""

    #: For each match, until it is read again or ends.
    matches: Mapping[int, int] = field(default_factory=dict)
    #: During the present stall.
    stalls: int = 0

    def pruned(self, sample: Sample) -> "FailedRecycles":
        """Return the counts without the matches that were read again since: they are too young to be overdue."""
        waiting = sample.paused | {age.match_id for age in sample.ages if age.seconds >= TOO_OLD_SECONDS}
        matches = {match_id: count for match_id, count in self.matches.items() if match_id in waiting}
        return FailedRecycles(matches=matches, stalls=self.stalls if sample.is_stalled else 0)

    def after(self, tried: Collection[int], sample: Sample) -> "FailedRecycles":
        """Return the counts after one more recycle, of these matches, that did not help."""
        raised = {match_id: self.matches.get(match_id, 0) + 1 for match_id in tried}
        return FailedRecycles(matches={**self.matches, **raised}, stalls=self.stalls + 1).pruned(sample)


def recovery_action(sample: Sample, failed: FailedRecycles, *, may_restart: bool = True) -> RecoveryAction:
    if not sample.pollable:
        return RecoveryAction.WAIT
    candidates = worth_recycling(sample, failed)
    if sample.is_stalled and (failed.stalls >= MAX_RECYCLES or not candidates):
        return RecoveryAction.RESTART if may_restart else RecoveryAction.GIVE_UP
    return RecoveryAction.RECYCLE if candidates else RecoveryAction.GIVE_UP


def worth_recycling(sample: Sample, failed: FailedRecycles) -> tuple[Age, ...]:
    return tuple(age for age in sample.pollable if failed.matches.get(age.match_id, 0) < MAX_RECYCLES)
