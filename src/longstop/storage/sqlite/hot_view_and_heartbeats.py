"""The hot view on SQLite: `hot.db`, written by the scraper a few times a second, read by the API."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment, this_boot
from longstop.errors import StorageError, StoreDamaged, StoreTooNew, UnsafeSQLite
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import NodeBeat
from longstop.storage.base import MAX_MATCH_ID, HotReader, HotRow
from longstop.storage.sqlite.connection import (
    ReadOnlyDatabase,
    Row,
    Synchronous,
    columns_of,
    files_of,
    first_or_none,
    open_writable,
    to_record,
    translated,
)
from longstop.storage.sqlite.load_sql_and_migrate import Database, queries

_SQL = queries("hot/queries.sql")

#: How long a row may wait to be written with others.
FLUSH_EVERY_SECONDS = 0.25


class _Deletion(NamedTuple):
    """A statement, and which matches it deletes."""

    statement: str
    bindings: Row
    covers: Callable[[int], bool]


class _Pending(Struct):
    """What is to be written: deletions first, then the newest rows and heartbeats."""

    deletions: list[_Deletion] = []
    rows: dict[int, HotRow] = {}
    beats: dict[str, NodeBeat] = {}

    def followed_by(self, newer: "_Pending") -> "_Pending":
        """Return both as one; newer deletions apply to older rows."""
        rows = {key: row for key, row in self.rows.items() if not any(each.covers(key) for each in newer.deletions)}
        return _Pending(self.deletions + newer.deletions, rows | newer.rows, self.beats | newer.beats)


class SqliteHotWriter:
    """Accepts rows without waiting; its thread writes the newest row of each match.

    It calls `on_failure` from that thread, once until a write succeeds again. The rows are kept and retried.
    """

    def __init__(
        self,
        path: Path,
        *,
        on_failure: Callable[[StorageError], None],
        flush_every_seconds: float = FLUSH_EVERY_SECONDS,
    ) -> None:
        self._path = path
        self._on_failure = on_failure
        self._every = flush_every_seconds
        self._lock = Lock()
        self._pending = _Pending()
        #: The rows in the file, with checksums instead of payloads.
        self._written: dict[int, HotRow] = {}
        self._connection: apsw.Connection | None = None
        self._is_failing = False
        self._open_if_possible()
        self._stopping = Event()
        self._ended: Future[None] = Future()
        # From here cancellation only stops the waiting: a hung disk cannot delay exit.
        self._ended.set_running_or_notify_cancel()
        self._thread = Thread(target=self._work, name="writer of the hot view", daemon=True)
        self._thread.start()

    def put(self, row: HotRow) -> None:
        with self._lock:
            self._pending.rows[row.record.match_id] = row

    def forget(self, match_id: int) -> None:
        self._delete(_Deletion("forget", {"match_id": match_id}, lambda each: each == match_id))

    def keep_only(self, match_ids: Collection[int]) -> None:
        kept = msgspec.json.encode(sorted(match_ids)).decode()
        self._delete(_Deletion("keep_only", {"match_ids": kept}, lambda each: each not in match_ids))

    def beat(self, beat: NodeBeat) -> None:
        with self._lock:
            self._pending.beats[beat.node] = beat

    async def aclose(self) -> None:
        self._stopping.set()
        await asyncio.wrap_future(self._ended)

    def _delete(self, deletion: _Deletion) -> None:
        with self._lock:
            self._pending = self._pending.followed_by(_Pending([deletion]))

    def _work(self) -> None:
        try:
            while not self._stopping.wait(self._every):
                self._flush()
            self._flush()
            self._drop_connection()
        finally:
            self._ended.set_result(None)

    def _flush(self) -> None:
        with self._lock:
            taken, self._pending = self._pending, _Pending()
        if taken.deletions:
            # They may delete rows that count as written.
            self._written.clear()
        changed = {match_id: row for match_id, row in taken.rows.items() if self._written.get(match_id) != _bare(row)}
        if not changed and not taken.beats and not taken.deletions:
            return
        try:
            with translated(self._path):
                self._write(changed, taken)
        except StorageError as error:
            with self._lock:
                self._pending = taken.followed_by(self._pending)
            self._complain(error)
        else:
            self._written.update((match_id, _bare(row)) for match_id, row in changed.items())
            self._is_failing = False

    def _write(self, changed: Mapping[int, HotRow], taken: _Pending) -> None:
        if self._connection is None:
            self._connection = _open(self._path)
        with self._connection as connection:
            for deletion in taken.deletions:
                connection.execute(_SQL[deletion.statement], deletion.bindings)
            for match_id, row in changed.items():
                connection.execute(_SQL["put_view"], _view_columns(row))
                before = self._written.get(match_id)
                if before is None or before.checksum != row.checksum:
                    connection.execute(_SQL["put_payload"], {"match_id": match_id, "payload": row.payload})
            for beat in taken.beats.values():
                connection.execute(_SQL["put_beat"], {"node": beat.node, "beat": _text(beat), "boot": this_boot()})

    def _open_if_possible(self) -> None:
        """Open the file; if that fails, try again with the first rows."""
        try:
            self._connection = _open(self._path)
        except UnsafeSQLite:
            raise
        except StorageError as error:
            self._complain(error)

    def _complain(self, error: StorageError) -> None:
        self._drop_connection()
        # The file may be a new one next time, so nothing counts as written.
        self._written.clear()
        if not self._is_failing:
            self._is_failing = True
            self._on_failure(error)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()


class SqliteHotReader:
    """Reads the hot view; empty until the file exists, and follows a replaced file."""

    def __init__(self, path: Path, inline_ms: int | None = None) -> None:
        self._file = ReadOnlyDatabase(path, Database.HOT, inline_ms)

    async def row(self, match_id: int) -> HotRow | None:
        return first_or_none(await self._file.rows(_SQL["row"], {"match_id": match_id}, _hot_row))

    async def records(self, first: int = 1, last: int = MAX_MATCH_ID) -> Sequence[MonitoringRecord]:
        return await self._file.rows(_SQL["records"], {"first": first, "last": last}, _record)

    async def beats(self) -> Sequence[NodeBeat]:
        return await self._file.rows(_SQL["beats"], None, _beat)

    async def aclose(self) -> None:
        await self._file.aclose()


async def former_polls(reader: HotReader) -> dict[int, Moment]:
    """Return when each match was last polled since boot; empty if the view cannot be read."""
    try:
        records = await reader.records()
    except StorageError:
        return {}
    return {
        record.match_id: Moment(record.last_poll_at, record.last_poll_monotonic)
        for record in records
        if record.last_poll_at is not None and record.last_poll_monotonic is not None
    }


def _open(path: Path) -> apsw.Connection:
    """Open the file; recreate it if it is damaged or of another version, wait if it is locked."""
    try:
        return open_writable(path, Database.HOT, Synchronous.OFF)
    except (StoreDamaged, StoreTooNew):
        _remove(path)
        return open_writable(path, Database.HOT, Synchronous.OFF)


def _remove(path: Path) -> None:
    try:
        for each in files_of(path):
            each.unlink()
    except OSError as error:
        raise StorageError(f"{path.name}: the damaged file cannot be removed ({error.strerror})") from error


def _bare(row: HotRow) -> HotRow:
    return replace(row, payload=None)


def _text(record: MonitoringRecord | NodeBeat) -> str:
    return msgspec.json.encode(record).decode()


def _record(row: Row) -> MonitoringRecord:
    record = msgspec.json.decode(row["record"], type=MonitoringRecord)
    return record if _is_of_this_boot(row) else replace(record, last_poll_monotonic=None)


def _beat(row: Row) -> NodeBeat:
    beat = msgspec.json.decode(row["beat"], type=NodeBeat)
    return beat if _is_of_this_boot(row) else replace(beat, beat_monotonic=None)


def _is_of_this_boot(row: Row) -> bool:
    """Return whether a row's monotonic time is valid: the file survives a reboot, monotonic times do not."""
    return row["boot"] is not None and row["boot"] == this_boot()


def _view_columns(row: HotRow) -> Row:
    return columns_of(row) | {"match_id": row.record.match_id, "record": _text(row.record), "boot": this_boot()}


def _hot_row(row: Row) -> HotRow:
    return to_record(HotRow, row | {"record": _record(row)})
