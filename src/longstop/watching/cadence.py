"""When to look next. Pure: a match's record and a moment go in, seconds come out."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from longstop.model.match import MonitoringRecord, Phase, Priority, SyncState, priority_of

ARCHIVE_AFTER = timedelta(hours=24)


class Cadence(Struct, frozen=True, kw_only=True):
    """How often to look, in seconds."""

    live: float = 2.5
    imminent: float = 60.0
    upcoming: float = 3600.0
    completed: float = 300.0
    #: How often to ask the listing for new matches when no match needs a look sooner.
    discovery: float = 60.0


def interval(record: MonitoringRecord, now: datetime, cadence: Cadence) -> float:
    """Return how long a good look at this match lasts."""
    if record.sync is SyncState.RECOVERING:
        return cadence.live
    match priority_of(record.status, record.start_at, now):
        case Priority.LIVE:
            return cadence.live
        case Priority.IMMINENT:
            return cadence.imminent
        case Priority.COMPLETED:
            return cadence.completed
        case None:
            return cadence.upcoming


def is_due(record: MonitoringRecord, now: datetime, cadence: Cadence) -> bool:
    """Return whether it is time for the next look."""
    if record.last_poll_at is None:
        return True
    age = now - record.last_poll_at
    # A clock that was set back must not put a match to sleep.
    return age < timedelta(0) or age >= timedelta(seconds=interval(record, now, cadence))


def listing_interval(records: Iterable[MonitoringRecord], now: datetime, cadence: Cadence) -> float:
    """Return the pause between two listings: as short as the most urgent match wants it."""
    return min([cadence.discovery, *(interval(record, now, cadence) for record in records)])


def may_be_archived(phase: Phase, completed_at: datetime | None, now: datetime) -> bool:
    """Return whether a match has been over for so long that nobody needs to look any more."""
    return phase is Phase.COMPLETED and completed_at is not None and now - completed_at >= ARCHIVE_AFTER
