"""The store on SQLite beyond the contract: safety settings, damaged files, and what a quiet poll writes."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from longstop.errors import StorageError, StoreTooNew, UnsafeSQLite
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.match import MatchRef
from longstop.storage.base import MatchFilter
from longstop.storage.sqlite import connection as connection_module
from longstop.storage.sqlite.connection import Synchronous, open_readable, open_writable
from longstop.storage.sqlite.load_sql_and_migrate import Database
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from tests.contract.stores import NOW, REF, delivery_key, draft, event, later, owned_match, update


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "matches.db"


async def made(path: Path, events: int = 0) -> int:
    store = await SqliteMatchStore.open(path)
    match_id = await owned_match(store)
    await store.save_update(update(match_id, *(event(delivery_key(0, nth)) for nth in range(1, events + 1))))
    await store.aclose()
    return match_id


def damage(path: Path) -> None:
    """Spoil the head of every page but the first two."""
    content = bytearray(path.read_bytes())
    for start in range(2 * 4096, len(content), 4096):
        content[start : start + 64] = b"\xff" * 64
    path.write_bytes(content)


@pytest.fixture
def letter(path: Path) -> Path:
    path.write_bytes(b"to whom it may concern\n" * 400)
    return path


@pytest.mark.parametrize(("synchronous", "level"), [(Synchronous.FULL, 2), (Synchronous.OFF, 0)])
def test_a_file_is_opened_with_the_settings_that_keep_it_safe(path: Path, synchronous: Synchronous, level: int) -> None:
    connection = open_writable(path, Database.MATCHES, synchronous)

    found = {name: connection.pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys", "mmap_size")}

    connection.close()
    assert found == {"journal_mode": "wal", "synchronous": level, "foreign_keys": 1, "mmap_size": 0}


def test_a_new_file_may_be_opened_by_several_writers_at_once(tmp_path: Path) -> None:
    def open_together(path: Path) -> None:
        ready.wait()
        open_writable(path, Database.OPS, Synchronous.FULL).close()

    for attempt in range(40):
        ready, path = threading.Barrier(4), tmp_path / f"{attempt}.db"
        with ThreadPoolExecutor(4) as pool:
            for opened in [pool.submit(open_together, path) for _ in range(4)]:
                opened.result()


async def test_the_reading_side_cannot_write(path: Path) -> None:
    await made(path)
    connection = open_readable(path)

    with pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM matches")

    connection.close()


async def test_an_unsafe_sqlite_is_refused_by_both_sides(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path)
    monkeypatch.setattr(connection_module, "OLDEST_SAFE_SQLITE", (99, 0, 0))

    with pytest.raises(UnsafeSQLite, match="run pip install --upgrade apsw"):
        await SqliteMatchStore.open(path)
    with pytest.raises(UnsafeSQLite):
        await SqliteMatchReader(path).match(1)


async def test_a_damaged_file_is_noticed_when_it_is_opened(path: Path) -> None:
    await made(path, events=100)
    damage(path)

    with pytest.raises(StorageError, match=r"matches\.db: the file is damaged"):
        await SqliteMatchStore.open(path)


async def test_a_file_that_is_something_else_is_refused(letter: Path) -> None:
    with pytest.raises(StorageError, match="not an SQLite file"):
        await SqliteMatchStore.open(letter)


async def test_a_file_of_a_newer_version_is_refused_by_both_sides(path: Path) -> None:
    match_id = await made(path)
    with apsw.Connection(str(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (9999, '9999_later.sql', 'x')")
    connection.close()

    with pytest.raises(StoreTooNew, match="9999_later"):
        await SqliteMatchStore.open(path)
    with pytest.raises(StoreTooNew, match="9999_later"):
        await SqliteMatchReader(path).match(match_id)


async def test_a_file_that_is_only_being_made_is_read_as_nothing(path: Path) -> None:
    apsw.Connection(str(path)).execute("CREATE TABLE half_way (x)")
    reader = SqliteMatchReader(path)

    assert await reader.matches(MatchFilter()) == []

    await reader.aclose()


async def test_a_file_closed_by_its_writer_can_still_be_read(path: Path) -> None:
    match_id = await made(path, events=3)
    reader = SqliteMatchReader(path)

    assert len(await reader.current_events(match_id)) == 3

    await reader.aclose()


async def test_a_reader_follows_when_the_file_is_replaced(path: Path) -> None:
    match_id = await made(path, events=3)
    reader = SqliteMatchReader(path)
    assert len(await reader.current_events(match_id)) == 3

    for file in path.parent.iterdir():
        file.unlink()
    assert await reader.current_events(match_id) == []
    await made(path, events=2)

    assert len(await reader.current_events(match_id)) == 2
    await reader.aclose()


@pytest.mark.parametrize("inline_ms", [None, 50], ids=["in a thread", "on the loop"])
async def test_reads_at_the_same_time_do_not_disturb_each_other(path: Path, inline_ms: int | None) -> None:
    match_id = await made(path, events=30)
    reader = SqliteMatchReader(path, inline_ms)

    found = await asyncio.gather(*(reader.current_events(match_id) for _ in range(50)))

    assert {len(events) for events in found} == {30}
    await reader.aclose()


async def test_a_read_on_the_loop_gives_up_soon_where_another_process_holds_the_file(path: Path) -> None:
    match_id = await made(path)
    holder = apsw.Connection(str(path))
    holder.pragma("locking_mode", "EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    reader = SqliteMatchReader(path, inline_ms=1)

    with pytest.raises(StorageError, match="another process has locked the file"):
        await reader.match(match_id)
    holder.execute("ROLLBACK")
    holder.close()

    assert await reader.match(match_id) is not None
    await reader.aclose()


async def test_a_hung_disk_delays_neither_the_loop_nor_a_cancelled_caller(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id = await made(path)
    is_asked, is_mended = threading.Event(), threading.Event()

    def hang(path: Path, patience_ms: int | None = None) -> apsw.Connection:
        is_asked.set()
        assert is_mended.wait(60)
        return open_readable(path, patience_ms)

    monkeypatch.setattr("longstop.storage.sqlite.connection.open_readable", hang)
    reader = SqliteMatchReader(path)
    stuck = asyncio.create_task(reader.match(match_id))
    assert await asyncio.to_thread(is_asked.wait, 60)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await reader.match(match_id)
    is_mended.set()

    assert await stuck is not None
    await reader.aclose()


@pytest.mark.req("CAP-7")
async def test_an_update_with_nothing_new_writes_nothing_at_all(path: Path) -> None:
    store = await SqliteMatchStore.open(path)
    match_id = await owned_match(store)
    gap = Finding(kind=FindingKind.GAP, place="1:4", detail="two balls are not shown")
    whole = update(match_id, event(), snapshot=draft(score=1), findings=(gap,), players={"p1": "Ann"})
    await store.save_update(whole)
    watcher = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    version = watcher.pragma("data_version")
    log = path.with_name("matches.db-wal").read_bytes()

    quiet = update(match_id, findings=(gap,), captured_at=later(60), start_at=NOW.replace(microsecond=123_456))
    receipt = await store.save_update(quiet)
    await store.save_update(whole)
    await store.register(REF, "Red v Blue", NOW, later(60), sport="cricket")
    await store.load(match_id)

    assert receipt.match.updated_at == NOW
    assert watcher.pragma("data_version") == version
    assert path.with_name("matches.db-wal").read_bytes() == log
    watcher.close()
    await store.aclose()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE matches SET phase = 'suspended' WHERE match_id = 1",
        "UPDATE matches SET status = 'rained_off' WHERE match_id = 1",
        "UPDATE matches SET start_at = 'at noon' WHERE match_id = 1",
    ],
)
async def test_a_match_that_a_newer_version_stored_stops_no_other_match(path: Path, change: str) -> None:
    store = await SqliteMatchStore.open(path)
    await owned_match(store)
    known = await owned_match(store, MatchRef("crex", "22XX"))
    connection = apsw.Connection(str(path))
    connection.execute(change)
    connection.close()
    failures: list[str] = []

    taken = LiveMatches(store, "node-b").take_over({"crex"}, lambda ref, error: failures.append(f"{ref}: {error}"))

    assert [match.row.match_id async for match in taken] == [known]
    [failure] = failures
    where = f"{REF}: {path}: a row of matches (match_id '1', source 'crex', source_id '11HD') cannot be read: "
    assert failure.startswith(where)
    assert failure.endswith(". If a newer version or a plug-in stored it, install that")
    await store.aclose()


async def test_a_failed_open_leaves_no_thread_behind(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        await SqliteMatchStore.open(tmp_path / "missing" / "matches.db")
