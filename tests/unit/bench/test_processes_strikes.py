"""Strikes at our own processes: who, when, how."""

from collections import Counter
from itertools import islice

import pytest

from bench.chaos.processes_strikes import CHILDREN, HALT, HURRY, OWNERS, PAUSE, ROUND, Victim, strikes


def test_the_seed_fixes_the_strikes() -> None:
    assert list(islice(strikes(7), 50)) == list(islice(strikes(7), 50))
    assert list(islice(strikes(7), 50)) != list(islice(strikes(8), 50))


@pytest.mark.parametrize("seed", range(20))
def test_each_round_kills_everybody_once_and_halts_one_child(seed: int) -> None:
    first = list(islice(strikes(seed), ROUND))

    assert Counter(strike.victim for strike in first if not strike.halt) == Counter(Victim)
    (halted,) = [strike for strike in first if strike.halt]
    assert halted.victim in CHILDREN
    assert HALT[0] <= halted.halt <= HALT[1]


@pytest.mark.parametrize("seed", range(20))
def test_one_kill_of_each_round_does_not_wait_until_the_strike_before_is_overcome(seed: int) -> None:
    row = list(islice(strikes(seed), 10 * ROUND))

    for start in range(0, len(row), ROUND):
        (hurried,) = [strike for strike in row[start : start + ROUND] if strike.is_hurried]
        assert hurried != row[start]
        assert not hurried.halt


@pytest.mark.parametrize("seed", range(20))
def test_in_each_round_one_owner_of_the_browser_is_killed_while_that_is_halted(seed: int) -> None:
    (orphaning,) = [strike for strike in islice(strikes(seed), ROUND) if strike.is_browser_halted]

    assert orphaning.victim in OWNERS
    assert not orphaning.halt


def test_whoever_is_struck_in_a_hurry_is_not_always_the_same() -> None:
    hurried = [strike for strike in islice(strikes(7), 40 * ROUND) if strike.is_hurried]

    assert {strike.victim for strike in hurried} == set(Victim)


def test_strikes_fall_at_different_moments() -> None:
    row = list(islice(strikes(7), 50))

    assert len({strike.pause for strike in row}) > 40
    for strike in row:
        least, most = HURRY if strike.is_hurried else PAUSE
        assert least <= strike.pause <= most
