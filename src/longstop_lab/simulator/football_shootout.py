"""The shoot-out: five kicks each, then pairs, and not one more than it takes."""

from collections.abc import Mapping, Sequence
from itertools import count
from random import Random

from longstop_lab.simulator.football import AWAY, HOME, KickTruth

_KICKS = 5
_SCORED_SHARE = 0.75


def shoot_out(players: Mapping[str, Sequence[str]], dice: Random) -> list[KickTruth]:
    """Return the kicks; nobody has a second one before all of his side have had theirs."""
    first, second = dice.choice(((HOME, AWAY), (AWAY, HOME)))
    orders = {side: dice.sample(list(players[side]), len(players[side])) for side in (first, second)}
    score = {HOME: 0, AWAY: 0}
    kicks: list[KickTruth] = []
    for sequence in count(1):
        side = first if sequence % 2 else second
        nth = (sequence - 1) // 2
        is_scored = dice.random() < _SCORED_SHARE
        score[side] += is_scored
        player = orders[side][nth % len(orders[side])]
        kicks.append(KickTruth(side=side, sequence=sequence, player=player, is_scored=is_scored, **score))
        if is_decided(score[first], score[second], sequence):
            break
    return kicks


def is_decided(first: int, second: int, kicks: int) -> bool:
    """Return whether nothing can change any more, the first side's goals and the second's after so many kicks."""
    if kicks < 2 * _KICKS:
        first_left, second_left = _KICKS - (kicks + 1) // 2, _KICKS - kicks // 2
        return first > second + second_left or second > first + first_left
    return kicks % 2 == 0 and first != second
