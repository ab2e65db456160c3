"""SQLite connections: safe settings, translated errors, and files that several processes use."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, TypeVar

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from longstop.clock import to_iso
from longstop.daemon_thread import DaemonThread
from longstop.errors import StorageError, StoreDamaged, UnsafeSQLite, UsageError
from longstop.storage.sqlite.files_and_errors import (
    beside,
    damaged,
    file_identity,
    file_state,
    refuse_loss,
    translated,
)
from longstop.storage.sqlite.load_sql_and_migrate import Database, migrate, migrations_of, pending, transaction

Row = dict[str, Any]
T = TypeVar("T")
Job = Callable[[apsw.Connection], T]

#: A file that is not closed loses nothing: committed data is on disk.
CLOSE_WITHIN_SECONDS = 1.0

#: Versions before this one can corrupt a WAL when two connections write and checkpoint at the same moment.
OLDEST_SAFE_SQLITE = (3, 51, 3)
#: Only a backup or an interactive session can make the writer wait.
BUSY_TIMEOUT_MS = 5_000
#: How long to wait at the end for readers, before the log of a file is copied into it.
MERGE_PATIENCE_MS = 1_000
#: The write-ahead log may grow in a burst; afterwards it is truncated to this size.
WAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024


class Synchronous(StrEnum):
    """How much a commit waits for the disk."""

    #: What was committed survives a power cut.
    FULL = "FULL"
    #: The file may be lost in a power cut: for data that can be rebuilt.
    OFF = "OFF"


def is_safe_sqlite(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")) >= OLDEST_SAFE_SQLITE


def close(connection: apsw.Connection) -> None:
    """Close a connection. An error is ignored: what was committed is on disk."""
    with suppress(apsw.Error):
        connection.close()


def merge_log(connection: apsw.Connection, patience_ms: int = MERGE_PATIENCE_MS) -> bool:
    """Copy the whole write-ahead log into the file; return whether that was possible."""
    connection.set_busy_timeout(patience_ms)
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens the log
    is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
    return not is_busy


def complete_file(path: Path) -> bool:
    """Make a database that no one writes complete without its log; return whether that was possible.

    A program that still reads it keeps its state of the file, and so the log.
    """
    if file_identity(path) is None or path.is_dir():
        return True
    with translated(path):
        connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
        try:
            return merge_log(connection)
        finally:
            close(connection)


def open_writable(path: Path, database: Database, synchronous: Synchronous) -> apsw.Connection:
    """Open a file for its only writer: create, check and migrate it as needed."""
    refuse_loss(path)
    with translated(path):
        connection = _connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            _prepare(connection, path, synchronous)
            migrate(connection, database)
        except BaseException:
            connection.close()
            raise
    return connection


def open_readable(path: Path, patience_ms: int | None = None) -> apsw.Connection:
    """Open an existing file for reading only."""
    with translated(path):
        return _connect(path, apsw.SQLITE_OPEN_READONLY, patience_ms)


def check_readable(
    path: Path,
    database: Database,
    rows_too: Callable[[apsw.Connection], object] = lambda _: None,
    *,
    rows_since: int = 0,
) -> None:
    """Raise if the file is lost, damaged or not of this version; before the first start it may be missing.

    `rows_too` checks rows, of earlier versions too: of a file that has migration `rows_since`.
    """
    refuse_loss(path)
    if file_identity(path) is not None:
        with translated(path), closing(open_readable(path)) as connection:
            known = migrations_of(database)
            missing = pending(connection, known)
            _check_pages(connection, path)
            if missing != known and all(migration.number != rows_since for migration in missing):
                rows_too(connection)


def check_tables(path: Path) -> None:
    """Raise SQLite's error if a table cannot be read from the file: pages that a connection has in memory hide that."""
    with closing(open_readable(path)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchall()  # noqa: S608  # a name of our schema


def _connect(path: Path, flags: int, patience_ms: int | None = None) -> apsw.Connection:
    if not is_safe_sqlite(version := apsw.sqlite_lib_version()):
        raise UnsafeSQLite(
            f"SQLite {version} can corrupt a file that several processes use: run pip install --upgrade apsw"
        )
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS if patience_ms is None else patience_ms)
    # With a memory-mapped file a disk error would crash the process, and a second process is not safe.
    connection.pragma("mmap_size", 0)
    return connection


