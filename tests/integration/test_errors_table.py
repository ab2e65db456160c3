"""The errors table on a real file: one row for an episode, written in the background, and recovered with the disk."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import apsw
import pytest

from longstop.model.episode import (
    Episode,
    EpisodeChange,
    ErrorType,
    Resolution,
    ResolutionMethod,
    StoredError,
)
from longstop.storage.base import ErrorFilter, ErrorStore
from longstop.storage.sqlite.operations_tables import SqliteErrors
from longstop.telemetry import errors_table_and_match_logs
from longstop.telemetry.bus import Bus
from longstop.telemetry.errors_table_and_match_logs import ErrorsTable
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import PollFailed, PollSucceeded
from longstop.telemetry.events.processes import RecordsFailed
from longstop.telemetry.events.sources import ListingFailed
from tests.contract.test_ops import met, over
from tests.readers import NOW, ManualClock, apart

FAILED = PollFailed(match_id=1, ref="crex_11HD", error_type="FetchTimeout", error_message="late")
GOOD = PollSucceeded(match_id=1, ref="crex_11HD", seconds=0.1)


class Recorder:
    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops.db"


def stored(path: Path, wanted: ErrorFilter | None = None) -> list[StoredError]:
    async def read() -> list[StoredError]:
        async with aclosing(SqliteErrors(path)) as errors:
            return await errors.recent(wanted or ErrorFilter())

    return apart(read())


@asynccontextmanager
async def writing(
    path: Path, *more: Recorder, clock: ManualClock | None = None, store: ErrorStore | None = None
) -> AsyncIterator[Bus]:
    async with aclosing(store or SqliteErrors(path)) as errors:
        with patch.object(errors_table_and_match_logs, "FLUSH_EVERY_SECONDS", 0.01):
            table = ErrorsTable(errors, node="node-1", clock=clock or ManualClock())
        bus = Bus([table, *more])
        async with table.writing(bus):
            yield bus


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- the file is written by a thread
            await asyncio.sleep(0.01)


def occupy(path: Path) -> None:
    """Make it impossible to open a file there."""
    path.mkdir()


def release(path: Path) -> None:
    path.rmdir()


async def test_an_error_is_in_the_file_soon_and_its_end_too(path: Path) -> None:
    async with writing(path) as bus:
        bus.emit(FAILED)
        await eventually(lambda: [row.resolution for row in stored(path)] == [None])
        bus.emit(GOOD)
        await eventually(lambda: stored(path)[0].resolution is not None)

    [row] = stored(path)
    assert row.resolution == Resolution(at=NOW, method=ResolutionMethod.AUTO_RETRY)
    assert (row.scraper_id, row.match_id, row.error_type) == ("node-1", 1, ErrorType.NETWORK)
    assert (row.error_class, row.error_message, row.count) == ("FetchTimeout", "late", 1)


async def test_a_site_that_fails_thousands_of_times_makes_one_row(path: Path) -> None:
    async with writing(path) as bus:
        for number in range(5_000):
            bus.emit(
                PollFailed(match_id=1, ref="crex_11HD", error_type="SourceFailed", error_message=f"answered {number}")
            )

    assert [row.count for row in stored(path)] == [5_000]


async def test_what_is_said_last_is_written_at_the_end(path: Path) -> None:
    async with writing(path) as bus:
        await eventually(path.exists)
        bus.emit(ListingFailed(source="crex", error_type="LayoutChanged", error_message="gone", page="storage/x.html"))

    [row] = stored(path)
    assert (row.match_id, row.episode.ref, row.snapshot) == (None, "crex", "storage/x.html")


async def test_an_episode_goes_on_after_a_restart_and_is_resolved_by_it(path: Path) -> None:
    async with writing(path) as bus:
        bus.emit(FAILED)

    async with writing(path) as bus:
        bus.emit(FAILED)
    async with writing(path) as bus:
        bus.emit(ListingFailed(source="x", error_type="EmptyBody", error_message=""))
        await eventually(lambda: len(stored(path)) == 2)  # so that the open ones are known again
        bus.emit(GOOD)

    [row] = stored(path, ErrorFilter(match_id=1))
    assert (row.count, row.resolution is not None) == (2, True)


async def test_a_failing_disk_is_reported_once_and_nothing_is_lost_when_it_recovers(path: Path) -> None:
    recorder = Recorder()
    occupy(path)

    async with writing(path, recorder) as bus:
        bus.emit(FAILED)
        await eventually(lambda: any(isinstance(event, RecordsFailed) for event in recorder.events))
        bus.emit(FAILED)
        await asyncio.sleep(0.1)
        release(path)
        await eventually(lambda: [row.count for row in stored(path)] == [2])

    assert len([event for event in recorder.events if isinstance(event, RecordsFailed)]) == 1


async def test_dropped_changes_are_reported_when_the_disk_recovers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstop.telemetry.episodes.MAX_PENDING", 2)
    recorder = Recorder()
    occupy(path)

    async with writing(path, recorder) as bus:
        for number in range(5):
            bus.emit(PollFailed(match_id=1, ref=f"crex_{number}", error_type="EmptyBody", error_message=""))
        await eventually(lambda: any(isinstance(event, RecordsFailed) for event in recorder.events))
        release(path)
        await eventually(lambda: len(stored(path)) == 2)

    reported = [event.error_message for event in recorder.events if isinstance(event, RecordsFailed)]
    assert reported[1:] == ["dropped 3 changes: more than 10,000 were waiting"]


async def test_a_locked_file_does_not_make_anyone_wait(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstop.storage.sqlite.connection.BUSY_TIMEOUT_MS", 4_000)
    await SqliteErrors(path).open_episodes()
    blocker = apsw.Connection(str(path))
    blocker.execute("BEGIN IMMEDIATE")
    loop = asyncio.get_running_loop()

    async with writing(path) as bus:
        bus.emit(FAILED)
        await asyncio.sleep(0.2)  # until the thread waits for the file
        began = loop.time()
        for _ in range(999):
            bus.emit(FAILED)
        took = loop.time() - began
        blocker.execute("ROLLBACK")

    assert took < 2
    assert [row.count for row in stored(path)] == [1_000]
    blocker.close()


async def test_what_a_locked_file_refused_is_written_when_it_is_free(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    class Counting(SqliteErrors):
        async def write(self, changes: Mapping[Episode, EpisodeChange]) -> None:
            attempts.append(len(changes))
            await super().write(changes)

    await SqliteErrors(path).open_episodes()
    monkeypatch.setattr("longstop.storage.sqlite.connection.BUSY_TIMEOUT_MS", 1)
    blocker = apsw.Connection(str(path))
    blocker.execute("BEGIN IMMEDIATE")

    async with writing(path, store=Counting(path)) as bus:
        bus.emit(FAILED)
        await eventually(lambda: len(attempts) > 3)
        bus.emit(FAILED)
        blocker.execute("ROLLBACK")

    assert [row.count for row in stored(path)] == [2]
    blocker.close()


async def test_many_successful_polls_cost_next_to_nothing(path: Path) -> None:
    loop = asyncio.get_running_loop()

    async with writing(path) as bus:
        for number in range(1_000):
            bus.emit(PollFailed(match_id=1, ref=f"crex_{number}", error_type="EmptyBody", error_message=""))
        took = []
        for _ in range(10):
            began = loop.time()
            for _ in range(2_000):
                bus.emit(PollSucceeded(match_id=1, ref="espn_1", seconds=0.1))
            took.append(loop.time() - began)

    assert min(took) / 2_000 < 0.000_1


async def test_the_table_prunes_at_its_start_and_every_hour(path: Path) -> None:
    errors, clock = SqliteErrors(path), ManualClock(NOW + timedelta(days=31))
    await errors.write(met())
    await errors.write(over(1))

    async with writing(path, clock=clock):
        await eventually(lambda: stored(path) == [])
        await errors.write(met())
        await errors.write(over(1))
        await asyncio.sleep(0.1)
        assert len(stored(path)) == 1
        clock.advance(3601)
        await eventually(lambda: stored(path) == [])
    await errors.aclose()


def test_where_no_scraper_has_run_there_are_no_errors(path: Path) -> None:
    assert stored(path) == []
    assert not path.exists()
