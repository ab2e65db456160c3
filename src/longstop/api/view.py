"""What is known of a match when someone asks: the live view first, the store when there is none."""

from datetime import datetime

from msgspec import Struct

from longstop.model.match import MonitoringRecord, Phase, SyncState
from longstop.model.snapshot import Snapshot
from longstop.storage.base import HotRow, MatchRow


class MatchView(Struct, frozen=True, kw_only=True):
    """A payload with everything a reader needs to judge it."""

    match: MatchRow
    payload: bytes
    checksum: str
    sequence: int
    captured_at: datetime
    #: The last accepted poll: what the age is measured from.
    polled_at: datetime
    scraper_id: str
    sync: SyncState


def from_hot(match: MatchRow, row: HotRow) -> MatchView | None:
    """Return the live view, or `None` while it holds no payload."""
    if row.payload is None or row.checksum is None or row.sequence is None or row.captured_at is None:
        return None
    return MatchView(
        match=match,
        payload=row.payload,
        checksum=row.checksum,
        sequence=row.sequence,
        captured_at=row.captured_at,
        polled_at=row.record.last_poll_at or row.captured_at,
        scraper_id=row.scraper_id,
        sync=row.record.sync,
    )


def from_store(match: MatchRow, snapshot: Snapshot, record: MonitoringRecord | None) -> MatchView:
    """Return the stored view. Without a live record nobody vouches for it, unless it is archived: that is settled."""
    unwatched = SyncState.IN_SYNC if match.phase is Phase.ARCHIVED else SyncState.RECOVERING
    polled_at = record.last_poll_at if record else None
    return MatchView(
        match=match,
        payload=snapshot.payload,
        checksum=snapshot.checksum,
        sequence=snapshot.sequence,
        captured_at=snapshot.created_at,
        polled_at=polled_at or snapshot.created_at,
        scraper_id=snapshot.scraper_id,
        sync=record.sync if record else unwatched,
    )


def age_seconds(moment: datetime, now: datetime) -> float:
    """Return how long ago a moment was, to the millisecond; two clocks that differ never make it negative."""
    return max(0.0, round((now - moment).total_seconds(), 3))
