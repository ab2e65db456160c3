"""Opening SQLite files so that they cannot be damaged, and saying what went wrong in our own words."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import apsw

from longstop.errors import ResourcesExhausted, StorageError, StoreDamaged, UnsafeSQLite
from longstop.lacking import exhausted
from longstop.resilience.lacks import MEMORY
from longstop.storage.migrate import Database, migrate

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
        return ResourcesExhausted(MEMORY)
    lack = exhausted(error) if isinstance(error, _MAY_BE_A_LACK) else None
    if lack is not None:
        return lack
    meaning = _MEANINGS.get(type(error), "SQLite refused")
    kind = StoreDamaged if isinstance(error, _DAMAGE) else StorageError
    return kind(f"{path.name}: {meaning} ({type(error).__name__}: {error})")


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
