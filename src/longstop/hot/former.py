"""What a former life of the scraper has left in the hot view."""

from pathlib import Path

from longstop.clock import Moment
from longstop.errors import StorageError
from longstop.hot.sqlite import SqliteHotReader


def former_polls(path: Path) -> dict[int, Moment]:
    """Return when each match was last read since this machine was started; nothing of a view that cannot be read."""
    reader = SqliteHotReader(path)
    try:
        records = reader.records()
    except StorageError:
        return {}
    finally:
        reader.close()
    return {
        record.match_id: Moment(record.last_poll_at, record.last_poll_monotonic)
        for record in records
        if record.last_poll_at is not None and record.last_poll_monotonic is not None
    }
