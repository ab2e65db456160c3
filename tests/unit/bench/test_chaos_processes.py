"""When a run is complete, and what counts as a recovery."""

from typing import Any

import pytest

from bench.chaos.process_faults import ROUND
from bench.chaos.processes import Length, has_recovered_in_time

RECOVERED = {
    "recover_p95_s": 9.9,
    "never_recovered": 0,
    "recover_max_by_victim_s": {"up": 19.9, "api_halted": 1.0},
    "second_writers": 0,
    "orphan_max_s": 9.9,
    "zombies": 0,
}


def test_a_minute_is_over_when_it_is_over_and_everybody_was_struck() -> None:
    minute = Length(seconds=60)

    assert minute.is_reached(faults=ROUND, kills=ROUND - 1, seconds=61)
    assert not minute.is_reached(faults=ROUND, kills=ROUND - 1, seconds=59)
    assert not minute.is_reached(faults=ROUND - 1, kills=ROUND - 1, seconds=61)


def test_a_hundred_kills_are_a_hundred_kills_however_long_they_take() -> None:
    hundred = Length(seconds=800, kills=100)

    assert hundred.is_reached(faults=125, kills=100, seconds=1)
    assert not hundred.is_reached(faults=124, kills=99, seconds=10_000)


def test_what_is_overcome_in_time_by_one_writer_has_recovered_in_time() -> None:
    assert has_recovered_in_time(RECOVERED)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recover_p95_s", 10.1),
        ("recover_p95_s", None),
        ("never_recovered", 1),
        ("recover_max_by_victim_s", {"up": 20.1, "api_halted": 1.0}),
        ("recover_max_by_victim_s", {"up": 1.0, "api_halted": 20.1}),
        ("orphan_max_s", 10.1),
        ("second_writers", 1),
        ("second_writers", -1),
        ("zombies", 1),
    ],
)
def test_one_thing_that_is_wrong_is_enough(name: str, value: Any) -> None:
    assert not has_recovered_in_time({**RECOVERED, name: value})
