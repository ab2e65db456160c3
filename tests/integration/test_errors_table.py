"""The errors table on a real file: one row for an episode, written without anyone waiting, mended with the disk."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from longstop.model.episode import (
    Episode,
    EpisodeChange,
    ErrorSeen,
    ErrorType,
    Resolution,
    ResolutionMethod,
    StoredError,
)
from longstop.storage.sqlite.ops import ErrorFilter, ErrorReader, ErrorWriter
from longstop.telemetry.bus import Bus
from longstop.telemetry.errors_table import ErrorsTable
from longstop.telemetry.events.base import Telemetry
from longstop.telemetry.events.matches import PollFailed, PollSucceeded
from longstop.telemetry.events.sources import ListingFailed
from longstop.telemetry.events.upkeep import RecordsFailed
from tests.readers import NOW, ManualClock

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
    reader = ErrorReader(path)
    try:
        return reader.errors(wanted or ErrorFilter())
    finally:
        reader.close()


@asynccontextmanager
async def writing(path: Path, *more: Recorder, clock: ManualClock | None = None) -> AsyncIterator[Bus]:
    table = ErrorsTable(path, node="node-1", clock=clock or ManualClock(), flush_every_seconds=0.01)
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


def error(episode: Episode, seconds: float = 0.0) -> ErrorSeen:
    return ErrorSeen(
        episode=episode,
        scraper_id="node-1",
        match_id=1,
        timestamp=NOW + timedelta(seconds=seconds),
        error_type=ErrorType.NETWORK,
        error_class="FetchTimeout",
        error_message="late",
        source="crex",
        operation="look",
    )


def met(seconds: float = 0.0, signature: str = "abc") -> dict[Episode, EpisodeChange]:
    episode = Episode("crex_11HD", signature)
    moment = NOW + timedelta(seconds=seconds)
    return {episode: EpisodeChange(error=error(episode, seconds), count=1, last_seen=moment)}


def over(seconds: float, signature: str = "abc") -> dict[Episode, EpisodeChange]:
    end = Resolution(at=NOW + timedelta(seconds=seconds), method=ResolutionMethod.AUTO_RETRY)
    return {Episode("crex_11HD", signature): EpisodeChange(resolution=end)}


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


async def test_a_disk_that_fails_is_told_once_and_nothing_is_lost_when_it_is_mended(path: Path) -> None:
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


async def test_what_there_was_no_room_for_is_told_when_the_disk_is_mended(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longstop.telemetry.episodes.MAX_PENDING", 2)
    recorder = Recorder()
    occupy(path)

    async with writing(path, recorder) as bus:
        for number in range(5):
            bus.emit(PollFailed(match_id=1, ref=f"crex_{number}", error_type="EmptyBody", error_message=""))
        await eventually(lambda: any(isinstance(event, RecordsFailed) for event in recorder.events))
        release(path)
        await eventually(lambda: len(stored(path)) == 2)

    told = [event.error_message for event in recorder.events if isinstance(event, RecordsFailed)]
    assert told[1:] == ["3 changes were dropped: more than 10,000 were waiting"]


async def test_a_locked_file_does_not_make_anyone_wait(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstop.storage.sqlite.connection.BUSY_TIMEOUT_MS", 4_000)
    ErrorWriter(path).open_episodes()
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

    class CountingWriter(ErrorWriter):
        def write(self, changes: Mapping[Episode, EpisodeChange]) -> None:
            attempts.append(len(changes))
            super().write(changes)

    ErrorWriter(path).open_episodes()
    monkeypatch.setattr("longstop.telemetry.errors_table.ErrorWriter", CountingWriter)
    monkeypatch.setattr("longstop.storage.sqlite.connection.BUSY_TIMEOUT_MS", 1)
    blocker = apsw.Connection(str(path))
    blocker.execute("BEGIN IMMEDIATE")

    async with writing(path) as bus:
        bus.emit(FAILED)
        await eventually(lambda: len(attempts) > 3)
        bus.emit(FAILED)
        blocker.execute("ROLLBACK")

    assert [row.count for row in stored(path)] == [2]
    blocker.close()


async def test_many_good_looks_cost_next_to_nothing(path: Path) -> None:
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


def test_an_error_that_is_back_within_a_minute_was_never_over(path: Path) -> None:
    writer = ErrorWriter(path)

    for change in (met(0), over(10), met(60), over(70), met(131)):
        writer.write(change)
    writer.close()

    newest, first = stored(path)
    assert (first.count, first.resolution is not None) == (2, True)
    assert (newest.count, newest.resolution) == (1, None)


def test_what_somebody_marked_stays_marked_when_the_error_is_back(path: Path) -> None:
    writer = ErrorWriter(path)
    writer.write(met(0))

    assert writer.resolve(1, NOW)
    assert not writer.resolve(1, NOW)
    assert not writer.resolve(7, NOW)
    writer.write(met(1))
    writer.close()

    newest, first = stored(path)
    assert first.resolution == Resolution(at=NOW, method=ResolutionMethod.MANUAL)
    assert (newest.id, newest.resolution) == (2, None)


@pytest.mark.req("NFR-017")
def test_resolved_errors_are_kept_for_thirty_days_and_open_ones_for_longer(path: Path) -> None:
    writer = ErrorWriter(path)
    for signature in ("open", "old", "young"):
        writer.write(met(100 if signature == "young" else 0, signature))
    for signature in ("old", "young"):
        writer.write(over(200, signature))

    writer.prune(NOW + timedelta(days=30, seconds=50))
    writer.close()

    assert [row.episode.signature for row in stored(path)] == ["young", "open"]


def test_beyond_a_number_of_rows_the_oldest_resolved_ones_go_first(path: Path) -> None:
    writer = ErrorWriter(path, max_rows=2)
    for number, signature in enumerate(("open", "first", "second", "third")):
        writer.write(met(number, signature))
    for signature in ("first", "second", "third"):
        writer.write(over(10, signature))

    writer.prune(NOW)
    writer.close()

    assert [row.episode.signature for row in stored(path)] == ["third", "open"]


async def test_the_table_prunes_at_its_start_and_every_hour(path: Path) -> None:
    writer, clock = ErrorWriter(path), ManualClock(NOW + timedelta(days=31))
    writer.write(met())
    writer.write(over(1))

    async with writing(path, clock=clock):
        await eventually(lambda: stored(path) == [])
        writer.write(met())
        writer.write(over(1))
        await asyncio.sleep(0.1)
        assert len(stored(path)) == 1
        clock.advance(3601)
        await eventually(lambda: stored(path) == [])
    writer.close()


def test_errors_are_found_by_match_by_name_and_by_being_open(path: Path) -> None:
    writer = ErrorWriter(path)
    writer.write(met(0, "a") | met(1, "b"))
    writer.write(over(2, "a"))
    writer.close()

    assert [row.episode.signature for row in stored(path)] == ["b", "a"]
    assert [row.episode.signature for row in stored(path, ErrorFilter(limit=1))] == ["b"]
    assert [row.episode.signature for row in stored(path, ErrorFilter(ref="crex_11HD", is_open=True))] == ["b"]
    assert stored(path, ErrorFilter(match_id=2)) == []


def test_where_no_scraper_has_run_there_are_no_errors(path: Path) -> None:
    assert stored(path) == []
    assert not path.exists()
