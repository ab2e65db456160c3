"""Migrations: numbered `.sql` files, each applied once, in a transaction of its own, and never changed afterwards."""

from enum import StrEnum
from functools import cache
from hashlib import sha256

import apsw
from msgspec import Struct

from longstop.errors import StoreDamaged, StoreTooNew
from longstop.storage.queries import Row, queries, rows, sql_folder

_SQL = queries("migrations.sql")


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
    connection.execute(_SQL["create_migrations"])
    connection.execute(migration.script)
    connection.execute(
        _SQL["record_migration"],
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
    return rows(connection, _SQL["applied_migrations"]) if rows(connection, _SQL["has_migrations"]) else []
