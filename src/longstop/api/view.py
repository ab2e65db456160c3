"""What is known of a match when someone asks: the live view first, the store when there is none."""

from datetime import datetime

from msgspec import Struct

from longstop.clock import Moment
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
    #: The same, by the clock that never jumps; `None` where only the store knows it.
    polled_monotonic: float | None = None
    scraper_id: str
    sync: SyncState

    def age_at(self, now: Moment) -> float:
        return shown_age(now.seconds_since(self.polled_at, self.polled_monotonic))


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
        polled_monotonic=row.record.last_poll_monotonic,
        scraper_id=row.scraper_id,
        sync=row.record.sync,
    )


def from_store(match: MatchRow, snapshot: Snapshot, record: MonitoringRecord | None) -> MatchView:
    """Return the stored view, which is as old as its last change where no live record knows better."""
    polled_at = record.last_poll_at if record else None
    return MatchView(
        match=match,
        payload=snapshot.payload,
        checksum=snapshot.checksum,
        sequence=snapshot.sequence,
        captured_at=snapshot.created_at,
        polled_at=polled_at or snapshot.created_at,
        polled_monotonic=record.last_poll_monotonic if record else None,
        scraper_id=snapshot.scraper_id,
        sync=sync_of(match, record),
    )


def sync_of(match: MatchRow, record: MonitoringRecord | None) -> SyncState:
    """Return how far a match can be relied on. Without a record nobody watches it; an archived one is settled."""
    if record is not None:
        return record.sync
    return SyncState.IN_SYNC if match.phase is Phase.ARCHIVED else SyncState.UNWATCHED


def shown_age(seconds: float) -> float:
    """Return an age as it is shown: to the millisecond; two clocks that differ never make it negative."""
    return max(0.0, round(seconds, 3))


def record_age(record: MonitoringRecord | None, now: Moment) -> float | None:
    """Return how old what is known of a match is; `None` when nothing is."""
    age = record.age_at(now) if record else None
    return None if age is None else shown_age(age)
