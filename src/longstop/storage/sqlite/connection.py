"""SQLite connections: safe settings, translated errors, and files that several processes use."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import apsw

from longstop.clock import from_iso, to_iso
from longstop.daemon_thread import DaemonThread
from longstop.errors import ResourcesExhausted, StorageError, StoreDamaged, UnsafeSQLite
from longstop.exhaustion import MachineResource, exhausted
from longstop.storage.sqlite.schema import Database, migrate, migrations_of, pending

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

_MEANINGS: Mapping[type[apsw.Error], str] = {
    apsw.FullError: "the disk is full",
    apsw.IOError: "the disk failed",
    apsw.CorruptError: "the file is damaged",
    apsw.NotADBError: "not an SQLite file",
    apsw.BusyError: "another process has locked the file",
    apsw.CantOpenError: "the file cannot be opened",
    apsw.ReadOnlyError: "the file cannot be written",
}

_RESTORE = "restore a backup with `longstop restore`, or move the file away to start without it"
_ADVICE: Mapping[type[apsw.Error], str] = {
    apsw.CorruptError: _RESTORE,
    apsw.NotADBError: _RESTORE,
    apsw.CantOpenError: "check that it is a file that this user may read and write",
    apsw.IOError: "check the disk, and that it is a file that this user may read and write",
    apsw.ReadOnlyError: "check the permissions of the file and its directory",
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
    meaning = _MEANINGS.get(type(error), "SQLite refused")
    kind = StoreDamaged if isinstance(error, _DAMAGE) else StorageError
    advice = f"; {_ADVICE[type(error)]}" if type(error) in _ADVICE else ""
    return kind(f"{path}: {meaning} ({type(error).__name__}: {error}){advice}")


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
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", synchronous.value)
    connection.pragma("foreign_keys", True)
    connection.pragma("journal_size_limit", WAL_SIZE_LIMIT_BYTES)
    verdict = connection.pragma("quick_check", 1)
    if verdict != "ok":
        raise StoreDamaged(f"{path.name}: the file is damaged ({verdict})")


# --- statements -----------------------------------------------------------------------------------------------------


def rows(connection: apsw.Connection, statement: str, bindings: Mapping[str, Any] | None = None) -> list[Row]:
    """Return all rows of a statement, by column name."""
    cursor = connection.cursor()
    cursor.row_trace = _by_name
    found: list[Any] = cursor.execute(statement, bindings).fetchall()
    return found


def row(connection: apsw.Connection, statement: str, bindings: Mapping[str, Any] | None = None) -> Row | None:
    """Return the only row of a statement, or `None`."""
    found = rows(connection, statement, bindings)
    return found[0] if found else None


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else to_iso(moment)


def moment(text: str | None) -> datetime | None:
    return None if text is None else from_iso(text)


def _by_name(cursor: apsw.Cursor, values: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.get_description(), values, strict=True)}


# --- files that several processes use --------------------------------------------------------------------------------


class ReadOnlyDatabase:
    """Reads a file that may not exist yet, or may be replaced at any time.

    Each query is one statement and sees one committed state. It runs in a daemon thread, because a disk may hang. With
    `inline_ms` it runs in the caller's loop, because a point read is faster than a thread switch, and waits at most
    that long for another process that has locked the file.
    """

    def __init__(self, path: Path, database: Database, inline_ms: int | None = None) -> None:
        self._path = path
        self._database = database
        self._inline_ms = inline_ms
        self._thread = DaemonThread(f"reader of {path.name}")
        self._lock = Lock()
        self._connection: apsw.Connection | None = None
        #: Of the file that is open.
        self._identity: tuple[int, int] | None = None

    async def rows(self, statement: str, bindings: Mapping[str, Any] | None, decode: Callable[[Row], T]) -> list[T]:
        """Return the decoded rows; empty while the file does not exist."""
        if self._inline_ms is not None:
            return self._read(statement, bindings, decode)
        return await self._thread.run(lambda: self._read(statement, bindings, decode))

    async def aclose(self) -> None:
        await close_in(self._thread, self._close)

    def _read(self, statement: str, bindings: Mapping[str, Any] | None, decode: Callable[[Row], T]) -> list[T]:
        with self._lock, translated(self._path):
            try:
                connection = self._current()
                return [decode(each) for each in rows(connection, statement, bindings)] if connection else []
            except apsw.Error:
                self._drop()
                raise

    def _close(self) -> None:
        with self._lock:
            self._drop()

    def _current(self) -> apsw.Connection | None:
        identity = file_identity(self._path)
        if identity != self._identity:
            self._drop()
        if self._connection is None and identity is not None:
            self._open(identity)
        return self._connection

    def _open(self, identity: tuple[int, int]) -> None:
        connection = open_readable(self._path, self._inline_ms)
        try:
            ready = not pending(connection, migrations_of(self._database))
        except BaseException:
            connection.close()
            raise
        if ready:
            self._connection, self._identity = connection, identity
        else:
            # The writer is still creating it, or is an older version: there is nothing to read yet.
            connection.close()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._identity = None


class ReopenedDatabase:
    """A file that several processes write to occasionally. It is opened on use, and again after every failure.

    It is also reopened after a restore, so that nothing is written to a file that was moved aside. Jobs run one after
    the other in a daemon thread.
    """

    def __init__(self, path: Path, database: Database) -> None:
        self._path = path
        self._database = database
        self._thread = DaemonThread(f"writer of {path.name}")
        self._connection: apsw.Connection | None = None
        #: Of the file that is open.
        self._identity: tuple[int, int] | None = None

    async def run(self, job: Job[T]) -> T:
        """Run a job on the connection; after a failure of any kind the next one gets a new connection."""
        return await self._thread.run(lambda: self._attempt(job))

    async def transact(self, job: Job[T]) -> T:
        """Run a job in a transaction."""

        def transacted(connection: apsw.Connection) -> T:
            with transaction(connection):
                return job(connection)

        return await self.run(transacted)

    async def aclose(self) -> None:
        await close_in(self._thread, self._close)

    def _attempt(self, job: Job[T]) -> T:
        try:
            connection = self._current()
            with translated(self._path):
                return job(connection)
        except BaseException:
            self._close()
            raise

    def _current(self) -> apsw.Connection:
        identity = file_identity(self._path)
        if identity != self._identity:
            self._close()
        if self._connection is None:
            self._connection = open_writable(self._path, self._database, Synchronous.FULL)
            # Read before opening: a file that replaces it meanwhile is detected next time. A new file had no identity.
            self._identity = identity or file_identity(self._path)
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit on success, roll back on any error."""
    # IMMEDIATE: upgrading a lock later may fail without waiting.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")
        raise


async def close_in(thread: DaemonThread, close: Callable[[], None]) -> None:
    """Close a file; if that hangs, the end of the process closes it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_WITHIN_SECONDS):
            await thread.run(close)


def first_or_none(found: Sequence[T]) -> T | None:
    return found[0] if found else None
