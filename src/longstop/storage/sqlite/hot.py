"""The hot view on SQLite: `hot.db`, written by the scraper a few times a second, read by the API."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import apsw
import msgspec
from msgspec.structs import replace

from longstop.boot import this_boot
from longstop.clock import Moment
from longstop.errors import StorageError, StoreDamaged, StoreTooNew, UnsafeSQLite
from longstop.model.match import MonitoringRecord
from longstop.storage.base import MAX_MATCH_ID, HotReader, HotRow, NodeBeat
from longstop.storage.sqlite.connection import (
    ReadOnlyDatabase,
    Row,
    Synchronous,
    first_or_none,
    iso,
    moment,
    open_writable,
    translated,
)
from longstop.storage.sqlite.schema import Database, queries

_SQL = queries("hot/queries.sql")

#: How long a row may wait to be written with others.
FLUSH_EVERY_SECONDS = 0.25

#: A statement and its bindings.
_Order = tuple[str, dict[str, Any]]


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
        self._rows: dict[int, HotRow] = {}
        self._beats: dict[str, NodeBeat] = {}
        #: Rows to delete before anything is written, in order.
        self._orders: list[_Order] = []
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
            self._rows[row.record.match_id] = row

    def forget(self, match_id: int) -> None:
        with self._lock:
            self._rows.pop(match_id, None)
            self._orders.append(("forget", {"match_id": match_id}))

    def keep_only(self, match_ids: Collection[int]) -> None:
        with self._lock:
            self._rows = {match_id: row for match_id, row in self._rows.items() if match_id in match_ids}
            self._orders.append(("keep_only", {"match_ids": msgspec.json.encode(sorted(match_ids)).decode()}))

    def beat(self, beat: NodeBeat) -> None:
        with self._lock:
            self._beats[beat.node] = beat

    async def aclose(self) -> None:
        """Write pending rows and close the file."""
        self._stopping.set()
        await asyncio.wrap_future(self._ended)

    def _work(self) -> None:
        try:
            while not self._stopping.wait(self._every):
                self._flush()
            self._flush()
            self._drop_connection()
        finally:
            self._ended.set_result(None)

    def _flush(self) -> None:
        taken, beats, orders = self._take()
        if orders:
            # They may delete rows that count as written.
            self._written.clear()
        changed = {match_id: row for match_id, row in taken.items() if self._written.get(match_id) != _bare(row)}
        if not changed and not beats and not orders:
            return
        try:
            with translated(self._path):
                self._write(changed, beats, orders)
        except StorageError as error:
            self._give_back(taken, beats, orders)
            self._complain(error)
        else:
            self._written.update((match_id, _bare(row)) for match_id, row in changed.items())
            self._is_failing = False

    def _take(self) -> tuple[dict[int, HotRow], dict[str, NodeBeat], list[_Order]]:
        with self._lock:
            taken, self._rows = self._rows, {}
            beats, self._beats = self._beats, {}
            orders, self._orders = self._orders, []
        return taken, beats, orders

    def _give_back(self, taken: dict[int, HotRow], beats: dict[str, NodeBeat], orders: list[_Order]) -> None:
        """Keep rows that were not written, unless a newer one has arrived."""
        with self._lock:
            self._orders = orders + self._orders
            self._rows = taken | self._rows
            self._beats = beats | self._beats

    def _write(self, changed: Mapping[int, HotRow], beats: Mapping[str, NodeBeat], orders: Sequence[_Order]) -> None:
        if self._connection is None:
            self._connection = _open(self._path)
        with self._connection as connection:
            for name, bindings in orders:
                connection.execute(_SQL[name], bindings)
            for match_id, row in changed.items():
                connection.execute(_SQL["put_view"], _view_columns(row))
                before = self._written.get(match_id)
                if before is None or before.checksum != row.checksum:
                    connection.execute(_SQL["put_payload"], {"match_id": match_id, "payload": row.payload})
            for beat in beats.values():
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
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
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


def _view_columns(row: HotRow) -> dict[str, Any]:
    return {
        "match_id": row.record.match_id,
        "record": _text(row.record),
        "sequence": row.sequence,
        "checksum": row.checksum,
        "captured_at": iso(row.captured_at),
        "scraper_id": row.scraper_id,
        "boot": this_boot(),
    }


def _hot_row(row: Row) -> HotRow:
    return HotRow(
        record=_record(row),
        sequence=row["sequence"],
        checksum=row["checksum"],
        payload=row["payload"],
        captured_at=moment(row["captured_at"]),
        scraper_id=row["scraper_id"],
    )
