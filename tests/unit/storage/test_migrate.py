import apsw
import pytest
from msgspec.structs import replace

from longstop.errors import StorageError, StoreTooNew
from longstop.storage.sqlite.connection import Database, Migration, migrate, migrations_of, pending, queries, sql_folder

_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


@pytest.fixture
def connection() -> apsw.Connection:
    return apsw.Connection(":memory:")


def schema_of(connection: apsw.Connection) -> list[tuple[str, ...]]:
    found = connection.execute(_SCHEMA).fetchall()
    return [tuple(_without_comments(str(value)) for value in row) for row in found]


def _without_comments(text: str) -> str:
    return "\n".join(
        line for line in text.replace(" IF NOT EXISTS", "").splitlines() if not line.strip().startswith("--")
    )


@pytest.mark.parametrize("database", Database)
def test_the_written_schema_equals_the_sum_of_the_migrations(database: Database, connection: apsw.Connection) -> None:
    written = apsw.Connection(":memory:")
    written.execute((sql_folder() / database.value / "schema.sql").read_text(encoding="utf-8"))

    migrate(connection, database)

    assert schema_of(connection) == schema_of(written)


@pytest.mark.parametrize("database", Database)
def test_migrations_are_numbered_from_one_without_a_gap(database: Database) -> None:
    numbers = [migration.number for migration in migrations_of(database)]

    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("database", Database)
def test_every_query_fits_the_schema(database: Database, connection: apsw.Connection) -> None:
    connection.execute((sql_folder() / database.value / "schema.sql").read_text(encoding="utf-8"))

    for statement in queries(f"{database.value}/queries.sql").values():
        connection.execute(f"EXPLAIN {statement}", _Anything())


class _Anything(dict[str, None]):
    def __missing__(self, name: str) -> None:
        return None


def test_migrating_again_changes_nothing(connection: apsw.Connection) -> None:
    migrate(connection, Database.MATCHES)
    changes = connection.total_changes()

    migrate(connection, Database.MATCHES)

    assert connection.total_changes() == changes
    assert pending(connection, migrations_of(Database.MATCHES)) == ()


def test_a_step_we_do_not_know_refuses_the_file(connection: apsw.Connection) -> None:
    migrate(connection, Database.MATCHES)
    connection.execute("INSERT INTO migrations VALUES (9999, '9999_from_the_future.sql', 'x')")

    with pytest.raises(StoreTooNew, match="9999_from_the_future"):
        migrate(connection, Database.MATCHES)


def test_a_step_that_was_changed_afterwards_refuses_the_file(connection: apsw.Connection) -> None:
    migrate(connection, Database.MATCHES)
    first, *_ = migrations_of(Database.MATCHES)

    with pytest.raises(StorageError, match="not what it was"):
        pending(connection, (replace(first, script=first.script + "\n"),))


def test_a_store_from_before_football_keeps_every_row(connection: apsw.Connection) -> None:
    first, *_ = migrations_of(Database.MATCHES)
    connection.pragma("foreign_keys", True)
    connection.execute(queries("migrations.sql")["create_migrations"])
    connection.execute(first.script)
    connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (first.number, first.name, first.checksum))
    connection.execute(
        "INSERT INTO matches (source, source_id, phase, status, title, created_at)"
        " VALUES ('crex', '11HD', 'active', 'live', 'Reds v Blues', '2026-01-01T00:00:00.000Z')"
    )
    version = (
        "INSERT INTO event_versions"
        " VALUES (1, 'delivery:1:0:1', ?, ?, 'delivery', 1, 0, 1, 1, ?, '7', '{}', 'h', 1, 'x')"
    )
    for rev, op in ((1, "insert"), (2, "update")):
        connection.execute(version, (rev, rev, op))
    connection.execute("INSERT INTO events VALUES (1, 'delivery:1:0:1', 2)")

    migrate(connection, Database.MATCHES)

    kept = connection.execute("SELECT key, rev, seq, nth, side, op FROM event_versions ORDER BY rev").fetchall()
    assert kept == [("delivery:1:0:1", 1, 1, 1, "", "insert"), ("delivery:1:0:1", 2, 2, 1, "", "update")]
    assert connection.execute("SELECT * FROM events").fetchall() == [(1, "delivery:1:0:1", 2)]
    assert connection.execute("SELECT sport FROM matches").fetchall() == [("cricket",)]
    assert connection.pragma("foreign_key_check") is None


def test_steps_not_yet_taken_are_pending_in_order(connection: apsw.Connection) -> None:
    migrate(connection, Database.HOT)
    known = migrations_of(Database.HOT)
    numbers = (len(known) + 1, len(known) + 2)
    further = tuple(Migration(number=number, name=f"000{number}_x.sql", script="") for number in numbers)

    assert pending(connection, known + further) == further
