"""The hot view on SQLite: `hot.db`, written by the scraper a few times a second, read by the API.

The file is disposable. Whatever happens to it, the writer moves it aside and fills a new one with the rows that it has
in memory; a reader ignores what it cannot read, and the store is asked instead.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple, TypeVar

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Moment, this_boot
from longstop.errors import ResourcesExhausted, StorageError, StoreDamaged, StoreTooNew, UnsafeSQLite
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import NodeBeat
from longstop.model.snapshot import checksum
from longstop.storage.base import MAX_MATCH_ID, HotReader, HotRow
from longstop.storage.sqlite.connection import (
    ReadOnlyDatabase,
    Row,
    Synchronous,
    close,
    columns_of,
    first_or_none,
    open_writable,
    records,
    to_record,
)
from longstop.storage.sqlite.files_and_errors import OpenFiles, files_of, translated
from longstop.storage.sqlite.load_sql_and_migrate import Database, queries

_SQL = queries("hot/queries.sql")
T = TypeVar("T")

#: How long a row may wait to be written with others.
FLUSH_EVERY_SECONDS = 0.25
#: How many damaged files are kept for inspection.
DAMAGED_KEPT = 3
#: How many payloads a reader remembers as intact.
MAX_INTACT = 128


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

    It calls `on_failure` from that thread, once until a write succeeds again. The rows are kept and retried. It calls
    `on_rebuilt` with the reason and the name of the damaged file when it has begun another one.
    """

    def __init__(
        self,
        path: Path,
        *,
        on_failure: Callable[[StorageError], None],
        on_rebuilt: Callable[[str, str], None] = lambda reason, moved_to: None,
        flush_every_seconds: float = FLUSH_EVERY_SECONDS,
    ) -> None:
        self._path = path
        self._on_failure = on_failure
        self._on_rebuilt = on_rebuilt
        self._every = flush_every_seconds
        self._lock = Lock()
        self._pending = _Pending()
        #: The newest rows and heartbeats in the file. The payloads are those of the matches in memory.
        self._written: dict[int, HotRow] = {}
        self._beats: dict[str, NodeBeat] = {}
        self._connection: apsw.Connection | None = None
        self._files: OpenFiles | None = None
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
        try:
            self._replace_lost_file()
        except StorageError as error:
            self._complain(error)
            return
        with self._lock:
            taken, self._pending = self._pending, _Pending()
        if taken.deletions:
            # They may delete rows that count as written.
            deleted = [key for key in self._written if any(each.covers(key) for each in taken.deletions)]
            for key in deleted:
                del self._written[key]
        changed = {match_id: row for match_id, row in taken.rows.items() if self._written.get(match_id) != row}
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
            self._written |= changed
            self._beats |= taken.beats
            self._is_failing = False
            if self._files is not None:
                self._files.note()

    def _replace_lost_file(self) -> None:
        """Begin another file if this one was deleted, replaced or shortened by another program."""
        if self._connection is None or self._files is None:
            return
        problem = self._files.problem()
        if not problem and self._files.is_shared_memory_lost():
            problem = f"{self._path.name}-shm was deleted while it was in use"
        if problem:
            self._forget_file()
            self._begin_again(problem)

    def _write(self, changed: Mapping[int, HotRow], taken: _Pending) -> None:
        with self._connection or self._open() as connection:
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
            self._open()
        except UnsafeSQLite:
            raise
        except StorageError as error:
            self._complain(error)

    def _open(self) -> apsw.Connection:
        """Open the file; begin another one if it cannot be used, but wait if it is only locked."""
        try:
            return self._use(_checked(self._path))
        except StorageError as error:
            if not _is_useless(error):
                raise
            return self._begin_again(error.cause or str(error))

    def _use(self, connection: apsw.Connection) -> apsw.Connection:
        self._connection, self._files = connection, OpenFiles(self._path)
        return connection

    def _begin_again(self, reason: str) -> apsw.Connection:
        """Move the file aside, and fill another one with the rows in memory."""
        moved_to = _set_aside(self._path)
        connection = self._use(_checked(self._path))
        self._on_rebuilt(reason, moved_to)
        return connection

    def _complain(self, error: StorageError) -> None:
        self._forget_file()
        if not self._is_failing:
            self._is_failing = True
            self._on_failure(error)

    def _forget_file(self) -> None:
        """Close the file. The next one may be a new one, so nothing counts as written."""
        self._drop_connection()
        with self._lock:
            self._pending = _Pending(rows=self._written, beats=self._beats).followed_by(self._pending)
        self._written, self._beats = {}, {}

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            close(connection)


