"""Loads SQL statements and applies migrations.

SQL is in the `.sql` files of `storage/sql`. Migrations are numbered; each is applied once, and never changed
afterwards.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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

from longstop.errors import StoreTooNew
from longstop.storage.sqlite.files_and_errors import damaged, had_tables

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def sql_folder() -> Traversable:
    return files("longstop.storage") / "sql"


@cache
def queries(path: str) -> Mapping[str, str]:
    """Return the statements of a file, by name."""
    _before, *parts = _NAME.split((sql_folder() / path).read_text(encoding="utf-8"))
    return MappingProxyType(dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True)))


# --- migrations ---------------------------------------------------------------------------------------------------

_MIGRATIONS = queries("migrations.sql")


class Database(StrEnum):
    """The databases of a data directory; the values are folder names in `storage/sql`."""

    MATCHES = "matches"
    HOT = "hot"
    OPS = "ops"


class Migration(Struct, frozen=True, kw_only=True):
    number: int
    name: str
    script: str

    @property
    def checksum(self) -> str:
        return sha256(self.script.encode()).hexdigest()


@cache
def migrations_of(database: Database) -> tuple[Migration, ...]:
    """Return the migrations of a database, in order."""
    found = [file for file in (sql_folder() / database.value).iterdir() if file.name[:4].isdigit()]
    return tuple(
        Migration(number=int(file.name[:4]), name=file.name, script=file.read_text(encoding="utf-8"))
        for file in sorted(found, key=lambda file: file.name)
    )


def migrate(connection: apsw.Connection, database: Database) -> None:
    """Migrate a file to the newest schema; raise if its schema is unknown."""
    known = migrations_of(database)
    if pending(connection, known):
        # One transaction, so that a reader sees an empty, an old or a new file, and nothing in between.
        with transaction(connection):
            # Several processes may open a new file at the same time: check again inside the transaction.
            for migration in pending(connection, known):
                _apply(connection, migration)


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


def _apply(connection: apsw.Connection, migration: Migration) -> None:
    connection.execute(_MIGRATIONS["create_migrations"])
    connection.execute(migration.script)
    connection.execute(
        _MIGRATIONS["record_migration"],
        {"number": migration.number, "name": migration.name, "checksum": migration.checksum},
    )


def pending(connection: apsw.Connection, known: tuple[Migration, ...]) -> tuple[Migration, ...]:
    """Return the migrations to apply; raise if the file has an unknown or different one, or has lost them all."""
    path, by_number = Path(connection.filename), {migration.number: migration for migration in known}
    # Read before the file: another process may complete its first start meanwhile.
    is_needed = had_tables(path)
    applied = _applied(connection)
    if is_needed and not applied:
        raise damaged(path, "the file has no tables")
    for number, name, checksum in applied:
        migration = by_number.pop(number, None)
        if migration is None:
            raise StoreTooNew(
                f"{path}: the file has migration {name}, which this version does not know: install a newer version of"
                " Longstop"
            )
        if name != migration.name:
            raise damaged(path, f"it is another database, with migration {name}")
        if checksum != migration.checksum:
            raise damaged(path, f"migration {name} has changed since it was applied")
    return tuple(by_number.values())


def _applied(connection: apsw.Connection) -> list[tuple[int, str, str]]:
    if not connection.execute(_MIGRATIONS["has_migrations"]).fetchall():
        return []
    taken: list[Any] = connection.execute(_MIGRATIONS["applied_migrations"]).fetchall()
    return taken
