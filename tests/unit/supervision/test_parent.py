"""What a child makes of the pipe it was handed."""

import os

import pytest

from longstop.errors import SettingsError
from longstop.supervision.parent import parent_fd


def test_a_process_started_by_hand_has_no_parent_to_watch() -> None:
    assert parent_fd({}) is None


def test_the_pipe_is_found_by_its_number() -> None:
    read_end, write_end = os.pipe()

    found = parent_fd({"LONGSTOP_PARENT_FD": str(read_end)})

    os.close(read_end)
    os.close(write_end)
    assert found == read_end


@pytest.mark.parametrize("text", ["", "three", "-1", "999999", "9" * 30])
def test_a_number_that_is_no_open_file_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(SettingsError, match=r"LONGSTOP_PARENT_FD is .*: leave it out"):
        parent_fd({"LONGSTOP_PARENT_FD": text})
