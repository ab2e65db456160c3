"""SQLite connections: safe settings, translated errors, and files that several processes use."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
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
from longstop.errors import ResourcesExhausted, StorageError, StoreDamaged, UnsafeSQLite
from longstop.exhaustion import MachineResource, exhausted
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
#: The write-ahead log may grow in a burst; afterwards it is truncated to this size.
WAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024

_RESTORE = "restore a backup with `longstop restore`, or move the file away to start without it"
#: What an error means, and what to do about it.
_MEANINGS: Mapping[type[apsw.Error], tuple[str, str]] = {
    apsw.FullError: ("the disk is full", ""),
    apsw.IOError: ("the disk failed", "check the disk, and that it is a file that this user may read and write"),
    apsw.CorruptError: ("the file is damaged", _RESTORE),
    apsw.NotADBError: ("not an SQLite file", _RESTORE),
    apsw.BusyError: ("another process has locked the file", ""),
    apsw.CantOpenError: ("the file cannot be opened", "check that it is a file that this user may read and write"),
    apsw.ReadOnlyError: ("the file cannot be written", "check the permissions of the file and its directory"),
}

_DAMAGE = (apsw.CorruptError, apsw.NotADBError)
#: Errors that may be caused by an exhausted resource.
_MAY_BE_EXHAUSTION = (apsw.CantOpenError, apsw.IOError)


class Synchronous(StrEnum):
    """How much a commit waits for the disk."""

    #: What was committed survives a power cut.
    FULL = "FULL"
    #: The file may be lost in a power cut: for data that can be rebuilt.
    OFF = "OFF"


def is_safe_sqlite(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")) >= OLDEST_SAFE_SQLITE


def as_storage_error(error: apsw.Error, path: Path) -> StorageError:
    if isinstance(error, apsw.NoMemError):
        return ResourcesExhausted(MachineResource.MEMORY)
    exhaustion = exhausted(error) if isinstance(error, _MAY_BE_EXHAUSTION) else None
    if exhaustion is not None:
        return exhaustion
    meaning, advice = _MEANINGS.get(type(error), ("SQLite refused", ""))
    if path.is_dir():
        return StorageError(f"{path}: a directory, not a file; move it away, or choose another data directory")
    if advice == _RESTORE and path.stem == Database.HOT:
        advice = "delete it; the scraper rebuilds it"
    kind = StoreDamaged if isinstance(error, _DAMAGE) else StorageError
    return kind(f"{path}: {meaning} ({type(error).__name__}: {error}){'; ' if advice else ''}{advice}")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate errors of SQLite into a `StorageError` that names the file."""
    try:
        yield
    except apsw.Error as error:
        raise as_storage_error(error, path) from error


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, to detect that it was replaced; `None` if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path.name}: cannot access the file ({error.strerror})") from error
    return found.st_dev, found.st_ino


def files_of(path: Path) -> list[Path]:
    """Return the existing files of a database: itself, and the logs that SQLite writes next to it."""
    candidates = (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal"))
    return [each for each in candidates if os.path.lexists(each)]


def open_writable(path: Path, database: Database, synchronous: Synchronous) -> apsw.Connection:
    """Open a file for its only writer: create, check and migrate it as needed."""
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


def check_readable(path: Path, database: Database) -> None:
    """Raise if the file cannot be read or is not of this version; a file that does not exist is fine."""
    if file_identity(path) is not None:
        with translated(path), closing(open_readable(path)) as connection:
            pending(connection, migrations_of(database))


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
    verdict = connection.pragma("quick_check", 1)
    if verdict != "ok":
        raise StoreDamaged(f"{path.name}: the file is damaged ({verdict})")


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
    found: list[Any] = cursor.execute(statement, bindings).fetchall()
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
        what = f"{kind.__name__} of match {row['match_id']}" if row.get("match_id") else kind.__name__
        raise StorageError(
            f"cannot read a stored {what}: {error}. A newer version or a plug-in may have stored it: install that"
        ) from error


# --- files that several processes use --------------------------------------------------------------------------------


class _ReopenedFile(ABC):
    """A file that is opened on use, and again after every failure and after a restore has replaced it.

    Jobs run one after the other in a daemon thread, because a disk may hang.
    """

    role: str

    def __init__(self, path: Path, database: Database) -> None:
        self._path = path
        self._database = database
        self._thread = DaemonThread(f"{self.role} of {path.name}")
        self._lock = Lock()
        self._connection: apsw.Connection | None = None
        #: Of the file that is open.
        self._identity: tuple[int, int] | None = None

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
        identity = file_identity(self._path)
        if identity != self._identity:
            self._drop()
        if self._connection is None:
            self._connection = self._open()
            # Read before opening: a file that replaces it meanwhile is detected next time. A new file had no identity.
            self._identity = identity or file_identity(self._path)
        return self._connection

    def _close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()


class ReadOnlyDatabase(_ReopenedFile):
    """Reads a file that may not exist yet.

    Each query is one statement and sees one committed state. With `inline_ms` it runs in the caller's loop, because a
    point read is faster than a thread switch, and waits at most that long for another process that has locked the file.
    """

    role = "reader"

    def __init__(self, path: Path, database: Database, inline_ms: int | None = None) -> None:
        super().__init__(path, database)
        self._inline_ms = inline_ms

    async def rows(self, statement: str, bindings: Mapping[str, Any] | None, decode: Callable[[Row], T]) -> list[T]:
        """Return the decoded rows; empty while the file does not exist."""

        def read(connection: apsw.Connection | None) -> list[T]:
            return [decode(each) for each in rows(connection, statement, bindings)] if connection else []

        if self._inline_ms is not None:
            return self._attempt(read)
        return await self._thread.run(lambda: self._attempt(read))

    def _open(self) -> apsw.Connection | None:
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
