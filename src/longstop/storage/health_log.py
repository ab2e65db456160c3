"""The health log on SQLite: how nodes and matches were over time, in `ops.db`."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from longstop.clock import from_iso, to_iso
from longstop.storage.migrate import Database
from longstop.storage.queries import queries
from longstop.storage.readonly import ReadOnlyDatabase
from longstop.storage.reopened import ReopenedDatabase

_SQL = queries("ops/queries.sql")

#: Kept for this long (NFR-017) …
KEEP_FOR = timedelta(days=30)
#: … but never more than so many: a month of a node's minutes, and ten times as many changes of matches.
MAX_ROWS = 500_000


class HealthRow(Struct, frozen=True, kw_only=True):
    """How a node or a match was, at one moment. What was not measured is `None`."""

    scraper_id: str
    timestamp: datetime
    health_status: str
    #: Of a match: failures in a row. Of a node: errors of the last minute.
    error_count: int
    #: `None` for the node as a whole.
    match_id: int | None = None
    ref: str | None = None
    memory_mb: float | None = None
    cpu_percent: float | None = None
    update_latency_ms: int | None = None
    polling_interval_seconds: float | None = None
    uptime_seconds: float | None = None
    last_update_age_seconds: float | None = None


class HealthLogWriter:
    """Adds rows, and lets go of old ones."""

    def __init__(self, path: Path, max_rows: int = MAX_ROWS) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._max_rows = max_rows

    def write(self, rows: Iterable[HealthRow]) -> None:
        """Write all or none."""
        with self._file.transaction() as connection:
            for row in rows:
                connection.execute(_SQL["put_health"], asdict(row) | {"timestamp": to_iso(row.timestamp)})

    def prune(self, now: datetime) -> None:
        with self._file.transaction() as connection:
            connection.execute(_SQL["prune_old_health"], {"before": to_iso(now - KEEP_FOR)})
            connection.execute(_SQL["prune_many_health"], {"max_rows": self._max_rows})

    def close(self) -> None:
        self._file.close()


class HealthLogReader:
    """Reads rows while a scraper writes them, and when none runs."""

    def __init__(self, path: Path, patience_ms: int | None = None) -> None:
        self._file = ReadOnlyDatabase(path, Database.OPS, patience_ms)

    def rows(
        self, *, match_id: int | None = None, ref: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[HealthRow]:
        """Return the newest first: of one match or of everything, all or those since a moment."""
        bindings = {"match_id": match_id, "ref": ref, "since": to_iso(since) if since else None, "limit": limit}
        found = self._file.rows(_SQL["health_log"], bindings)
        names = HealthRow.__struct_fields__
        return [
            HealthRow(**({name: each[name] for name in names} | {"timestamp": from_iso(each["timestamp"])}))
            for each in found
        ]

    def close(self) -> None:
        self._file.close()