def _prepare(connection: apsw.Connection, path: Path, synchronous: Synchronous) -> None:
    _use_wal(connection)
    connection.pragma("synchronous", synchronous.value)
    connection.pragma("foreign_keys", True)
    connection.pragma("journal_size_limit", WAL_SIZE_LIMIT_BYTES)
    _check_pages(connection, path)


def _check_pages(connection: apsw.Connection, path: Path) -> None:
    verdict = connection.pragma("quick_check", 1)
    if verdict != "ok":
        raise damaged(path, f"the file is damaged ({verdict})")


def _use_wal(connection: apsw.Connection) -> None:
    # SQLite does not apply the busy timeout here, so that the second opener of a new file would fail at once.
    until = monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "WAL")
            return
        except apsw.BusyError:
            if monotonic() >= until:
                raise
            sleep(0.005)


# --- statements and records -----------------------------------------------------------------------------------------


def rows(connection: apsw.Connection, statement: str, bindings: Mapping[str, Any] | None = None) -> list[Row]:
    """Return all rows of a statement, by column name."""
    cursor = connection.cursor()
    cursor.row_trace = _by_name
    try:
        found: list[Any] = cursor.execute(statement, bindings).fetchall()
    except UnicodeDecodeError as error:
        raise damaged(Path(connection.filename), f"a text of {_table_of(statement)} is not UTF-8") from error
    return found


def row(connection: apsw.Connection, statement: str, bindings: Mapping[str, Any] | None = None) -> Row | None:
    """Return the only row of a statement, or `None`."""
    return first_or_none(rows(connection, statement, bindings))


def first_or_none(found: Sequence[T]) -> T | None:
    return found[0] if found else None


def _by_name(cursor: apsw.Cursor, values: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.get_description(), values, strict=True)}


def columns_of(record: Struct) -> Row:
    """Return the fields of a record as columns; `to_record` reads them back."""
    return {name: to_iso(value) if isinstance(value, datetime) else value for name, value in asdict(record).items()}


def to_record(kind: type[T], row: Row) -> T:
    """Return a row as a record; raise if it has a value that this version does not know."""
    try:
        return msgspec.convert(row, kind)
    except msgspec.ValidationError as error:
        raise StoreDamaged(f"{kind.__name__}: {error}") from error


def records(
    connection: apsw.Connection,
    statement: str,
    bindings: Mapping[str, Any] | None,
    decode: Callable[[Row], T],
) -> list[T]:
    """Return the decoded rows of a statement. A row that cannot be decoded is named with its file and table."""
    found: list[T] = []
    for each in rows(connection, statement, bindings):
        try:
            found.append(decode(each))
        except _UNREADABLE as error:
            raise _unreadable(Path(connection.filename), statement, each, error) from error
    return found


#: What decoding raises for a value that the product has never stored.
_UNREADABLE = (StoreDamaged, UsageError, msgspec.MsgspecError, ValueError, LookupError, TypeError)
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+(\w+)")
#: The columns that identify a row in an error.
_NAMING = ("match_id", "source", "source_id", "key", "rev", "sequence", "id", "finding_id", "kind", "subject", "node")


def _table_of(statement: str) -> str:
    found = _TABLE.search(statement)
    return found[1] if found else "a table"


def _unreadable(path: Path, statement: str, row: Row, error: Exception) -> StoreDamaged:
    where = ", ".join(f"{name} {str(row[name])[:80]!r}" for name in _NAMING if row.get(name) is not None)
    cause = f"a row of {_table_of(statement)} ({where}) cannot be read: {error}"
    newer = "If a newer version or a plug-in stored it, install that"
    return StoreDamaged(f"{damaged(path, cause)}. {newer}", cause=f"{path.name}: a row of {_table_of(statement)}")


