import apsw
import pytest
from msgspec.structs import replace

from longstop.errors import StorageError, StoreTooNew
from longstop.storage.sqlite.load_sql_and_migrate import (
    Database,
    Migration,
    migrate,
    migrations_of,
    pending,
    queries,
    sql_folder,
)

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

    with pytest.raises(StorageError, match="has changed since it was applied"):
        pending(connection, (replace(first, script=first.script + "\n"),))


def test_a_store_from_before_football_keeps_every_row(connection: apsw.Connection) -> None:
    connection.pragma("foreign_keys", True)
    take_steps(connection, Database.MATCHES, 1)
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


def store_before_feeds(connection: apsw.Connection) -> None:
    """Make a store of the last version before feeds."""
    connection.pragma("foreign_keys", True)
    take_steps(connection, Database.MATCHES, 2)


def take_steps(connection: apsw.Connection, database: Database, count: int) -> None:
    """Make a file of a former version."""
    connection.execute(queries("migrations.sql")["create_migrations"])
    for step in migrations_of(database)[:count]:
        connection.execute(step.script)
        connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (step.number, step.name, step.checksum))


def add_match(connection: apsw.Connection, source_id: str, sport: str = "cricket") -> int:
    [(match_id,)] = connection.execute(
        "INSERT INTO matches (source, source_id, phase, status, title, created_at, sport)"
        " VALUES ('crex', ?, 'active', 'live', 'Reds v Blues', '2026-01-01T00:00:00.000Z', ?) RETURNING match_id",
        (source_id, sport),
    )
    return int(match_id)


def add_version(connection: apsw.Connection, match_id: int, kind: str) -> None:
    connection.execute(
        "INSERT INTO event_versions (match_id, key, rev, seq, kind, innings, over, nth, side, op, source_event_id,"
        " content, content_hash, epoch, captured_at)"
        " VALUES (?, ? || ':1', 1, 1, ?, 1, 0, 0, '', 'insert', '7', '{}', 'h', 1, 'x')",
        (match_id, kind, kind),
    )


def test_the_number_of_a_deleted_match_is_not_given_out_again_after_feeds_came(connection: apsw.Connection) -> None:
    store_before_feeds(connection)
    numbers = [add_match(connection, source_id) for source_id in ("A", "B", "C")]
    connection.execute("DELETE FROM matches WHERE match_id = ?", (numbers[-1],))

    migrate(connection, Database.MATCHES)

    assert add_match(connection, "D") == numbers[-1] + 1


def test_a_store_from_before_feeds_keeps_what_refers_to_a_match(connection: apsw.Connection) -> None:
    store_before_feeds(connection)
    match_id = add_match(connection, "A")
    connection.execute("INSERT INTO match_external_refs VALUES ('crex', 'A', ?)", (match_id,))
    add_version(connection, match_id, "goal")
    connection.execute("INSERT INTO events VALUES (?, 'goal:1', 1)", (match_id,))
    connection.execute("INSERT INTO names VALUES (?, 'player', 'p1', 'Ann')", (match_id,))
    connection.execute("INSERT INTO findings VALUES (5, ?, 'gap', '1', 'a ball', 'x', NULL)", (match_id,))

    migrate(connection, Database.MATCHES)

    rows = {
        "SELECT * FROM match_external_refs": ("crex", "A", match_id),
        "SELECT match_id, key, kind, source_event_id, source FROM event_versions": (
            match_id,
            "goal:1",
            "goal",
            "7",
            "",
        ),
        "SELECT * FROM events": (match_id, "goal:1", 1),
        "SELECT * FROM names": (match_id, "player", "p1", "Ann"),
        "SELECT * FROM findings": (5, match_id, "gap", "1", "a ball", "x", None),
    }
    for query, row in rows.items():
        assert connection.execute(query).fetchall() == [row]
    assert connection.pragma("foreign_key_check") is None
    with pytest.raises(apsw.ConstraintError):
        connection.execute("DELETE FROM matches")


def test_a_store_accepts_kinds_and_statuses_of_any_sport_as_long_as_their_shape_is_right(
    connection: apsw.Connection,
) -> None:
    migrate(connection, Database.MATCHES)
    match_id = add_match(connection, "A", "curling")
    connection.execute("UPDATE matches SET phase = 'frozen', status = 'tea_break'")
    add_version(connection, match_id, "stone")
    connection.execute("INSERT INTO findings VALUES (1, ?, 'odd_stone', '1', 'x', 'x', NULL)", (match_id,))

    for bad in ("", "Kind!", "two words", "Kind"):
        with pytest.raises(apsw.ConstraintError):
            add_version(connection, match_id, bad)
        for statement in (
            "UPDATE matches SET sport = ?",
            "UPDATE matches SET phase = ?",
            "UPDATE matches SET status = ?",
            "UPDATE findings SET kind = ?",
        ):
            with pytest.raises(apsw.ConstraintError):
                connection.execute(statement, (bad,))


