"""The verdict on all scrapers together, for whoever asks from outside. Pure.

Each scraper grades itself, with patience (`grades.py`); what it cannot say itself is added here: that it is silent, and
what is true of single matches at this very moment.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.model.match import IN_PLAY, MonitoringRecord, Phase, SyncState
from longstop.model.resources import MatchCost
from longstop.storage.base import NodeBeat
from longstop.supervision.grades import OLD_SECONDS, Grade
from longstop.supervision.telling import left_alone, silence

#: A scraper not heard for this long counts as gone.
SILENT_SECONDS = 15.0
#: A match in play should have been looked at within this long, also in a break.
STALE_SECONDS = OLD_SECONDS
#: A quiet source is asked for its listing every minute by default; three of them missed are no accident.
UNLISTED_SECONDS = 180.0
#: When nothing in play was read for this long, nobody should be sent here for live data.
UNREAD_SECONDS = 180.0
MAX_ERRORS_A_MINUTE = 10
#: What one match should stay below (US4).
MAX_MATCH_BYTES = 1 << 30
MAX_MATCH_CPU_PERCENT = 20.0
_TOO_MANY = f"more than {MAX_ERRORS_A_MINUTE} errors a minute"
_NAMED_MATCHES = 5
#: The worst first.
_BY_SEVERITY = (Grade.FAILING, Grade.RECOVERING, Grade.DEGRADED, Grade.HEALTHY)


class HealthStatus(StrEnum):
    """How it goes, over all, in the three words of `/health`."""

    HEALTHY = "healthy"
    #: Served, but a scraper is not healthy, or something is true of a match that should not be.
    DEGRADED = "degraded"
    #: Nothing new can be expected.
    DOWN = "down"


class Verdict(Struct, frozen=True, kw_only=True):
    """A status, the worst grade behind it, and the sentences that explain it; none when all is well."""

    status: HealthStatus
    #: `None` when no scraper was heard.
    grade: Grade | None = None
    reasons: tuple[str, ...] = ()
    #: What is as somebody wants it, or will pass by itself, and is good to know all the same.
    notes: tuple[str, ...] = ()
    #: Whether nothing in play is read: nobody should be sent here for live data.
    is_unread: bool = False

    @property
    def aside(self) -> str:
        """What the grade adds to the status, in words; empty when both say the same."""
        if self.grade is None or self.grade.value == self.status.value:
            return ""
        return "; the scraper grades itself healthy" if self.grade is Grade.HEALTHY else f" ({self.grade})"


def heard(beats: Sequence[NodeBeat], now: Moment) -> list[NodeBeat]:
    """Return the scrapers that gave a sign of life lately."""
    return [beat for beat in beats if not is_silent(beat, now)]


def is_silent(beat: NodeBeat, now: Moment) -> bool:
    # A beat from the future is of a clock that was set back: it says as little as an old one.
    return beat.is_over or abs(beat.silence_at(now)) > SILENT_SECONDS


def verdict(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord], now: Moment) -> Verdict:
    """Return how it goes. A night without a match is healthy: what counts is that someone watches."""
    active = heard(beats, now)
    if not active:
        return _down(silence(beats, now))
    grade = worst(active)
    notes = (*_paused_by_hand(active, records), *left_alone(active, now), *_costly(active, records))
    is_failing = all(beat.errors_last_minute > MAX_ERRORS_A_MINUTE for beat in active)
    if is_failing and not any(_is_fresh(record, now) for record in records):
        return _down(f"{_TOO_MANY}, and no match was read for {STALE_SECONDS:.0f} s", grade=grade, notes=notes)
    if unread := _unread(records, grade, now):
        reasons = (unread, *_grades(active), *_unread_listings(active, now))
        # Whatever a scraper says of itself meanwhile: this is what failing means.
        return Verdict(status=HealthStatus.DEGRADED, grade=Grade.FAILING, reasons=reasons, notes=notes, is_unread=True)
    failing = [record for record in records if record.consecutive_failures] if is_failing else []
    reasons = (*_grades(active), *_unread_listings(active, now), *_complaints(records, failing, now))
    status = HealthStatus.DEGRADED if reasons else HealthStatus.HEALTHY
    return Verdict(status=status, grade=grade, reasons=reasons, notes=notes)


def unreadable(reason: str = "the live view cannot be read") -> Verdict:
    return _down(reason)


def worst(beats: Sequence[NodeBeat]) -> Grade:
    return min((Grade(beat.grade) for beat in beats), key=_BY_SEVERITY.index)


def aged(judged: Verdict, seconds: float) -> Verdict:
    """Return a verdict on what was seen too long ago to be called healthy."""
    status = HealthStatus.DEGRADED if judged.status is HealthStatus.HEALTHY else judged.status
    return replace(judged, status=status, reasons=(*judged.reasons, f"the live view was last seen {seconds:.0f} s ago"))


def _down(reason: str, *, grade: Grade | None = None, notes: tuple[str, ...] = ()) -> Verdict:
    return Verdict(status=HealthStatus.DOWN, grade=grade, reasons=(reason,), notes=notes)


def _grades(beats: Sequence[NodeBeat]) -> Iterator[str]:
    for beat in beats:
        if beat.grade != Grade.HEALTHY:
            yield f"{beat.node} is {beat.grade}" + (f": {beat.grade_reason}" if beat.grade_reason else "")


def _complaints(records: Sequence[MonitoringRecord], failing: Sequence[MonitoringRecord], now: Moment) -> Iterator[str]:
    in_play = _wanted(records)
    stale = [record for record in in_play if _is_older(record, now, STALE_SECONDS)]
    unsynced = [record for record in in_play if record.sync is not SyncState.IN_SYNC]
    paused = [record for record in records if record.phase is Phase.PAUSED and not record.is_on_hold]
    frozen = [record for record in in_play if record.frozen_since is not None]
    yield from _complaint(f"{_TOO_MANY}, and failing", failing)
    yield from _complaint(f"in play and older than {STALE_SECONDS:.0f} s", stale)
    yield from _complaint("in play and not in sync", unsynced)
    yield from _complaint("paused, since it was refused or could not be read", paused)
    yield from _complaint("in play, and what the site shows of it stands still", frozen)


def _paused_by_hand(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord]) -> Iterator[str]:
    sources = sorted({source for beat in beats for source in beat.paused_sources})
    if sources:
        yield f"paused by hand, with all their matches: {', '.join(sources)}"
    held = [record for record in records if record.is_on_hold and record.ref.source not in sources]
    yield from _complaint("paused by hand", held)


def _costly(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord]) -> Iterator[str]:
    costs = {match_id: cost for beat in beats for match_id, cost in beat.costs.items()}
    large = [record for record in records if _is_costly(costs.get(record.match_id))]
    yield from _complaint(f"takes {MAX_MATCH_BYTES >> 20} MB or {MAX_MATCH_CPU_PERCENT:.0f} % CPU, or more", large)


def _is_costly(cost: MatchCost | None) -> bool:
    if cost is None:
        return False
    return (cost.pss_bytes or 0) >= MAX_MATCH_BYTES or (cost.cpu_percent or 0.0) >= MAX_MATCH_CPU_PERCENT


def _complaint(what: str, records: Sequence[MonitoringRecord]) -> Iterator[str]:
    if records:
        named = ", ".join(str(record.ref) for record in records[:_NAMED_MATCHES])
        more = len(records) - _NAMED_MATCHES
        yield f"{what}: {named}" + (f" and {more} more" if more > 0 else "")


def _unread_listings(beats: Sequence[NodeBeat], now: Moment) -> Iterator[str]:
    """Yield a sentence for each source that nobody has heard of: a listing that fails is not an idle night."""
    for beat in beats:
        for source, at_the_beat in sorted(beat.unlisted_seconds.items()):
            seconds = at_the_beat + beat.silence_at(now)
            if seconds > UNLISTED_SECONDS:
                yield f"the listing of {source} was not read for {seconds:.0f} s"


def _is_fresh(record: MonitoringRecord, now: Moment) -> bool:
    return not _is_older(record, now, STALE_SECONDS)


def _unread(records: Sequence[MonitoringRecord], grade: Grade, now: Moment) -> str:
    """Return a sentence when nothing in play was read for long, also where all of it rests by our own breakers."""
    in_play = _wanted(records)
    if not in_play or not all(_is_older(record, now, UNREAD_SECONDS) for record in in_play):
        return ""
    if any(record.last_poll_at is not None for record in in_play):
        return f"no match in play was read for {UNREAD_SECONDS:.0f} s"
    # What was never read is only about to be, until its scraper itself has waited for it too long.
    return "no match in play was ever read" if grade in (Grade.FAILING, Grade.RECOVERING) else ""


def _wanted(records: Sequence[MonitoringRecord]) -> list[MonitoringRecord]:
    """Return what is in play and should be read: all but what somebody has paused."""
    return [record for record in records if record.status in IN_PLAY and not record.is_on_hold]


def _is_older(record: MonitoringRecord, now: Moment, seconds: float) -> bool:
    age = record.age_at(now)
    return age is None or age > seconds