# --- files that several processes use --------------------------------------------------------------------------------


#: Of a database, its log and its shared memory.
_Identity = tuple[tuple[int, int] | None, ...]


class _ReopenedFile(ABC):
    """A file that is opened on use, and again after every failure and after a restore has replaced it.

    Jobs run one after the other in a daemon thread, because a disk may hang.
    """

    role: str
    #: The files beside the database that must stay the same.
    watched: tuple[str, ...]

    def __init__(self, path: Path, database: Database) -> None:
        self._path = path
        self._others = tuple(beside(path, suffix) for suffix in self.watched)
        self._database = database
        self._thread = DaemonThread(f"{self.role} of {path.name}")
        self._lock = Lock()
        self._connection: apsw.Connection | None = None
        #: Of the files that are open.
        self._identity: _Identity = ()

    async def aclose(self) -> None:
        """Close the file; if that hangs, the end of the process closes it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_SECONDS):
                await self._thread.run(self._close)

    @abstractmethod
    def _open(self) -> apsw.Connection | None: ...

    def _attempt(self, job: Callable[[Any], T]) -> T:
        with self._lock, translated(self._path):
            try:
                return job(self._current())
            except BaseException:
                self._drop()
                raise

    def _current(self) -> apsw.Connection | None:
        if self._connection is not None and self._files() != self._identity:
            self._drop()
        if self._connection is None:
            # Read before opening: a file that replaces it meanwhile is detected next time. A new file had no identity.
            before = file_identity(self._path)
            self._connection = self._open()
            now, *others = self._files()
            self._identity = (before or now, *others)
        return self._connection

    def _files(self) -> _Identity:
        # Two processes with different logs or shared memory do not see each other's writes.
        others = map(file_state, self._others)
        return (file_identity(self._path), *(state and state.identity for state in others))

    def _close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            close(connection)


class ReadOnlyDatabase(_ReopenedFile):
    """Reads a file that may not exist yet.

    Each query is one statement and sees one committed state. With `inline_ms` it runs in the caller's loop, because a
    point read is faster than a thread switch, and waits at most that long for another process that has locked the file.
    """

    role = "reader"
    watched = ("-shm",)

    def __init__(self, path: Path, database: Database, inline_ms: int | None = None) -> None:
        super().__init__(path, database)
        self._inline_ms = inline_ms

    async def rows(self, statement: str, bindings: Mapping[str, Any] | None, decode: Callable[[Row], T]) -> list[T]:
        """Return the decoded rows; empty while the file does not exist."""

        def read(connection: apsw.Connection | None) -> list[T]:
            return records(connection, statement, bindings, decode) if connection else []

        if self._inline_ms is not None:
            return self._attempt(read)
        return await self._thread.run(lambda: self._attempt(read))

    def _open(self) -> apsw.Connection | None:
        refuse_loss(self._path)
        if file_identity(self._path) is None:
            return None
        connection, known = open_readable(self._path, self._inline_ms), migrations_of(self._database)
        try:
            missing = pending(connection, known)
            if missing and missing != known:
                raise StorageError(f"{self._path}: written by an older version: start `longstop up` once to migrate it")
        except BaseException:
            connection.close()
            raise
        if not missing:
            return connection
        connection.close()  # a writer is creating the file: there is nothing to read yet
        return None


class ReopenedDatabase(_ReopenedFile):
    """A file that several processes write to occasionally."""

    role = "writer"
    watched = ("-wal", "-shm")

    async def run(self, job: Job[T]) -> T:
        """Run a job on the connection; after a failure of any kind the next one gets a new connection."""
        return await self._thread.run(lambda: self._attempt(job))

    async def transact(self, job: Job[T]) -> T:
        def transacted(connection: apsw.Connection) -> T:
            with transaction(connection):
                return job(connection)

        return await self.run(transacted)

    def _open(self) -> apsw.Connection:
        return open_writable(self._path, self._database, Synchronous.FULL)
