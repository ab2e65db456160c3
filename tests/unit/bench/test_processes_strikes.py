"""Strikes at our own processes: who, when, how."""

from collections import Counter
from itertools import islice

import pytest

from bench.chaos.processes_strikes import CHILDREN, HALT, PAUSE, ROUND, Victim, strikes


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


def test_strikes_fall_at_different_moments() -> None:
    pauses = [strike.pause for strike in islice(strikes(7), 50)]

    assert len(set(pauses)) > 40
    assert all(PAUSE[0] <= pause <= PAUSE[1] for pause in pauses)