class SqliteHotReader:
    """Reads the hot view; empty until the file exists, and follows a replaced file. Damaged rows are absent."""

    def __init__(self, path: Path, inline_ms: int | None = None) -> None:
        self._file = ReadOnlyDatabase(path, Database.HOT, inline_ms)
        #: Payloads that have their checksum, by it: comparing bytes costs less than hashing them for each request.
        self._intact: dict[str | None, bytes] = {}

    async def row(self, match_id: int) -> HotRow | None:
        row = first_or_none(await self._rows("row", {"match_id": match_id}, _unchecked_row))
        return row if row is None or self._is_intact(row) else None

    def _is_intact(self, row: HotRow) -> bool:
        if row.payload is None or self._intact.get(row.checksum) == row.payload:
            return True
        if checksum(row.payload) != row.checksum:
            return False
        if len(self._intact) >= MAX_INTACT:
            self._intact.clear()
        self._intact[row.checksum] = row.payload
        return True

    async def records(self, first: int = 1, last: int = MAX_MATCH_ID) -> Sequence[MonitoringRecord]:
        return await self._rows("records", {"first": first, "last": last}, _record)

    async def beats(self) -> Sequence[NodeBeat]:
        return _present(await self._file.rows(_SQL["beats"], None, _if_readable(_beat)))

    async def aclose(self) -> None:
        await self._file.aclose()

    async def _rows(self, statement: str, bindings: Row, decode: Callable[[Row], T]) -> list[T]:
        """Return what can be read: the store has the rest. That nothing can be read shows in the heartbeats."""
        try:
            return _present(await self._file.rows(_SQL[statement], bindings, _if_readable(decode)))
        except StoreDamaged:
            return []


def _if_readable(decode: Callable[[Row], T]) -> Callable[[Row], T | None]:
    def decode_or_skip(row: Row) -> T | None:
        try:
            return decode(row)
        except (StoreDamaged, msgspec.MsgspecError):
            return None

    return decode_or_skip


def _present(found: Iterable[T | None]) -> list[T]:
    return [each for each in found if each is not None]


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


def _checked(path: Path) -> apsw.Connection:
    """Open the file, and decode every row: one that cannot be read would fail each request that needs it."""
    connection = open_writable(path, Database.HOT, Synchronous.OFF)
    try:
        with translated(path):
            records(connection, _SQL["all_rows"], None, _hot_row)
            records(connection, _SQL["beats"], None, _beat)
    except BaseException:
        close(connection)
        raise
    return connection


def _is_useless(error: StorageError) -> bool:
    """Return whether the file cannot be used, now and later."""
    if isinstance(error, StoreDamaged | StoreTooNew):
        return True
    is_unusable = isinstance(error.__cause__, apsw.CantOpenError | apsw.ReadOnlyError)
    return is_unusable and not isinstance(error, ResourcesExhausted)


def _set_aside(path: Path) -> str:
    """Rename the file and its log, and return the new name; empty if there was none. Older ones are removed."""
    moved_to = f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    try:
        found = [each for each in files_of(path) if not each.name.endswith("-shm")]
        for each in found:
            each.rename(each.with_name(moved_to + each.name.removeprefix(path.name)))
        path.with_name(path.name + "-shm").unlink(missing_ok=True)
        kept = sorted(each for each in path.parent.glob(f"{path.name}.damaged-*Z") if not each.is_dir())
        for each in (file for old in kept[:-DAMAGED_KEPT] for file in files_of(old)):
            each.unlink()
    except OSError as error:
        raise StorageError(f"{path.name}: the damaged file cannot be moved aside ({error.strerror})") from error
    return moved_to if found else ""


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


def _unchecked_row(row: Row) -> HotRow:
    return to_record(HotRow, row | {"record": _record(row)})


def _hot_row(row: Row) -> HotRow:
    found = _unchecked_row(row)
    if found.payload is not None and checksum(found.payload) != found.checksum:
        raise StoreDamaged("the payload does not have its checksum")
    return found
