"""SQLite files: opening them so that they cannot be damaged, and using one that several processes read or write."""

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

#: Nothing is lost when a file is not closed: what was committed is on disk.
CLOSE_WITHIN_SECONDS = 1.0

#: Versions before this one can corrupt a WAL when two connections write and checkpoint at the same moment.
OLDEST_SAFE_SQLITE = (3, 51, 3)
#: Only a backup or a person at a prompt can make the writer wait at all.
BUSY_TIMEOUT_MS = 5_000
#: A burst may grow the write-ahead log; afterwards the file is cut back to this.
WAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024

_MEANINGS: Mapping[type[apsw.Error], str] = {
    apsw.FullError: "the disk is full",
    apsw.IOError: "the disk failed",
    apsw.CorruptError: "the file is damaged",
    apsw.NotADBError: "this is no SQLite file",
    apsw.BusyError: "somebody else holds the file",
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
#: What SQLite says of a file that it could not open or read, whatever the reason.
_MAY_BE_A_LACK = (apsw.CantOpenError, apsw.IOError)


class Synchronous(StrEnum):
    """How much a commit waits for the disk."""

    #: What was committed survives a power cut.
    FULL = "FULL"
    #: The file may be lost in a power cut: for what can be built again.
    OFF = "OFF"


def is_safe_sqlite(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")) >= OLDEST_SAFE_SQLITE


def as_storage_error(error: apsw.Error, path: Path) -> StorageError:
    if isinstance(error, apsw.NoMemError):
        return ResourcesExhausted(MachineResource.MEMORY)
    lack = exhausted(error) if isinstance(error, _MAY_BE_A_LACK) else None
    if lack is not None:
        return lack
    meaning = _MEANINGS.get(type(error), "SQLite refused")
    kind = StoreDamaged if isinstance(error, _DAMAGE) else StorageError
    advice = f"; {_ADVICE[type(error)]}" if type(error) in _ADVICE else ""
    return kind(f"{path}: {meaning} ({type(error).__name__}: {error}){advice}")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into a `StorageError` that names the file."""
    try:
        yield
    except apsw.Error as error:
        raise as_storage_error(error, path) from error


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, `None` of one that is not there: one deleted and made again is another."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path.name}: the file cannot be looked at ({error.strerror})") from error
    return found.st_dev, found.st_ino


def open_writable(path: Path, database: Database, synchronous: Synchronous) -> apsw.Connection:
    """Open a file for its only writer: made when missing, checked, brought to the newest schema."""
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
        raise UnsafeSQLite(f"SQLite {version} can damage a file that several processes use: install a newer apsw")
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS if patience_ms is None else patience_ms)
    # A mapped file turns a disk error into a crash of the whole process, and does not mix with a second process.
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
    """Return everything a statement gives, each row under its column names."""
    cursor = connection.cursor()
    cursor.row_trace = _by_name
    found: list[Any] = cursor.execute(statement, bindings).fetchall()
    return found


def row(connection: apsw.Connection, statement: str, bindings: Mapping[str, Any] | None = None) -> Row | None:
    """Return the only row a statement gives, or `None`."""
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
    """Answers queries on a file that may not exist yet, or may be replaced by a new one at any time.

    Each query is one statement and sees one committed state. It runs in a daemon thread, since a disk may hang;
    with `inline_ms` it runs in the caller's loop instead: a point read takes less time than the hop to a thread (see
    docs/benchmarks.md), and then waits no longer than that for another process that holds the file.
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
        """Return what `decode` makes of each row; nothing while there is no file."""
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
            # The writer is still making it, or is an older version; either way there is nothing to read yet.
            connection.close()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._identity = None


class ReopenedDatabase:
    """A file that several processes write a little: opened when it is needed, and again after every failure.

    So it is after a restore, too: nothing may be written into a file that was moved aside. Jobs run one after the other
    in a daemon thread.
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
        """Run a job in a transaction: all that it does is stored, or nothing."""

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
            # Taken before the opening: a file that is put there meanwhile is met the next time. A new one had none.
            self._identity = identity or file_identity(self._path)
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit what is done meanwhile, or take all of it back."""
    # At once: a lock that is asked for in the middle may be refused without any patience.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")
        raise


async def close_in(thread: DaemonThread, close: Callable[[], None]) -> None:
    """Close a file; one that hangs is closed by the end of the process."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_WITHIN_SECONDS):
            await thread.run(close)


def first_or_none(found: Sequence[T]) -> T | None:
    return found[0] if found else None
