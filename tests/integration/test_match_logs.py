"""The match logs on a real disk: one file for a match, bounded, packed at the end."""

import asyncio
import gzip
import json
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest

from longstop.telemetry import errors_table_and_match_logs
from longstop.telemetry.bus import Bus
from longstop.telemetry.errors_table_and_match_logs import LOG, PACKED, MatchLogs
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import (
    MatchDiscovered,
    MatchFinished,
    MatchPhaseChanged,
    PollFailed,
    PollSucceeded,
)
from longstop.telemetry.events.processes import RecordsFailed
from longstop.telemetry.events.sources import CircuitOpened, ListingFailed
from tests.readers import ManualClock

ARCHIVED = MatchPhaseChanged(match_id=1, ref="crex_1", before="completed", after="archived")


class Recorder:
    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)


def failed(match_id: int = 1, message: str = "late") -> PollFailed:
    return PollFailed(match_id=match_id, ref=f"crex_{match_id}", error_type="FetchTimeout", error_message=message)


@asynccontextmanager
async def logging(
    folder: Path, *more: Recorder, max_log_bytes: int = 1_000_000, max_logs: int = 2_000, every: float = 0.01
) -> AsyncIterator[Bus]:
    with patch.multiple(
        errors_table_and_match_logs, MAX_LOG_BYTES=max_log_bytes, MAX_LOGS=max_logs, FLUSH_EVERY_SECONDS=every
    ):
        logs = MatchLogs(folder, clock=ManualClock())
        bus = Bus([logs, *more])
        async with logs.writing(bus):
            yield bus


def lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- the files are written by a thread
            await asyncio.sleep(0.01)


async def test_what_happens_to_a_match_is_in_its_own_log(tmp_path: Path) -> None:
    async with logging(tmp_path) as bus:
        bus.emit(MatchDiscovered(match_id=1, ref="crex_1"))
        bus.emit(failed(match_id=2))
        bus.emit(CircuitOpened(scope="match", subject="crex_1", reason="refused", seconds=300.0, match_id=1))

    written = lines((tmp_path / "1" / LOG).read_bytes())
    assert [line["event"] for line in written] == ["match.discovered", "circuit_opened"]
    assert written[0]["timestamp"] == "2026-11-15T12:00:00.000Z"
    assert lines((tmp_path / "2" / LOG).read_bytes())[0]["error_message"] == "late"
    assert stat.S_IMODE((tmp_path / "1" / LOG).stat().st_mode) == 0o600


async def test_whispers_and_news_of_no_match_are_not_written(tmp_path: Path) -> None:
    async with logging(tmp_path) as bus:
        bus.emit(PollSucceeded(match_id=1, ref="crex_1", seconds=0.1))
        bus.emit(ListingFailed(source="crex", error_type="X", error_message=""))
        bus.emit(CircuitOpened(scope="source", subject="crex", reason="refused", seconds=300.0))

    assert names(tmp_path) == []


async def test_a_log_that_is_full_ends_with_one_closing_line_also_after_a_restart(tmp_path: Path) -> None:
    for _ in range(3):
        async with logging(tmp_path, max_log_bytes=2_000) as bus:
            for _ in range(20):
                bus.emit(failed())

    log = tmp_path / "1" / LOG
    events = [line["event"] for line in lines(log.read_bytes())]
    assert log.stat().st_size < 2_000 + 100
    assert events == ["poll.failed"] * (len(events) - 1) + ["log.full"]
    assert len(events) > 5


@pytest.mark.req("EC3")
async def test_the_log_of_an_archived_match_is_packed(tmp_path: Path) -> None:
    async with logging(tmp_path) as bus:
        bus.emit(failed())
        await eventually((tmp_path / "1" / LOG).exists)
        bus.emit(ARCHIVED)

    assert names(tmp_path / "1") == [PACKED]
    packed = lines(gzip.decompress((tmp_path / "1" / PACKED).read_bytes()))
    assert [line["event"] for line in packed] == ["poll.failed", "match.phase_changed"]
    assert stat.S_IMODE((tmp_path / "1" / PACKED).stat().st_mode) == 0o600


async def test_a_match_that_comes_back_goes_on_behind_its_packed_log(tmp_path: Path) -> None:
    for number in range(3):
        async with logging(tmp_path) as bus:
            bus.emit(failed(message=str(number)))
            bus.emit(ARCHIVED)

    packed = lines(gzip.decompress((tmp_path / "1" / PACKED).read_bytes()))
    assert [line["error_message"] for line in packed if line["event"] == "poll.failed"] == ["0", "1", "2"]


async def test_a_finished_match_is_written_down_at_once(tmp_path: Path) -> None:
    async with logging(tmp_path, every=3600) as bus:
        await asyncio.sleep(0.05)
        bus.emit(MatchFinished(match_id=1, ref="crex_1", result="Reds won"))
        await eventually((tmp_path / "1" / LOG).exists)

    assert lines((tmp_path / "1" / LOG).read_bytes())[0]["result"] == "Reds won"


async def test_of_too_many_logs_the_oldest_packed_ones_go(tmp_path: Path) -> None:
    for match_id in (3, 1, 2):
        async with logging(tmp_path) as bus:
            bus.emit(failed(match_id))
            bus.emit(MatchPhaseChanged(match_id=match_id, ref="crex_1", before="completed", after="archived"))
        os.utime(tmp_path / str(match_id) / PACKED, (match_id, match_id))

    async with logging(tmp_path, max_logs=3) as bus:
        for match_id in (4, 5):
            bus.emit(failed(match_id))
        bus.emit(MatchPhaseChanged(match_id=3, ref="crex_3", before="completed", after="archived"))

    assert sorted(names(tmp_path)) == ["3", "4", "5"]


async def test_logs_that_are_written_to_stay_however_many_there_are(tmp_path: Path) -> None:
    async with logging(tmp_path) as bus:
        bus.emit(failed(1))
        bus.emit(ARCHIVED)
    async with logging(tmp_path) as bus:
        for match_id in (1, 2, 3):  # the first one has come back
            bus.emit(failed(match_id))

    async with logging(tmp_path, max_logs=1):
        pass

    assert sorted(names(tmp_path)) == ["1", "2", "3"]


async def test_a_thousand_matches_need_no_thousand_files_open(tmp_path: Path) -> None:
    async with logging(tmp_path) as bus:
        for match_id in range(1, 1_001):
            bus.emit(failed(match_id))
        await eventually((tmp_path / "1000" / LOG).exists)
        open_logs = [each for each in psutil.Process().open_files() if each.path.endswith(LOG)]

    assert len(open_logs) <= 1
    assert len(names(tmp_path)) == 1_000


async def test_a_failing_disk_is_reported_once(tmp_path: Path) -> None:
    recorder = Recorder()
    (tmp_path / "1").write_text("in the way")

    async with logging(tmp_path, recorder) as bus:
        for _ in range(3):
            bus.emit(failed(1))
            await asyncio.sleep(0.05)

    assert [type(event) for event in recorder.events].count(RecordsFailed) == 1


async def test_a_log_that_cannot_be_written_spoils_no_other(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("in the way")

    async with logging(tmp_path, every=3600) as bus:
        for match_id in (1, 2) * 3:
            bus.emit(failed(match_id))

    assert len(lines((tmp_path / "2" / LOG).read_bytes())) == 3
