"""The pipes between the supervisor and its children."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from longstop.errors import SettingsError
from longstop.supervision.lifeline_and_heartbeat_pipes import HeartbeatPipe, parent_fd, sending_heartbeats


@pytest.fixture
def pipe() -> Iterator[HeartbeatPipe]:
    made = HeartbeatPipe()
    yield made
    made.close()


async def test_a_child_sends_heartbeats_while_it_runs(pipe: HeartbeatPipe) -> None:
    before = pipe.has_beaten()

    with sending_heartbeats({"LONGSTOP_BEAT_FD": str(pipe.write_end)}):
        await asyncio.sleep(0)
        first, again = pipe.has_beaten(), pipe.has_beaten()

    assert (before, first, again) == (False, True, False)


async def test_a_supervisor_that_does_not_read_blocks_no_child(pipe: HeartbeatPipe) -> None:
    with suppress(BlockingIOError):
        while os.write(pipe.write_end, b"." * 4096):
            pass

    with sending_heartbeats({"LONGSTOP_BEAT_FD": str(pipe.write_end)}):
        await asyncio.sleep(0)
        beat = next(task for task in asyncio.all_tasks() if task.get_name() == "heartbeat")
        is_going_on = not beat.done()

    assert is_going_on
    assert pipe.has_beaten()


async def test_a_process_without_a_supervisor_sends_no_heartbeats() -> None:
    with sending_heartbeats({}):
        names = [task.get_name() for task in asyncio.all_tasks()]

    assert "heartbeat" not in names


async def test_a_line_that_is_none_is_refused() -> None:
    with (
        pytest.raises(SettingsError, match="LONGSTOP_BEAT_FD is 'x': unset it"),
        sending_heartbeats({"LONGSTOP_BEAT_FD": "x"}),
    ):
        pass


def test_a_process_without_a_supervisor_has_no_parent_to_watch() -> None:
    assert parent_fd({}) is None


def test_the_pipe_is_found_by_its_number() -> None:
    read_end, write_end = os.pipe()

    found = parent_fd({"LONGSTOP_PARENT_FD": str(read_end)})

    os.close(read_end)
    os.close(write_end)
    assert found == read_end


@pytest.mark.parametrize("text", ["", "three", "-1", "999999", "9" * 30])
def test_a_number_that_is_no_open_file_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(SettingsError, match=r"LONGSTOP_PARENT_FD is .*: unset it"):
        parent_fd({"LONGSTOP_PARENT_FD": text})
