"""Damaged and lost files below the processes: what readers and writers say, and what is rebuilt."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, closing
from pathlib import Path

import apsw
import pytest

from longstop.cli.maintenance import restore as restore_verb
from longstop.clock import SystemClock
from longstop.errors import DataDirectoryInUse, StorageError, StoreDamaged
from longstop.model.command_and_standing_order import StandingKind
from longstop.storage.backup import back_up
from longstop.storage.base import MatchFilter
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.connection import check_readable, complete_file
from longstop.storage.sqlite.files_and_errors import OpenFiles
from longstop.storage.sqlite.hot_view_and_heartbeats import DAMAGED_KEPT, SqliteHotReader, SqliteHotWriter
from longstop.storage.sqlite.load_sql_and_migrate import Database, migrations_of
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from longstop.storage.sqlite.operations_tables import SqliteCommands, check_operations
from tests.chaos.stored_directory import (
    EVENTS,
    FIRST,
    SECOND,
    change_text,
    copy_database,
    events_of,
    fill,
    orders_of,
    overwrite,
    remove_database,
    replace_by_copy,
    replace_by_directory,
    replace_by_text,
)
from tests.contract.stores import event, owned_match, update
from tests.contract.test_hot_view import beat, hot_row, rows_of

Change = Callable[[Path], object]


@pytest.fixture
async def node(tmp_path: Path) -> DataDirectory:
    """Return a directory with two matches and a paused source, which has had its databases."""
    await fill(tmp_path / "data")
    directory = DataDirectory.open(tmp_path / "data")
    directory.remember_databases()
    return directory


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(each.name for each in folder.glob(pattern))


def move(folder: Path, to: Path, pattern: str) -> None:
    for name in names(folder, pattern):
        (folder / name).rename(to / name)


def empty(path: Path) -> None:
    remove_database(path)
    path.touch()


def without_tables(path: Path) -> None:
    """Leave what a kill before the first checkpoint leaves of a file whose log was not copied."""
    remove_database(path)
    change_text(path, "PRAGMA journal_mode = WAL")


def with_dropped_tables(path: Path) -> None:
    remove_database(path)
    change_text(path, "CREATE TABLE anything (a)")
    change_text(path, "DROP TABLE anything")


def empty_log_alone(path: Path) -> None:
    """Empty the log, and delete the shared memory, which knows what the log had."""
    os.truncate(path.with_name(f"{path.name}-wal"), 0)
    path.with_name(f"{path.name}-shm").unlink()


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def swap(path: Path) -> None:
    for name in ("matches.db", "ops.db"):
        path.with_name(name).rename(path.with_name(f"{name}.was"))
    path.with_name("matches.db.was").rename(path.with_name("ops.db"))
    path.with_name("ops.db.was").rename(path.with_name("matches.db"))


#: What `up` checks before it starts anything.
CHECKS: dict[str, Change] = {
    "matches.db": lambda path: check_readable(path, Database.MATCHES),
    "ops.db": check_operations,
}
#: What can happen to a file that cannot be rebuilt while nothing runs.
DAMAGE: dict[str, Change] = {
    "deleted": remove_database,
    "0 bytes": empty,
    "no tables": without_tables,
    "tables that were dropped": with_dropped_tables,
    "no migrations": lambda path: change_text(path, "DELETE FROM migrations"),
    "half of it": halve,
    "its header": lambda path: overwrite(path, 0, b"\xff" * 100),
    "another file": replace_by_text,
    "a directory": replace_by_directory,
    "both files swapped": swap,
    "a changed migration": lambda path: change_text(path, "UPDATE migrations SET checksum = 'x' WHERE number = 1"),
}


@pytest.mark.parametrize("name", ["matches.db", "ops.db"])
@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_lost_file_is_refused_with_file_cause_and_command(node: DataDirectory, damage: str, name: str) -> None:
    path = node.path / name
    DAMAGE[damage](path)

    with pytest.raises(StoreDamaged) as refused:
        CHECKS[name](path)

    said = str(refused.value)
    assert said.startswith(f"{path}: ")
    assert f"`longstop restore BACKUP --data {node.path} --force`" in said
    assert f"start without it: move it away and delete {node.databases}" in said
    assert str(node.path) not in refused.value.cause
    assert refused.value.cause.startswith(name)


@pytest.mark.parametrize("damage", DAMAGE)
async def test_no_reader_or_writer_takes_a_lost_file_for_an_empty_one(node: DataDirectory, damage: str) -> None:
    DAMAGE[damage](node.matches_db)
    async with aclosing(SqliteMatchReader(node.matches_db)) as reader:
        with pytest.raises(StoreDamaged):
            await reader.matches(MatchFilter())
    with pytest.raises(StoreDamaged):
        await SqliteMatchStore.open(node.matches_db)


@pytest.mark.parametrize("left", ["nothing", "an empty file", "a file without tables"])
async def test_before_the_first_start_was_complete_a_missing_file_is_created(tmp_path: Path, left: str) -> None:
    directory = DataDirectory.open(tmp_path / "data")
    if left == "an empty file":
        directory.matches_db.touch()
    if left == "a file without tables":
        change_text(directory.matches_db, "PRAGMA journal_mode = WAL")

    check_readable(directory.matches_db, Database.MATCHES)
    async with aclosing(await SqliteMatchStore.open(directory.matches_db)) as store:
        assert await store.unfinished() == {}


# --- rows -------------------------------------------------------------------------------------------------------------

ROWS: dict[str, str] = {
    "content that is not JSON": "UPDATE event_versions SET content = '{' WHERE match_id = 1 AND seq = 7",
    "another content": "UPDATE event_versions SET content = replace(content, 'p1', 'p9') WHERE match_id = 1",
    "another position": "UPDATE event_versions SET position = 99 WHERE match_id = 1 AND seq = 7",
    "a kind that there is not": "UPDATE event_versions SET kind = 'deliverz' WHERE match_id = 1 AND seq = 7",
    "a time": "UPDATE event_versions SET captured_at = 'at noon' WHERE match_id = 1 AND seq = 7",
    "text that is not UTF-8": "UPDATE event_versions SET content = CAST(x'ff' AS TEXT) WHERE match_id = 1 AND seq = 7",
    "a payload": "UPDATE snapshots SET payload = CAST('{}' AS BLOB) WHERE match_id = 1",
    "a provenance": "UPDATE snapshots SET provenance = '[' WHERE match_id = 1",
    "a phase": "UPDATE matches SET phase = 'activf' WHERE match_id = 1",
}


@pytest.mark.parametrize("change", ROWS)
async def test_a_damaged_row_is_named_and_stops_its_match_only(node: DataDirectory, change: str) -> None:
    change_text(node.matches_db, ROWS[change])
    async with aclosing(await SqliteMatchStore.open(node.matches_db)) as store:
        with pytest.raises(StoreDamaged) as refused:
            await store.load(1)
        other = await store.load(2)

    table = ROWS[change].split()[1]
    assert str(node.matches_db) in str(refused.value)
    assert any(
        name in str(refused.value) for name in (table, "events")
    )  # events are read through their current version
    assert "longstop restore" in str(refused.value)
    assert len(other.events) == EVENTS


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE standing_orders SET kind = 'paused_sourcf'",
        "UPDATE standing_orders SET subject = 'crey'",
        "UPDATE standing_orders SET kind = 'unwatched', checksum = NULL",
        "UPDATE standing_orders SET since = 'at noon'",
        "UPDATE standing_orders SET subject = CAST(x'ff' AS TEXT)",
        "DROP TABLE standing_orders",
    ],
)
async def test_a_damaged_order_is_never_taken_for_none(node: DataDirectory, change: str) -> None:
    change_text(node.ops_db, change)

    with pytest.raises(StoreDamaged, match=r"ops\.db: "):
        check_operations(node.ops_db)
    async with aclosing(SqliteCommands(node.ops_db, SystemClock())) as commands:
        with pytest.raises(StoreDamaged):
            await commands.standing()


async def test_orders_of_an_earlier_version_have_no_checksum_and_hold(node: DataDirectory) -> None:
    change_text(node.ops_db, "UPDATE standing_orders SET checksum = NULL")

    assert [order.subject for order in check_operations(node.ops_db)] == ["crex"]


async def test_an_order_is_in_the_file_itself_also_without_its_log(node: DataDirectory, tmp_path: Path) -> None:
    async with aclosing(SqliteCommands(node.ops_db, SystemClock())) as commands:
        await commands.put_order(StandingKind.PAUSED_MATCH, str(FIRST), "tester")
        (tmp_path / "alone").mkdir()
        shutil.copy(node.ops_db, tmp_path / "alone" / "ops.db")

    assert ("paused_match", str(FIRST)) in await orders_of(tmp_path / "alone")


# --- the store while it is written ------------------------------------------------------------------------------------

LOSS: dict[str, Change] = {
    "deleted": remove_database,
    "only the file deleted": Path.unlink,
    "emptied": lambda path: os.truncate(path, 0),
    "shortened": halve,
    "a copy in its place": replace_by_copy,
    "a directory in its place": replace_by_directory,
    "its log deleted": lambda path: path.with_name("matches.db-wal").unlink(),
    "its log emptied": lambda path: os.truncate(path.with_name("matches.db-wal"), 0),
    "its log shortened": lambda path: halve(path.with_name("matches.db-wal")),
    "its log emptied, its shared memory deleted": empty_log_alone,
    "a copy of its log": lambda path: (
        shutil.copy(path.with_name("matches.db-wal"), path.with_name("log")),
        path.with_name("log").rename(path.with_name("matches.db-wal")),
    ),
}


@pytest.fixture
async def store(node: DataDirectory) -> AsyncIterator[SqliteMatchStore]:
    complete_file(node.matches_db)
    opened = await SqliteMatchStore.open(node.matches_db)
    await opened.claim(1, "node-b")
    yield opened
    await opened.aclose()


@pytest.mark.parametrize("loss", LOSS)
async def test_nothing_is_acknowledged_into_a_file_that_is_not_the_opened_one(
    node: DataDirectory, store: SqliteMatchStore, loss: str
) -> None:
    await store.check()

    LOSS[loss](node.matches_db)

    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"while it was in use, so nothing more is stored"):
            await store.claim(1, "node-c")
        with pytest.raises(StoreDamaged):
            await store.check()


def checkpoint(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall() == [(0, 0, 0)]
    assert path.with_name(f"{path.name}-wal").stat().st_size == 0


def vacuum(path: Path) -> None:
    size = path.stat().st_size
    with closing(apsw.Connection(str(path))) as other:
        other.execute("DROP TABLE filling")
        other.execute("VACUUM")
    checkpoint(path)
    assert path.stat().st_size < size


#: What another program may do to a file in use without a loss.
HARMLESS: dict[str, Change] = {"a checkpoint": checkpoint, "a vacuum": vacuum}


@pytest.mark.parametrize("act", HARMLESS)
async def test_a_shorter_file_that_has_everything_is_written_on(node: DataDirectory, tmp_path: Path, act: str) -> None:
    change_text(node.matches_db, "CREATE TABLE filling AS SELECT zeroblob(100000)")
    known = await events_of(node.path)
    async with aclosing(await SqliteMatchStore.open(node.matches_db)) as store:
        for number in range(2):
            await store.claim(1, f"node-{number}")
            HARMLESS[act](node.matches_db) if number == 0 else checkpoint(node.matches_db)
            await store.check()
        last = await store.claim(1, "node-c")

        assert last.epoch == 4

    (tmp_path / "alone").mkdir()
    shutil.copy(node.matches_db, tmp_path / "alone" / "matches.db")
    assert await events_of(tmp_path / "alone") == known


async def test_an_older_state_in_the_same_file_is_not_written_on(node: DataDirectory, store: SqliteMatchStore) -> None:
    checkpoint(node.matches_db)
    older = node.matches_db.read_bytes()
    change_text(node.matches_db, "CREATE TABLE filling AS SELECT zeroblob(100000)")
    await store.claim(1, "node-c")
    checkpoint(node.matches_db)
    await store.check()

    node.matches_db.write_bytes(older)

    with pytest.raises(StoreDamaged, match=r"matches\.db was shortened while it was in use"):
        await store.claim(1, "node-d")


async def test_a_log_that_was_emptied_after_a_checkpoint_is_begun_again(node: DataDirectory, tmp_path: Path) -> None:
    async with aclosing(await SqliteMatchStore.open(node.matches_db)) as store:
        await store.claim(1, "node-b")
        with closing(apsw.Connection(str(node.matches_db))) as other:
            other.pragma("wal_checkpoint", "PASSIVE")
            os.truncate(node.path / "matches.db-wal", 0)

            await store.claim(1, "node-c")

        copied = tmp_path / "copied"
        shutil.copytree(node.path, copied, ignore=shutil.ignore_patterns("*-shm"))
    async with aclosing(SqliteMatchReader(copied / "matches.db")) as reader:
        match = await reader.match(1)
    assert match is not None
    assert match.owner == "node-c"


async def test_the_same_files_put_back_are_written_again(
    node: DataDirectory, store: SqliteMatchStore, tmp_path: Path
) -> None:
    (tmp_path / "aside").mkdir()
    move(node.path, tmp_path / "aside", "matches.db*")
    with pytest.raises(StoreDamaged):
        await store.check()
    move(tmp_path / "aside", node.path, "matches.db*")

    await store.check()

    assert (await store.claim(1, "node-c")).epoch == 3


async def test_lost_shared_memory_is_made_again_and_loses_nothing(node: DataDirectory, store: SqliteMatchStore) -> None:
    async with aclosing(SqliteMatchReader(node.matches_db)) as reader:
        await reader.match(1)
        node.path.joinpath("matches.db-shm").unlink()

        await store.claim(1, "node-c")

        match = await reader.match(1)
    assert match is not None
    assert match.owner == "node-c"


async def test_a_log_that_was_deleted_is_in_the_file_after_the_close_although_others_read(tmp_path: Path) -> None:
    path = tmp_path / "matches.db"
    store = await SqliteMatchStore.open(path)
    match_id = await owned_match(store)
    await store.save_update(update(match_id, event()))
    async with aclosing(SqliteMatchReader(path)) as reader:
        await reader.match(match_id)
        path.with_name("matches.db-wal").unlink()

        await store.aclose()

    async with aclosing(SqliteMatchReader(path)) as reader:
        assert len(await reader.events_after(match_id, 0, 10)) == 1


async def test_closing_a_replaced_file_leaves_the_log_of_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "ops.db"
    first = SqliteCommands(path, SystemClock())
    await first.put_order(StandingKind.PAUSED_SOURCE, "crex", "tester")
    (tmp_path / "aside").mkdir()
    move(tmp_path, tmp_path / "aside", "ops.db*")
    second = SqliteCommands(path, SystemClock())
    await second.put_order(StandingKind.PAUSED_SOURCE, "sofascore", "tester")
    log = path.with_name("ops.db-wal").stat()

    await first.aclose()

    assert path.with_name("ops.db-wal").stat().st_ino == log.st_ino
    assert path.with_name("ops.db-wal").stat().st_size == log.st_size
    await second.aclose()


def test_a_file_that_only_grows_is_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "matches.db"
    path.write_bytes(b"one")
    files = OpenFiles(path)
    path.write_bytes(b"more")

    assert files.problem() == ""

    files.note()
    path.write_bytes(b"on")

    assert files.problem() == "matches.db was shortened while it was in use"


# --- the hot view -----------------------------------------------------------------------------------------------------


class Rebuilt(list[tuple[str, str]]):
    """Why the view was rebuilt, and where the damaged file is."""

    def note(self, reason: str, moved_to: str) -> None:
        self.append((reason, moved_to))


def hot_writer(path: Path, rebuilt: Rebuilt) -> SqliteHotWriter:
    def fail(error: StorageError) -> None:
        raise error

    return SqliteHotWriter(path, on_failure=fail, on_rebuilt=rebuilt.note, flush_every_seconds=0.01)


async def until_shown(path: Path, rows: int) -> None:
    async with asyncio.timeout(10), aclosing(SqliteHotReader(path)) as reader:
        while len(await rows_of(reader)) != rows:  # noqa: ASYNC110 -- a thread writes
            await asyncio.sleep(0.01)


HOT_DAMAGE: dict[str, Change] = {
    "a byte of a record": lambda path: change_text(path, "UPDATE views SET record = 'x' || record"),
    "a byte of a heartbeat": lambda path: change_text(path, "UPDATE beats SET beat = 'x' || beat"),
    "text that is not UTF-8": lambda path: change_text(path, "UPDATE views SET record = CAST(x'ff' AS TEXT)"),
    "a payload": lambda path: change_text(path, "UPDATE payloads SET payload = CAST('{}' AS BLOB)"),
    "a time": lambda path: change_text(path, "UPDATE views SET captured_at = 'at noon'"),
    "a missing table": lambda path: change_text(path, "DROP TABLE payloads"),
    "half of it": halve,
    "another file": replace_by_text,
    "a directory": replace_by_directory,
}


@pytest.mark.parametrize("damage", HOT_DAMAGE)
async def test_a_damaged_view_is_set_aside_once_when_it_is_opened(tmp_path: Path, damage: str) -> None:
    path, rebuilt = tmp_path / "hot.db", Rebuilt()
    async with aclosing(hot_writer(path, rebuilt)) as first:
        first.put(hot_row(1))
        first.beat(beat())
    HOT_DAMAGE[damage](path)

    async with aclosing(hot_writer(path, rebuilt)) as again:
        again.put(hot_row(2))
        await until_shown(path, 1)

    [(reason, moved_to)] = rebuilt
    assert "hot.db" in reason
    assert (tmp_path / moved_to).exists()


HOT_LOSS: dict[str, Change] = {
    "deleted": remove_database,
    "emptied": lambda path: os.truncate(path, 0),
    "another file in its place": replace_by_text,
    "a directory in its place": replace_by_directory,
    "a copy in its place": replace_by_copy,
    "its log deleted": lambda path: path.with_name("hot.db-wal").unlink(),
    "its shared memory deleted": lambda path: path.with_name("hot.db-shm").unlink(),
}


@pytest.mark.parametrize("loss", HOT_LOSS)
async def test_a_view_that_is_lost_is_filled_again_from_memory(tmp_path: Path, loss: str) -> None:
    path, rebuilt = tmp_path / "hot.db", Rebuilt()
    async with aclosing(hot_writer(path, rebuilt)) as writer, aclosing(SqliteHotReader(path)) as reader:
        for number in (1, 2, 3):
            writer.put(hot_row(number))
        writer.forget(3)
        writer.beat(beat())
        await until_shown(path, 2)

        HOT_LOSS[loss](path)
        async with asyncio.timeout(10):
            while not rebuilt:  # noqa: ASYNC110 -- a thread notices it
                await asyncio.sleep(0.01)
        await until_shown(path, 2)

        assert await rows_of(reader) == [hot_row(1), hot_row(2)]
        assert list(await reader.beats()) == [beat()]
    assert len(rebuilt) == 1


async def test_only_the_newest_damaged_views_are_kept(tmp_path: Path) -> None:
    path, rebuilt = tmp_path / "hot.db", Rebuilt()
    for _ in range(DAMAGED_KEPT + 3):
        replace_by_text(path)
        await hot_writer(path, rebuilt).aclose()

    assert names(tmp_path, "hot.db.damaged-*") == [moved for _, moved in rebuilt][-DAMAGED_KEPT:]


async def test_a_damaged_row_is_absent_and_the_others_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "hot.db"
    async with aclosing(hot_writer(path, Rebuilt())) as writer:
        writer.put(hot_row(1))
        writer.put(hot_row(2))
    change_text(path, "UPDATE views SET record = '{}' WHERE match_id = 1")

    async with aclosing(SqliteHotReader(path)) as reader:
        assert await reader.row(1) is None
        assert [record.match_id for record in await reader.records()] == [2]


# --- locks, node id, restore ------------------------------------------------------------------------------------------

_SECOND = """
import sys
from pathlib import Path
from longstop.storage.directory import DataDirectory

