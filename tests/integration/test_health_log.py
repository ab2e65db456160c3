"""The health log on a real file: a node's minutes, the matches' changes, and what is let go."""

import asyncio
from collections.abc import Collection
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from longstop.api.health_and_recovery_routes import health_log_rows
from longstop.errors import StorageError
from longstop.model.scraper_report import MatchCost, NodeBeat, ProcessResources, Rates
from longstop.storage.base import HealthRow
from longstop.storage.sqlite.operations_tables import SqliteHealthLog
from longstop.supervision.health_log import MAX_WAITING, HealthLog
from longstop.telemetry.bus import Bus
from tests.contract.test_ops import row
from tests.memory import MemorySink
from tests.readers import NOW, ManualClock, a_beat, a_record, apart


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops.db"


def stored(path: Path, match_id: int | None = None) -> list[HealthRow]:
    async def read() -> list[HealthRow]:
        async with aclosing(SqliteHealthLog(path)) as log:
            return await log.recent(match_id=match_id)

    return apart(read())


def occupy(path: Path) -> None:
    """Make it impossible to open a file there."""
    path.mkdir()


def release(path: Path) -> None:
    path.rmdir()


def measured() -> NodeBeat:
    return replace(
        a_beat(errors=3),
        grade="degraded",
        resources=ProcessResources(pids=(1,), rss_bytes=50 * 1024 * 1024, cpu_percent=7.5),
        rates=Rates(average_latency_ms=12.4, last_success_at=NOW - timedelta(seconds=4), last_success_seconds=4.0),
    )


async def test_a_node_is_written_once_a_minute(path: Path) -> None:
    clock = ManualClock()
    log = HealthLog(SqliteHealthLog(path), clock=clock)
    async with log.writing(Bus()):
        for _ in range(25):  # two minutes
            log.note(measured(), [])
            clock.advance(5)

    assert [each.timestamp for each in stored(path)] == [NOW + timedelta(seconds=each) for each in (120, 60, 0)]


@pytest.mark.req("FLD-10")
async def test_a_row_has_what_was_measured_and_nothing_else(path: Path) -> None:
    log = HealthLog(SqliteHealthLog(path), clock=ManualClock())
    async with log.writing(Bus()):
        log.note(measured(), [])
    first = stored(path)
    other = HealthLog(SqliteHealthLog(path), clock=ManualClock(NOW + timedelta(seconds=1)))
    async with other.writing(Bus()):
        other.note(a_beat(), [])

    assert first == [
        HealthRow(
            scraper_id="node-1",
            timestamp=NOW,
            health_status="degraded",
            error_count=3,
            memory_mb=50.0,
            cpu_percent=7.5,
            update_latency_ms=12,
            uptime_seconds=600.0,
            last_update_age_seconds=4.0,
        )
    ]
    newest = stored(path)[0]
    assert (newest.memory_mb, newest.cpu_percent, newest.update_latency_ms) == (None, None, None)


async def test_a_match_is_written_when_its_grade_changes(path: Path) -> None:
    clock = ManualClock()
    log = HealthLog(SqliteHealthLog(path), clock=clock)
    async with log.writing(Bus()):
        for failures in (0, 1, 3, 4, 6, 7, 0, 0):
            log.note(a_beat(), [replace(a_record(7), consecutive_failures=failures)])
            clock.advance(1)

    rows = stored(path, match_id=7)
    assert [(each.health_status, each.error_count) for each in reversed(rows)] == [
        ("degraded", 3),
        ("failing", 6),
        ("healthy", 0),
    ]
    assert {each.ref for each in rows} == {"crex_M7"}


async def test_what_a_failing_disk_did_not_take_is_written_later(path: Path) -> None:
    occupy(path)
    sink, log = MemorySink(), HealthLog(SqliteHealthLog(path), clock=ManualClock())
    log.note(a_beat(), [])
    async with log.writing(Bus([sink])):
        async with asyncio.timeout(30):
            while not sink.named("records.failed"):  # noqa: ASYNC110 -- a thread does it
                await asyncio.sleep(0.01)
        release(path)

    assert len(stored(path)) == 1


async def test_rows_that_arrive_while_a_full_queue_is_written_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longstop.supervision.health_log.MAX_WAITING", 1)
    clock, store = ManualClock(), SqliteHealthLog(path)
    log, write = HealthLog(store, clock=clock), store.write

    async def write_slowly(rows: Collection[HealthRow]) -> None:
        monkeypatch.setattr(store, "write", write)
        clock.advance(60)
        log.note(a_beat(), [])
        await write(rows)

    monkeypatch.setattr(store, "write", write_slowly)
    log.note(a_beat(), [])
    async with aclosing(store), log.writing(Bus([])):
        await asyncio.sleep(0)  # the first write begins

    assert len(stored(path)) == 2


async def test_the_history_of_a_match_is_found_by_its_number_and_by_its_name(path: Path) -> None:
    of_match = [replace(row(each, "failing"), match_id=7, ref="crex_M7") for each in (0, 10)]
    async with aclosing(SqliteHealthLog(path)) as log:
        await log.write([row(0), *of_match, row(20)])

        by_number, by_ref = await health_log_rows(log, "7", NOW, 10), await health_log_rows(log, "crex_M7", NOW, 10)

    assert by_number == by_ref == list(reversed(of_match))


@pytest.mark.req("NFR-017")
async def test_old_rows_go_by_themselves_while_a_scraper_runs(path: Path) -> None:
    async with aclosing(SqliteHealthLog(path)) as before:
        await before.write([row(-timedelta(days=each).total_seconds()) for each in (31, 30, 29)])
    clock = ManualClock()

    log = HealthLog(SqliteHealthLog(path), clock=clock)
    async with log.writing(Bus()):
        log.note(a_beat(), [])

    assert [(NOW - each.timestamp).days for each in stored(path)] == [0, 29, 30]


@pytest.mark.req("US4.1")
async def test_the_row_of_a_match_says_what_it_costs(path: Path) -> None:
    beat = replace(a_beat(), costs={7: MatchCost(pss_bytes=31 << 20, cpu_percent=0.6)})
    log = HealthLog(SqliteHealthLog(path), clock=ManualClock())
    async with log.writing(Bus()):
        log.note(beat, [replace(a_record(7), consecutive_failures=3)])

    (found,) = stored(path, match_id=7)
    assert (found.memory_mb, found.cpu_percent) == (31.0, 0.6)


async def test_what_cannot_be_written_pushes_out_the_oldest_and_never_the_newest(path: Path) -> None:
    occupy(path)
    clock = ManualClock()
    log = HealthLog(SqliteHealthLog(path), clock=clock)
    for number in range(MAX_WAITING):
        log._waiting.append(row(number))

    with pytest.raises(StorageError):
        await log._flush()
    log._waiting.append(row(MAX_WAITING))
    with pytest.raises(StorageError):
        await log._flush()

    assert log._waiting[-1].timestamp == NOW + timedelta(seconds=MAX_WAITING)
    assert log._waiting[0].timestamp == NOW + timedelta(seconds=1)