#: Rows of every operations table.
OPERATIONS = (
    "INSERT INTO scraper_errors (scraper_id, timestamp, error_type, error_class, error_message, signature, source, ref,"
    " operation, count, last_seen, resolved, resolution_time, resolution_method)"
    " VALUES ('node-1', 'x', 'network', 'E', 'm', 's', 'crex', 'crex_1', 'poll', 3, 'x', 1, 'x', 'auto_retry')",
    "INSERT INTO recoveries (id, kind, trigger, subject, process, began_at, pids_before, outcome, observed, count)"
    " VALUES ('b', 'restart', 't', 's', 'p', 'x', '[1]', 'recovered', 'seen', 4)",
    "INSERT INTO recoveries (id, kind, trigger, subject, process, began_at, pids_before, outcome)"
    " VALUES ('a', 'restart', 't', 's', 'p', 'x', '[]', 'pending')",
    "INSERT INTO scraper_health_log (scraper_id, timestamp, health_status, error_count)"
    " VALUES ('node-1', 'x', 'healthy', 0)",
    "INSERT INTO commands (kind, argument, asked_by, asked_at, asked_monotonic, boot)"
    " VALUES ('watch', 'a', 'me', 'x', 1.5, 'boot')",
    "INSERT INTO commands (kind, argument, asked_by, asked_at, asked_monotonic, state, refusal, answer, answered_at)"
    " VALUES ('watch', 'b', 'me', 'x', 1.5, 'refused', 'memory', 'full', 'x')",
    "INSERT INTO standing_orders (kind, subject, since, asked_by) VALUES ('unwatched', 'crex_1', 'x', 'me')",
)
TABLES = ("scraper_errors", "recoveries", "scraper_health_log", "commands", "standing_orders")


def operations(connection: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return every row, in the order of writing where the table knows it."""
    keys, columns = {"standing_orders": "kind"}, {"standing_orders": "kind, subject, since, asked_by"}
    return {
        table: connection.execute(
            f"SELECT {columns.get(table, '*')} FROM {table} ORDER BY {keys.get(table, 'rowid')}"  # noqa: S608
        ).fetchall()
        for table in TABLES
    }


def test_operations_tables_keep_every_row_its_number_and_its_order_when_their_checks_change(
    connection: apsw.Connection,
) -> None:
    take_steps(connection, Database.OPS, 5)
    for statement in OPERATIONS:
        connection.execute(statement)
    connection.execute("UPDATE scraper_errors SET id = 17")
    connection.execute("DELETE FROM commands WHERE argument = 'b'")
    before = operations(connection)
    assert all(before.values())

    migrate(connection, Database.OPS)

    assert operations(connection) == before
    assert [row[0] for row in before["recoveries"]] == ["b", "a"]
    connection.execute(OPERATIONS[5])
    assert connection.execute("SELECT id FROM commands ORDER BY id").fetchall() == [(1,), (3,)]
    assert connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall() == [("commands", 3)]


@pytest.mark.parametrize(
    "column",
    [
        "scraper_errors.error_type",
        "scraper_errors.resolution_method",
        "recoveries.kind",
        "recoveries.outcome",
        "scraper_health_log.health_status",
        "commands.kind",
        "commands.refusal",
        "commands.state",
        "standing_orders.kind",
    ],
)
def test_operations_tables_accept_new_kinds_as_long_as_their_shape_is_right(
    column: str, connection: apsw.Connection
) -> None:
    migrate(connection, Database.OPS)
    table, _, name = column.partition(".")
    for statement in OPERATIONS:
        connection.execute(statement)
    #: Rows whose other columns leave the value free.
    rows = {"recoveries": "id = 'b'", "commands": "refusal IS NOT NULL" if name == "refusal" else "id = 1"}
    if name == "state":
        connection.execute("UPDATE commands SET state = 'done', answer = 'x', answered_at = 'x' WHERE id = 1")
    change = f"UPDATE {table} SET {name} = ? WHERE {rows.get(table, 'true')}"  # noqa: S608

    connection.execute(change, ("brand_new",))
    for bad in ("", "Kind!", "two words"):
        with pytest.raises(apsw.ConstraintError):
            connection.execute(change, (bad,))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE scraper_errors SET resolved = 0",
        "UPDATE scraper_errors SET resolved = 2",
        "UPDATE scraper_errors SET count = 0",
        "UPDATE recoveries SET outcome = 'pending'",
        "UPDATE recoveries SET observed = NULL",
        "UPDATE recoveries SET pids_before = 'x'",
        "UPDATE recoveries SET count = 0",
        "UPDATE scraper_health_log SET match_id = 1",
        "UPDATE commands SET state = 'done' WHERE id = 1",
        "UPDATE commands SET answered_at = NULL",
        "UPDATE commands SET refusal = NULL",
    ],
)
def test_columns_of_operations_tables_that_belong_together_are_still_checked(
    change: str, connection: apsw.Connection
) -> None:
    migrate(connection, Database.OPS)
    for statement in OPERATIONS:
        connection.execute(statement)

    with pytest.raises(apsw.ConstraintError):
        connection.execute(change)


def test_steps_not_yet_taken_are_pending_in_order(connection: apsw.Connection) -> None:
    migrate(connection, Database.HOT)
    known = migrations_of(Database.HOT)
    numbers = (len(known) + 1, len(known) + 2)
    further = tuple(Migration(number=number, name=f"000{number}_x.sql", script="") for number in numbers)

    assert pending(connection, known + further) == further