with DataDirectory.open(Path(sys.argv[1])).lock(sys.argv[2]):
    print("locked")
"""


@pytest.mark.parametrize("role", ["supervisor", "scraper"])
def test_a_lock_holds_when_its_file_is_removed(tmp_path: Path, role: str) -> None:
    directory = DataDirectory.open(tmp_path / "data")
    with directory.lock(role):
        (directory.path / f"{role}.lock").unlink()

        second = subprocess.run(
            [sys.executable, "-c", _SECOND, str(directory.path), role], capture_output=True, text=True, check=False
        )

        assert "locked" not in second.stdout
        assert f"is in use by another {role}: stop it first" in second.stderr
        with pytest.raises(DataDirectoryInUse), directory.lock(role):
            pytest.fail("the lock was taken twice")


def test_an_error_of_the_locked_work_is_not_taken_for_one_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError, match="of the work"), DataDirectory.open(tmp_path).lock():
        raise BlockingIOError("of the work")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", "nöde".encode(), b"../other", b"node 1", b"a" * 65])
def test_a_node_id_that_is_no_name_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    DataDirectory.open(tmp_path)
    (tmp_path / "node-id").write_bytes(content)

    with pytest.raises(StorageError, match=r"node-id is damaged: restore a backup, or stop everything"):
        DataDirectory.open(tmp_path)


async def test_a_restore_prints_which_orders_it_changes(
    node: DataDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(back_up, node, tmp_path / "backup", SystemClock())
    async with aclosing(SqliteCommands(node.ops_db, SystemClock())) as commands:
        await commands.lift_order(StandingKind.PAUSED_SOURCE, "crex")
        await commands.put_order(StandingKind.PAUSED_MATCH, str(FIRST), "tester")
        await commands.put_order(StandingKind.UNWATCHED, str(SECOND), "tester")

    await asyncio.to_thread(restore_verb, tmp_path / "backup", node.path, True)

    said = capsys.readouterr().out
    assert "Paused again: crex.\n" in said
    assert f"No longer paused: {FIRST}.\n" in said
    assert f"No longer unwatched: {SECOND}.\n" in said
    assert await orders_of(node.path) == {("paused_source", "crex")}


def of_the_version_before(path: Path) -> None:
    """Take the newest migration of the operations tables back."""
    change_text(path, "ALTER TABLE standing_orders DROP COLUMN checksum; DELETE FROM migrations WHERE number = 8")


async def test_a_restore_of_a_backup_of_an_earlier_version_says_which_pauses_stay(
    node: DataDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with aclosing(SqliteCommands(node.ops_db, SystemClock())) as commands:
        await commands.put_order(StandingKind.UNWATCHED, str(SECOND), "tester")
    of_the_version_before(node.ops_db)
    await asyncio.to_thread(back_up, node, tmp_path / "backup", SystemClock())
    async with aclosing(SqliteCommands(node.ops_db, SystemClock())) as commands:
        await commands.lift_order(StandingKind.UNWATCHED, str(SECOND))

    await asyncio.to_thread(restore_verb, tmp_path / "backup", node.path, True)

    said = capsys.readouterr().out
    assert "crex" not in said.replace(str(SECOND), "")
    assert f"Unwatched again: {SECOND}.\n" in said


async def test_a_file_from_before_there_were_orders_has_none(tmp_path: Path) -> None:
    path = tmp_path / "ops.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL) STRICT"
        )
        for migration in migrations_of(Database.OPS)[:2]:
            connection.execute(migration.script)
            values = (migration.number, migration.name, migration.checksum)
            connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", values)

    assert check_operations(path) == []


async def test_a_damaged_order_of_an_earlier_version_is_refused_before_it_is_migrated(node: DataDirectory) -> None:
    of_the_version_before(node.ops_db)
    change_text(node.ops_db, "UPDATE standing_orders SET kind = 'paused_sourcf'")

    with pytest.raises(StoreDamaged, match=r"ops\.db: "):
        check_operations(node.ops_db)


@pytest.mark.parametrize("lost", ["matches.db", "ops.db"])
async def test_a_restore_brings_back_a_lost_file(
    node: DataDirectory, tmp_path: Path, lost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = await events_of(node.path)
    await asyncio.to_thread(back_up, node, tmp_path / "backup", SystemClock())
    remove_database(node.path / lost)

    await asyncio.to_thread(restore_verb, tmp_path / "backup", node.path, True)

    check_readable(node.matches_db, Database.MATCHES)
    assert await events_of(node.path) == known
    assert await orders_of(node.path) == {("paused_source", "crex")}
    assert ("could not be read: its ops.db is damaged" in capsys.readouterr().out) is (lost == "ops.db")


# --- complete files ---------------------------------------------------------------------------------------------------


async def test_a_reader_in_a_transaction_keeps_the_log_and_is_reported(
    node: DataDirectory, store: SqliteMatchStore
) -> None:
    reader = apsw.Connection(str(node.matches_db), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM matches").fetchall()
    await store.claim(1, "node-c")
    await store.aclose()

    was_possible = complete_file(node.matches_db)
    reader.close()

    assert not was_possible
    assert complete_file(node.matches_db)
    assert names(node.path, "matches.db-*") == []


async def test_a_copy_of_a_live_database_is_one_of_its_states(node: DataDirectory, tmp_path: Path) -> None:
    copy_database(node.matches_db, tmp_path / "matches.db")

    assert await events_of(tmp_path) == await events_of(node.path)
