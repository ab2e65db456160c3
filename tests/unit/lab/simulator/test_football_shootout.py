from random import Random

import pytest

from longstop_lab.simulator.football import AWAY, HOME, KickTruth
from longstop_lab.simulator.football_shootout import is_decided, shoot_out

PLAYERS = {HOME: [f"H{nth}" for nth in range(11)], AWAY: [f"A{nth}" for nth in range(10)]}


def shoot_outs() -> list[list[KickTruth]]:
    return [shoot_out(PLAYERS, Random(seed)) for seed in range(500)]


def test_it_ends_when_it_is_decided_and_not_before() -> None:
    for kicks in shoot_outs():
        first = kicks[0].side
        ended = [
            is_decided(*((kick.home, kick.away) if first == HOME else (kick.away, kick.home)), kick.sequence)
            for kick in kicks
        ]
        assert ended == [False] * (len(kicks) - 1) + [True]
        assert kicks[-1].home != kicks[-1].away


@pytest.mark.parametrize(
    ("first", "second", "kicks", "decided"),
    [
        (3, 0, 6, True),
        (3, 0, 5, False),
        (2, 0, 6, False),
        (3, 1, 8, True),
        (3, 2, 8, False),
        (3, 4, 9, True),
        (4, 3, 9, False),
        (4, 4, 10, False),
        (5, 4, 10, True),
        (5, 4, 11, False),
        (5, 5, 12, False),
        (6, 5, 12, True),
    ],
)
def test_nothing_can_change_any_more(first: int, second: int, kicks: int, decided: bool) -> None:
    assert is_decided(first, second, kicks) is decided


def test_the_sides_take_turns_and_the_score_adds_up() -> None:
    for kicks in shoot_outs():
        score = {HOME: 0, AWAY: 0}
        for nth, kick in enumerate(kicks):
            score[kick.side] += kick.is_scored
            assert kick.sequence == nth + 1
            assert kick.side == kicks[nth % 2].side
            assert (kick.home, kick.away) == (score[HOME], score[AWAY])


def test_nobody_kicks_twice_before_all_of_his_side_have_kicked() -> None:
    for kicks in shoot_outs():
        for side, players in PLAYERS.items():
            mine = [kick.player for kick in kicks if kick.side == side]
            assert len(set(mine[: len(players)])) == min(len(mine), len(players))


def test_some_go_to_sudden_death() -> None:
    assert any(len(kicks) > 10 for kicks in shoot_outs())
