"""The errors on SQLite: `ops.db`, written by the scraper, read and resolved by people."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from longstop.clock import from_iso, to_iso
from longstop.model.episode import (
    Episode,
    EpisodeChange,
    ErrorSeen,
    ErrorType,
    Resolution,
    ResolutionMethod,
    StoredError,
)
from longstop.storage.migrate import Database
from longstop.storage.queries import Row, queries, row, rows
from longstop.storage.readonly import ReadOnlyDatabase
from longstop.storage.reopened import ReopenedDatabase

_SQL = queries("ops/queries.sql")

#: Resolved errors are kept for this long after they were last seen (NFR-017).
KEEP_FOR = timedelta(days=30)
#: However often a site changes its mind, this many rows are enough.
MAX_ROWS = 100_000
#: An error that is back so soon was never over: a match that fails every other time makes one row, not thousands.
BACK_WITHIN = timedelta(seconds=60)


class ErrorFilter(Struct, frozen=True, kw_only=True):
    """Which errors are wanted; what is `None` asks for all."""

    match_id: int | None = None
    ref: str | None = None
    is_open: bool = False
    limit: int = 20


class ErrorWriter:
    """Writes errors; the file is opened when it is first needed, and again after every failure."""

    def __init__(self, path: Path, max_rows: int = MAX_ROWS) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._max_rows = max_rows

    @property
    def is_open(self) -> bool:
        return self._file.is_open

    def open_episodes(self) -> list[Episode]:
        """Return what is unresolved."""
        with self._file.connection() as connection:
            return [Episode(each["ref"], each["signature"]) for each in rows(connection, _SQL["open_episodes"])]

    def write(self, changes: Mapping[Episode, EpisodeChange]) -> None:
        """Write all changes or none."""
        with self._file.transaction() as connection:
            for episode, change in changes.items():
                _write(connection, episode, change)

    def resolve(self, error_id: int, now: datetime) -> bool:
        """Mark an error as dealt with; return whether it was open."""
        with self._file.connection() as connection:
            return row(connection, _SQL["resolve_error"], {"id": error_id, "at": to_iso(now)}) is not None

    def prune(self, now: datetime) -> None:
        """Let go of what is old, and of what is too much."""
        with self._file.transaction() as connection:
            connection.execute(_SQL["prune_old"], {"before": to_iso(now - KEEP_FOR)})
            connection.execute(_SQL["prune_many"], {"max_rows": self._max_rows})

    def close(self) -> None:
        self._file.close()


class ErrorReader:
    """Reads errors while a scraper writes them, and when none runs."""

    def __init__(self, path: Path) -> None:
        self._file = ReadOnlyDatabase(path, Database.OPS)

    def errors(self, wanted: ErrorFilter) -> list[StoredError]:
        bindings = {
            "match_id": wanted.match_id,
            "ref": wanted.ref,
            "open": wanted.is_open or None,
            "limit": wanted.limit,
        }
        return [_stored(each) for each in self._file.rows(_SQL["errors"], bindings)]

    def close(self) -> None:
        self._file.close()


def _write(connection: apsw.Connection, episode: Episode, change: EpisodeChange) -> None:
    names = {"ref": episode.ref, "signature": episode.signature}
    if change.error is not None:
        _write_error(connection, change.error, change)
    if change.resolution is not None:
        at, method = to_iso(change.resolution.at), change.resolution.method.value
        connection.execute(_SQL["resolve_episode"], {**names, "at": at, "method": method})


def _write_error(connection: apsw.Connection, error: ErrorSeen, change: EpisodeChange) -> None:
    columns = {
        **_columns(error),
        "count": change.count,
        "last_seen": to_iso(change.last_seen or error.timestamp),
        "resolved_after": to_iso(error.timestamp - BACK_WITHIN),
    }
    if row(connection, _SQL["continue_episode"], columns) is None:
        connection.execute(_SQL["open_episode"], columns)


def _columns(error: ErrorSeen) -> dict[str, Any]:
    return {
        "ref": error.episode.ref,
        "signature": error.episode.signature,
        "scraper_id": error.scraper_id,
        "match_id": error.match_id,
        "timestamp": to_iso(error.timestamp),
        "error_type": error.error_type.value,
        "error_class": error.error_class,
        "error_message": error.error_message,
        "stack_trace": error.stack_trace,
        "source": error.source,
        "url": error.url,
        "operation": error.operation,
        "retry_attempt": error.retry_attempt,
        "snapshot": error.snapshot,
    }


def _stored(row: Row) -> StoredError:
    return StoredError(
        id=row["id"],
        episode=Episode(row["ref"], row["signature"]),
        scraper_id=row["scraper_id"],
        match_id=row["match_id"],
        timestamp=from_iso(row["timestamp"]),
        error_type=ErrorType(row["error_type"]),
        error_class=row["error_class"],
        error_message=row["error_message"],
        stack_trace=row["stack_trace"],
        source=row["source"],
        url=row["url"],
        operation=row["operation"],
        retry_attempt=row["retry_attempt"],
        snapshot=row["snapshot"],
        count=row["count"],
        last_seen=from_iso(row["last_seen"]),
        resolution=_resolution(row),
    )


def _resolution(row: Row) -> Resolution | None:
    if not row["resolved"]:
        return None
    return Resolution(at=from_iso(row["resolution_time"]), method=ResolutionMethod(row["resolution_method"]))
