"""The pipe between a child and its supervisor, with both ends in one process."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from longstop.errors import SettingsError
from longstop.supervision.beats import BeatLine, beating


@pytest.fixture
def line() -> Iterator[BeatLine]:
    made = BeatLine()
    yield made
    made.close()


async def test_a_child_that_runs_is_heard_and_silent_afterwards(line: BeatLine) -> None:
    before = line.has_beaten()

    with beating({"LONGSTOP_BEAT_FD": str(line.write_end)}):
        await asyncio.sleep(0)
        first, again = line.has_beaten(), line.has_beaten()

    assert (before, first, again) == (False, True, False)


async def test_a_supervisor_that_does_not_read_holds_nobody_up(line: BeatLine) -> None:
    with suppress(BlockingIOError):
        while os.write(line.write_end, b"." * 4096):
            pass

    with beating({"LONGSTOP_BEAT_FD": str(line.write_end)}):
        await asyncio.sleep(0)
        beat = next(task for task in asyncio.all_tasks() if task.get_name() == "beat")
        is_going_on = not beat.done()

    assert is_going_on
    assert line.has_beaten()


async def test_a_process_that_was_started_by_hand_beats_for_nobody() -> None:
    with beating({}):
        names = [task.get_name() for task in asyncio.all_tasks()]

    assert "beat" not in names


async def test_a_line_that_is_none_is_refused() -> None:
    with (
        pytest.raises(SettingsError, match="LONGSTOP_BEAT_FD is 'x': leave it out"),
        beating({"LONGSTOP_BEAT_FD": "x"}),
    ):
        pass
