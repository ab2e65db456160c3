"""Faults of our own processes: which, when and how."""

from collections import Counter
from itertools import islice

import pytest

from bench.chaos.process_faults import CHILDREN, HALT, HURRY, OWNERS, PAUSE, ROUND, Target, process_faults


def test_the_seed_fixes_the_strikes() -> None:
    assert list(islice(process_faults(7), 50)) == list(islice(process_faults(7), 50))
    assert list(islice(process_faults(7), 50)) != list(islice(process_faults(8), 50))


@pytest.mark.parametrize("seed", range(20))
def test_each_round_kills_everybody_once_and_halts_one_child(seed: int) -> None:
    first = list(islice(process_faults(seed), ROUND))

    assert Counter(fault.target for fault in first if not fault.halt) == Counter(Target)
    (halted,) = [fault for fault in first if fault.halt]
    assert halted.target in CHILDREN
    assert HALT[0] <= halted.halt <= HALT[1]


@pytest.mark.parametrize("seed", range(20))
def test_one_kill_of_each_round_does_not_wait_until_the_strike_before_is_overcome(seed: int) -> None:
    row = list(islice(process_faults(seed), 10 * ROUND))

    for start in range(0, len(row), ROUND):
        (hurried,) = [fault for fault in row[start : start + ROUND] if fault.is_hurried]
        assert hurried != row[start]
        assert not hurried.halt


@pytest.mark.parametrize("seed", range(20))
def test_in_each_round_one_owner_of_the_browser_is_killed_while_that_is_halted(seed: int) -> None:
    (orphaning,) = [fault for fault in islice(process_faults(seed), ROUND) if fault.is_browser_halted]

    assert orphaning.target in OWNERS
    assert not orphaning.halt


def test_the_target_of_a_hurried_kill_varies() -> None:
    hurried = [fault for fault in islice(process_faults(7), 40 * ROUND) if fault.is_hurried]

    assert {fault.target for fault in hurried} == set(Target)


def test_strikes_fall_at_different_moments() -> None:
    row = list(islice(process_faults(7), 50))

    assert len({fault.pause for fault in row}) > 40
    for fault in row:
        least, most = HURRY if fault.is_hurried else PAUSE
        assert least <= fault.pause <= most
