"""SQLite files: their SQL, their migrations, and opening them so that they cannot be damaged.

SQL stands in the `.sql` files of `storage/sql`. Migrations are numbered; each is applied once, in a transaction of its
own, and never changed afterwards.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import apsw
from msgspec import Struct

from longstop.clock import from_iso, to_iso
from longstop.errors import ResourcesExhausted, StorageError, StoreDamaged, StoreTooNew, UnsafeSQLite
from longstop.lacking import exhausted
from longstop.resilience.lacks import MEMORY

# --- SQL ----------------------------------------------------------------------------------------------------------

Row = dict[str, Any]

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def sql_folder() -> Traversable:
    return files("longstop.storage") / "sql"


@cache
def queries(path: str) -> Mapping[str, str]:
    """Return the statements of a file, by the names that stand above them."""
    _before, *parts = _NAME.split((sql_folder() / path).read_text(encoding="utf-8"))
    return MappingProxyType(dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True)))


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


# --- migrations ---------------------------------------------------------------------------------------------------

_MIGRATIONS = queries("migrations.sql")


class Database(StrEnum):
    """The files of a data directory, as the folders of their SQL are called."""

    MATCHES = "matches"
    HOT = "hot"
    OPS = "ops"


class Migration(Struct, frozen=True, kw_only=True):
    """One step of a schema."""

    number: int
    name: str
    script: str

    @property
    def checksum(self) -> str:
        return sha256(self.script.encode()).hexdigest()


@cache
def migrations_of(database: Database) -> tuple[Migration, ...]:
    """Return the steps that make a database's schema, in order."""
    found = [file for file in (sql_folder() / database.value).iterdir() if file.name[:4].isdigit()]
    return tuple(
        Migration(number=int(file.name[:4]), name=file.name, script=file.read_text(encoding="utf-8"))
        for file in sorted(found, key=lambda file: file.name)
    )


def migrate(connection: apsw.Connection, database: Database) -> None:
    """Bring a file to the newest schema, or refuse one that is not what we know."""
    known = migrations_of(database)
    while pending(connection, known):
        # Several processes may open a new file at the same moment: who is second looks again, and has less to do.
        connection.execute("BEGIN IMMEDIATE")
        try:
            for migration in pending(connection, known)[:1]:
                _take(connection, migration)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _take(connection: apsw.Connection, migration: Migration) -> None:
    connection.execute(_MIGRATIONS["create_migrations"])
    connection.execute(migration.script)
    connection.execute(
        _MIGRATIONS["record_migration"],
        {"number": migration.number, "name": migration.name, "checksum": migration.checksum},
    )


def pending(connection: apsw.Connection, known: tuple[Migration, ...]) -> tuple[Migration, ...]:
    """Return the steps still to take; raise when the file took a step that we do not know, or another one."""
    by_number = {migration.number: migration for migration in known}
    for step in _applied(connection):
        migration = by_number.pop(step["number"], None)
        if migration is None:
            raise StoreTooNew(f"the store took the step {step['name']}, unknown to this version: install a newer one")
        if step["checksum"] != migration.checksum:
            raise StoreDamaged(f"{step['name']} is not what it was when the store took it: put the old text back")
    return tuple(by_number.values())


def _applied(connection: apsw.Connection) -> list[Row]:
    return (
        rows(connection, _MIGRATIONS["applied_migrations"]) if rows(connection, _MIGRATIONS["has_migrations"]) else []
    )


# --- opening ------------------------------------------------------------------------------------------------------

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
