"""What counts as gone in time."""

from typing import Any

import pytest

from bench.chaos.stubborn import GONE_WITHIN, is_gone_in_time
from longstop.supervision.exit_codes import Exit

GONE = {"gone_s": 24.3, "exit_code": Exit.FORCED.value, "left": 0, "orphans": 0}


def test_who_had_to_be_killed_and_is_gone_within_thirty_seconds_is_gone_in_time() -> None:
    assert GONE_WITHIN == 30.0
    assert is_gone_in_time(GONE)


@pytest.mark.parametrize(
    ("name", "value"),
    [("gone_s", 30.1), ("gone_s", None), ("exit_code", Exit.DONE), ("exit_code", None), ("left", 1), ("orphans", 1)],
)
def test_one_thing_that_is_wrong_is_enough(name: str, value: Any) -> None:
    assert not is_gone_in_time({**GONE, name: value})
