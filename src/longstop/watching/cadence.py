"""When to look next. Pure: a match's record and a moment go in, seconds come out."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from longstop.errors import PageNotFound, SourceRefused
from longstop.model.match import MonitoringRecord, Phase, Priority, SyncState, priority_of

ARCHIVE_AFTER = timedelta(hours=24)
#: "Not found" is remembered for this long.
NOT_FOUND_SECONDS = 60.0
#: The longest that a site can make us wait by Retry-After.
MAX_RETRY_AFTER_SECONDS = 900.0
#: A match that fails this often in a row no longer hurries everybody else's listing.
MANY_FAILURES = 5
#: What is open about a match is looked into after 10, 20, 40 … seconds, and then every five minutes.
FIRST_REVISIT_SECONDS = 10.0
LAST_REVISIT_SECONDS = 300.0


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
    if record.sync is SyncState.RECOVERING and record.consecutive_failures < MANY_FAILURES:
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
    """Return whether it is time for the next look, be it after a good one or a bad one."""
    if not may_look(record, now):
        return False
    tried = [moment for moment in (record.last_poll_at, record.last_attempt_at) if moment is not None]
    if not tried:
        return True
    age = now - max(tried)
    # A clock that was set back must not put a match to sleep.
    return age < timedelta(0) or age >= timedelta(seconds=interval(record, now, cadence))


def may_look(record: MonitoringRecord, now: datetime) -> bool:
    """Return whether the site may be asked about this match at all."""
    return record.not_before is None or now >= record.not_before


def wait_after(error: Exception) -> float:
    """Return the seconds for which an answer asks to be left alone; 0 when it does not."""
    if isinstance(error, PageNotFound):
        return NOT_FOUND_SECONDS
    if isinstance(error, SourceRefused) and error.retry_after_seconds is not None:
        return min(max(error.retry_after_seconds, 0.0), MAX_RETRY_AFTER_SECONDS)
    return 0.0


def revisit_after(visits: int) -> float:
    """Return the seconds until what is open about a match is looked into again, after this many visits in vain."""
    return min(FIRST_REVISIT_SECONDS * 2.0 ** min(visits, 10), LAST_REVISIT_SECONDS)


def listing_interval(records: Iterable[MonitoringRecord], now: datetime, cadence: Cadence) -> float:
    """Return the pause between two listings: as short as the most urgent match wants it."""
    return min([cadence.discovery, *(interval(record, now, cadence) for record in records)])


def may_be_archived(phase: Phase, completed_at: datetime | None, now: datetime) -> bool:
    """Return whether a match has been over for so long that nobody needs to look any more."""
    return phase is Phase.COMPLETED and completed_at is not None and now - completed_at >= ARCHIVE_AFTER
