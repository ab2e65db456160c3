"""The health of all scrapers together, for clients and operators. Pure.

Each scraper grades itself (`health_grade_and_recovery.py`). This module adds what a scraper cannot
report: that it is silent, and the state of single matches at this moment.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.model.match import Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.model.scraper_report import BreakerNote, MatchCost, NodeBeat
from longstop.supervision.health_grade_and_recovery import OLD_SECONDS, Grade, is_wanted, name_some

#: A scraper without a heartbeat for this long counts as gone.
SILENT_SECONDS = 15.0
#: By default an idle source is asked for its listing every minute; three missed listings are a fault.
UNLISTED_SECONDS = 180.0
#: If no match in play was read for this long, the node should get no requests for live data.
UNREAD_SECONDS = 180.0
MAX_ERRORS_A_MINUTE = 10
#: The resource limits of one match (US4).
MAX_MATCH_BYTES = 1 << 30
MAX_MATCH_CPU_PERCENT = 20.0
_TOO_MANY = f"more than {MAX_ERRORS_A_MINUTE} errors a minute"
_WORST_FIRST = (Grade.FAILING, Grade.RECOVERING, Grade.DEGRADED, Grade.HEALTHY)
_NAMED_BREAKERS = 5
#: Scopes of breaker notes, widest first: only the first few notes are shown.
_WIDEST_FIRST = ("rest", "source", "target", "layout", "match")
#: A process that keeps dying restarts within a minute, and its death is recorded within another.
_STILL_DYING = timedelta(seconds=150)
#: Up to how many seconds a duration is given in which unit.
_UNITS = ((120, 1, "s"), (120 * 60, 60, "min"), (48 * 3600, 3600, "h"))

#: The reason without any heartbeat.
NEVER_RAN = "no scraper has run here yet"


class HealthStatus(StrEnum):
    HEALTHY = "healthy"
    #: Data is served, but a scraper is not healthy or a match has a problem.
    DEGRADED = "degraded"
    #: No new data can be expected.
    DOWN = "down"


class HealthVerdict(Struct, frozen=True, kw_only=True):
    """A status with the worst grade behind it, and why."""

    status: HealthStatus
    #: `None` when no scraper is running.
    grade: Grade | None = None
    #: Empty when healthy.
    reasons: tuple[str, ...] = ()
    #: Worth knowing, but intended by an operator or temporary.
    notes: tuple[str, ...] = ()
    #: Whether no match in play is being read: the node should get no requests for live data.
    is_unread: bool = False

    @property
    def summary(self) -> str:
        """One word for a terminal: the status, or the grade where that is more precise."""
        is_precise = self.status is HealthStatus.DEGRADED and self.grade in (Grade.FAILING, Grade.RECOVERING)
        return (self.grade if is_precise and self.grade else self.status).value


def assess_health(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord], now: Moment) -> HealthVerdict:
    """Return the verdict. Without any match in play it is healthy, as long as a scraper runs."""
    active = live_beats(beats, now)
    if not active:
        return down(silence_reason(beats, now))
    grade = min((Grade(beat.grade) for beat in active), key=_WORST_FIRST.index)
    notes = (*_paused_by_operator(active, records), *open_circuits(active, now), *_costly(active, records))
    has_errors = all(beat.errors_last_minute > MAX_ERRORS_A_MINUTE for beat in active)
    if problems := [
        f"{beat.node} cannot store anything: {beat.store_problem}" for beat in active if beat.store_problem
    ]:
        return HealthVerdict(status=HealthStatus.DOWN, grade=grade, reasons=tuple(problems), notes=notes)
    if has_errors and all(_is_older(record, now, OLD_SECONDS) for record in records):
        return down(f"{_TOO_MANY}, and no match was read for {OLD_SECONDS:.0f} s", grade=grade, notes=notes)
    if unread := _unread(records, grade, now):
        reasons = (unread, *_grade_reasons(active), *_unread_listings(active, now), *_damaged(active))
        # This is the definition of failing, whatever the scraper's own grade is at this moment.
        return HealthVerdict(
            status=HealthStatus.DEGRADED, grade=Grade.FAILING, reasons=reasons, notes=notes, is_unread=True
        )
    failing = [record for record in records if record.consecutive_failures] if has_errors else []
    reasons = (
        *_grade_reasons(active),
        *_unread_listings(active, now),
        *_damaged(active),
        *_match_reasons(records, failing, now),
    )
    status = HealthStatus.DEGRADED if reasons else HealthStatus.HEALTHY
    return HealthVerdict(status=status, grade=grade, reasons=reasons, notes=notes)


def down(reason: str, *, grade: Grade | None = None, notes: tuple[str, ...] = ()) -> HealthVerdict:
    """Return the verdict that no new data can be expected."""
    return HealthVerdict(status=HealthStatus.DOWN, grade=grade, reasons=(reason,), notes=notes)


def with_reasons(verdict: HealthVerdict, reasons: tuple[str, ...]) -> HealthVerdict:
    """Return the verdict with these reasons: degraded, unless it is down."""
    status = HealthStatus.DEGRADED if verdict.status is HealthStatus.HEALTHY else verdict.status
    return replace(verdict, status=status, reasons=reasons)


def with_store_problems(verdict: HealthVerdict, problems: tuple[str, ...]) -> HealthVerdict:
    """Return the verdict while the store cannot be read or written: nothing new can be served."""
    if not problems:
        return verdict
    # That no scraper has run yet would contradict this.
    others = (each for each in verdict.reasons if each != NEVER_RAN)
    return replace(verdict, status=HealthStatus.DOWN, reasons=(*others, *problems))


def live_beats(beats: Sequence[NodeBeat], now: Moment) -> list[NodeBeat]:
    """Return the heartbeats of the scrapers that are running."""
    return [beat for beat in beats if not is_silent(beat, now)]


def is_silent(beat: NodeBeat, now: Moment) -> bool:
    # A heartbeat from the future means that the clock was set back: it proves as little as an old one.
    return beat.is_over or abs(beat.silence_at(now)) > SILENT_SECONDS


def silence_reason(beats: Sequence[NodeBeat], now: Moment) -> str:
    """Return since when no scraper is running."""
    if not beats:
        return NEVER_RAN
    past = [(seconds, beat.is_over) for beat in beats if (seconds := beat.silence_at(now)) >= 0]
    if not past:
        return "the last heartbeat lies in the future: the clock was set back"
    seconds, is_over = min(past)
    if is_over:
        return f"the last scraper stopped {_duration(seconds)} ago, as requested"
    return f"no heartbeat from a scraper for {_duration(seconds)}"


def open_circuits(beats: Sequence[NodeBeat], now: Moment) -> Iterator[str]:
    """Yield what is not polled at present and for how long, without error texts: these need a token."""
    notes = sorted(((note, beat.silence_at(now)) for beat in beats for note in beat.breakers), key=_by_scope)
    for note, age in notes[:_NAMED_BREAKERS]:
        yield _circuit_text(note, (note.left_seconds or 0.0) - age)
    if len(notes) > _NAMED_BREAKERS:
        yield f"and {len(notes) - _NAMED_BREAKERS} more open circuits"


def start_failure(process: str, recoveries: Iterable[Recovery], now: datetime) -> str | None:
    """Return a reason if `scraper` or `api` keeps dying after each start; `recoveries` has the newest first."""
    starts = [each for each in recoveries if each.kind is RecoveryKind.RESTART and each.subject == process]
    latest = [each for each in starts if abs(now - each.began_at) < _STILL_DYING]
    if not any(each.outcome is RecoveryOutcome.NOT_RECOVERED for each in latest[:2]):
        return None
    if latest[0].outcome is RecoveryOutcome.RECOVERED:
        return None
    name = "API" if process == "api" else process
    return f"the {name} keeps failing after its start: {latest[0].trigger} (see its log)"


def _grade_reasons(beats: Sequence[NodeBeat]) -> Iterator[str]:
    for beat in beats:
        if beat.grade != Grade.HEALTHY:
            yield f"{beat.node} is {beat.grade}" + (f": {beat.grade_reason}" if beat.grade_reason else "")


def _match_reasons(
    records: Sequence[MonitoringRecord], failing: Sequence[MonitoringRecord], now: Moment
) -> Iterator[str]:
    in_play = [record for record in records if is_wanted(record)]
    stale = [record for record in in_play if _is_older(record, now, OLD_SECONDS)]
    unsynced = [record for record in in_play if record.sync is not SyncState.IN_SYNC]
    paused = [record for record in records if record.phase is Phase.PAUSED and not record.is_on_hold]
    frozen = [record for record in in_play if record.frozen_since is not None]
    yield from _listed(f"{_TOO_MANY}, and failing", failing)
    yield from _listed(f"in play and older than {OLD_SECONDS:.0f} s", stale)
    yield from _listed("in play and not in sync", unsynced)
    yield from _listed("paused after refused or unreadable responses", paused)
    yield from _listed("in play, but the site shows frozen data", frozen)


def _damaged(beats: Sequence[NodeBeat]) -> Iterator[str]:
    if refs := sorted({ref for beat in beats for ref in beat.damaged_matches}):
        yield f"not polled, because stored data are damaged: {name_some(refs)}"


def _paused_by_operator(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord]) -> Iterator[str]:
    sources = sorted({source for beat in beats for source in beat.paused_sources})
    if sources:
        yield f"sources paused by an operator: {', '.join(sources)}"
    paused = [record for record in records if record.is_on_hold and record.ref.source not in sources]
    yield from _listed("paused by an operator", paused)


def _costly(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord]) -> Iterator[str]:
    costs = {match_id: cost for beat in beats for match_id, cost in beat.costs.items()}
    large = [record for record in records if _is_costly(costs.get(record.match_id, MatchCost()))]
    yield from _listed(f"uses at least {MAX_MATCH_BYTES >> 20} MB or {MAX_MATCH_CPU_PERCENT:.0f} % CPU", large)


def _is_costly(cost: MatchCost) -> bool:
    return (cost.pss_bytes or 0) >= MAX_MATCH_BYTES or (cost.cpu_percent or 0.0) >= MAX_MATCH_CPU_PERCENT


def _listed(what: str, records: Sequence[MonitoringRecord]) -> Iterator[str]:
    if records:
        yield f"{what}: {name_some([str(record.ref) for record in records])}"


def _unread_listings(beats: Sequence[NodeBeat], now: Moment) -> Iterator[str]:
    """Yield a reason for each source whose listing was not read: a failing listing must not pass for an idle source."""
    for beat in beats:
        for source, at_the_beat in sorted(beat.unlisted_seconds.items()):
            seconds = at_the_beat + beat.silence_at(now)
            if seconds > UNLISTED_SECONDS:
                yield f"the listing of {source} was not read for {seconds:.0f} s"


def _unread(records: Sequence[MonitoringRecord], grade: Grade, now: Moment) -> str:
    """Return a reason if no match in play was read for long, also when breakers pause all of them."""
    in_play = [record for record in records if is_wanted(record)]
    if not in_play or not all(_is_older(record, now, UNREAD_SECONDS) for record in in_play):
        return ""
    if any(record.last_poll_at is not None for record in in_play):
        return f"no match in play was read for {UNREAD_SECONDS:.0f} s"
    # Matches that were never read may be new. The scraper's own grade shows when it has waited too long.
    return "no match in play was ever read" if grade in (Grade.FAILING, Grade.RECOVERING) else ""


def _is_older(record: MonitoringRecord, now: Moment, seconds: float) -> bool:
    age = record.age_at(now)
    return age is None or age > seconds


def _by_scope(aged_note: tuple[BreakerNote, float]) -> tuple[int, str]:
    note, _ = aged_note
    return _WIDEST_FIRST.index(note.scope) if note.scope in _WIDEST_FIRST else len(_WIDEST_FIRST), note.subject


def _circuit_text(note: BreakerNote, left_seconds: float) -> str:
    if note.scope == "rest":
        term = f" for another {_duration(left_seconds)}" if left_seconds > 0 else ""
        return f"{note.subject} is rate-limited{term} (Retry-After)"
    # "Up to", because a canary request for another match may close it earlier.
    term = f" for up to {_duration(left_seconds)}" if left_seconds > 0 else ""
    if term and note.scope == "target":
        term += ", probed meanwhile"
    return f"circuit {note.state.replace('_', '-')} for {note.scope} {note.subject}{term}"


def _duration(seconds: float) -> str:
    for limit, unit, name in _UNITS:
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{int(seconds // 86400)} days"
