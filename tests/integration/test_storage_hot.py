"""The hot view on a real file: when it is written, what happens when it breaks, and who sees it."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.errors import StorageError
from longstop.storage.base import HotRow
from longstop.storage.sqlite.connection import Synchronous, open_writable
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter, former_polls
from longstop.storage.sqlite.load_sql_and_migrate import Database
from tests.contract.stores import later
from tests.contract.test_hot_view import beat, hot_row, rows_of

_PEER = """
import asyncio, sys
from pathlib import Path
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader

print(asyncio.run(SqliteHotReader(Path(sys.argv[1])).row(1)).record.total_polls)
"""


_TALLY = """
CREATE TABLE tally (name TEXT);
CREATE TRIGGER on_views AFTER UPDATE ON views BEGIN INSERT INTO tally VALUES ('views'); END;
CREATE TRIGGER on_payloads AFTER UPDATE ON payloads BEGIN INSERT INTO tally VALUES ('payloads'); END;
"""


class Failures(list[StorageError]):
    """What the writer complained of."""


class Tally:
    """Counts the writes to each table from now on. Counting pages would not work: SQLite skips unchanged ones."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.execute(_TALLY)

    def close(self) -> dict[str, int]:
        names = [name for (name,) in self._connection.execute("SELECT name FROM tally")]
        self._connection.close()
        return {name: names.count(name) for name in ("views", "payloads")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hot.db"


def quick_writer(path: Path, failures: Failures | None = None) -> SqliteHotWriter:
    return SqliteHotWriter(
        path, on_failure=(failures if failures is not None else Failures()).append, flush_every_seconds=0.005
    )


def polled(row: HotRow, seconds: float) -> HotRow:
    """Return the row after another poll that brought nothing new."""
    return replace(row, record=replace(row.record, last_poll_at=later(seconds)))


def fill(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def inode(path: Path) -> int:
    return path.stat().st_ino


async def shown(reader: SqliteHotReader, *rows: HotRow) -> bool:
    """Return whether the reader shows these rows, and no others, within ten seconds."""
    deadline = time.monotonic() + 10
    while await rows_of(reader) != [*rows] and time.monotonic() < deadline:  # noqa: ASYNC110 -- a thread writes
        await asyncio.sleep(0.005)
    return await rows_of(reader) == [*rows]


async def test_a_row_is_written_soon_without_anyone_waiting_for_it(path: Path) -> None:
    writer, reader = quick_writer(path), SqliteHotReader(path)

    writer.put(hot_row())
    writer.beat(beat())

    assert await shown(reader, hot_row())
    assert list(await reader.beats()) == [beat()]
    await writer.aclose()
    await reader.aclose()


async def test_another_process_sees_it_while_the_writer_runs(path: Path) -> None:
    writer, reader = quick_writer(path), SqliteHotReader(path)
    writer.put(hot_row())
    assert await shown(reader, hot_row())

    peer = [sys.executable, "-c", _PEER, str(path)]
    seen = await asyncio.to_thread(subprocess.run, peer, capture_output=True, timeout=30, check=True)

    assert seen.stdout == b"3\n"
    await writer.aclose()
    await reader.aclose()


async def test_a_poll_without_change_does_not_write_the_payload_again(path: Path) -> None:
    writer, reader = quick_writer(path), SqliteHotReader(path)
    writer.put(hot_row())
    assert await shown(reader, hot_row())
    tally = Tally(path)

    writer.put(polled(hot_row(), 2))
    await writer.aclose()

    assert await reader.row(1) == polled(hot_row(), 2)
    assert tally.close() == {"views": 1, "payloads": 0}
    await reader.aclose()


async def test_a_new_payload_is_written(path: Path) -> None:
    writer, reader = quick_writer(path), SqliteHotReader(path)
    writer.put(hot_row())
    assert await shown(reader, hot_row())
    changed = hot_row(sequence=5, payload=b'{"a":2}')

    writer.put(changed)
    await writer.aclose()

    assert await reader.row(1) == changed
    await reader.aclose()


async def test_a_row_that_did_not_change_is_not_written_again(path: Path) -> None:
    writer, reader = quick_writer(path), SqliteHotReader(path)
    writer.put(hot_row(1))
    assert await shown(reader, hot_row())
    tally = Tally(path)

    writer.put(hot_row(1))
    await writer.aclose()

    assert tally.close() == {"views": 0, "payloads": 0}
    await reader.aclose()


@pytest.mark.parametrize("content", [b"no database\n" * 1000, b"SQLite format 3\x00" + b"\xff" * 9000])
async def test_a_damaged_view_is_made_again(path: Path, content: bytes) -> None:
    fill(path, content)
    writer, reader = quick_writer(path), SqliteHotReader(path)

    writer.put(hot_row())
    await writer.aclose()

    assert await rows_of(reader) == [hot_row()]
    await reader.aclose()


async def test_a_view_deleted_between_two_runs_is_filled_again_under_the_same_reader(path: Path) -> None:
    reader = SqliteHotReader(path)
    first = quick_writer(path)
    first.put(hot_row())
    await first.aclose()
    assert await reader.row(1) == hot_row()
    for file in list(path.parent.iterdir()):
        file.unlink()

    second = quick_writer(path)
    second.put(hot_row(2))
    await second.aclose()

    assert await rows_of(reader) == [hot_row(2)]
    await reader.aclose()


async def test_a_failing_disk_is_reported_once_and_nothing_is_lost_when_it_recovers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longstop.storage.sqlite.connection.BUSY_TIMEOUT_MS", 1)
    reopened: list[Path] = []

    def reopen(path: Path, database: Database, synchronous: Synchronous) -> apsw.Connection:
        reopened.append(path)
        return open_writable(path, database, synchronous)

    monkeypatch.setattr("longstop.storage.sqlite.hot_view_and_heartbeats.open_writable", reopen)
    failures = Failures()
    writer, reader = quick_writer(path, failures), SqliteHotReader(path)
    blocker = apsw.Connection(str(path))
    blocker.execute("BEGIN IMMEDIATE")

    writer.put(hot_row(1))
    writer.put(hot_row(2))
    async with asyncio.timeout(10):
        while len(reopened) <= 4:  # noqa: ASYNC110 -- a thread opens it
            await asyncio.sleep(0.005)
    assert await rows_of(reader) == []
    blocker.execute("ROLLBACK")

    assert await shown(reader, hot_row(1), hot_row(2))
    assert len(failures) == 1
    await writer.aclose()
    await reader.aclose()
    blocker.close()


async def test_a_match_forgotten_during_a_failing_write_does_not_come_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader, write = quick_writer(path), SqliteHotReader(path), SqliteHotWriter._write

    def fail_once(self: SqliteHotWriter, changed: Mapping[int, HotRow], taken: Any) -> None:
        monkeypatch.setattr(SqliteHotWriter, "_write", write)
        self.forget(1)
        raise StorageError("the disk failed")

    monkeypatch.setattr(SqliteHotWriter, "_write", fail_once)
    with writer._lock:  # both are written together
        writer._pending.rows.update({1: hot_row(1), 2: hot_row(2)})

    assert await shown(reader, hot_row(2))
    await writer.aclose()
    assert await rows_of(reader) == [hot_row(2)]
    await reader.aclose()


async def test_a_view_that_is_only_held_when_a_scraper_starts_is_waited_for_and_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longstop.storage.sqlite.connection.BUSY_TIMEOUT_MS", 1)
    first = quick_writer(path)
    first.put(hot_row(1))
    await first.aclose()
    before = inode(path)
    blocker = apsw.Connection(str(path))
    blocker.pragma("locking_mode", "EXCLUSIVE")
    blocker.execute("BEGIN EXCLUSIVE")
    failures = Failures()

    second, reader = quick_writer(path, failures), SqliteHotReader(path)
    second.put(hot_row(2))
    blocker.execute("ROLLBACK")
    blocker.close()

    assert await shown(reader, hot_row(1), hot_row(2))
    assert inode(path) == before
    assert len(failures) == 1
    await second.aclose()
    await reader.aclose()


async def test_times_of_an_earlier_boot_are_reported_by_the_wall_clock_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = replace(hot_row(), record=replace(hot_row().record, last_poll_monotonic=7.0))
    sign = replace(beat(), beat_monotonic=8.0)
    writer = quick_writer(path)
    writer.put(row)
    writer.beat(sign)
    await writer.aclose()
    reader = SqliteHotReader(path)
    same_boot = (await reader.row(1), list(await reader.records()), list(await reader.beats()))

    monkeypatch.setattr("longstop.storage.sqlite.hot_view_and_heartbeats.this_boot", lambda: "another one")

    assert same_boot == (row, [row.record], [sign])
    assert (await reader.row(1), list(await reader.records())) == (hot_row(), [hot_row().record])
    assert list(await reader.beats()) == [beat()]
    await reader.aclose()


async def test_where_no_boot_can_be_reported_from_another_only_the_wall_clock_counts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longstop.storage.sqlite.hot_view_and_heartbeats.this_boot", lambda: None)
    writer, reader = quick_writer(path), SqliteHotReader(path)
    writer.beat(replace(beat(), beat_monotonic=8.0))
    await writer.aclose()

    assert list(await reader.beats()) == [beat()]
    await reader.aclose()


async def test_the_next_life_learns_when_each_match_was_last_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = replace(hot_row().record, last_poll_monotonic=12.5)
    async with aclosing(quick_writer(path)) as writer:
        writer.put(replace(hot_row(), record=record))

    reader = SqliteHotReader(path)
    known = await former_polls(reader)
    monkeypatch.setattr("longstop.storage.sqlite.hot_view_and_heartbeats.this_boot", lambda: "another")

    assert record.last_poll_at is not None
    assert known == {record.match_id: Moment(record.last_poll_at, 12.5)}
    assert await former_polls(reader) == {}
    await reader.aclose()


@pytest.mark.parametrize("content", [None, b"", b"no database"])
async def test_of_a_view_that_cannot_be_read_the_next_life_learns_nothing(path: Path, content: bytes | None) -> None:
    if content is not None:
        fill(path, content)

    async with aclosing(SqliteHotReader(path)) as reader:
        assert await former_polls(reader) == {}
