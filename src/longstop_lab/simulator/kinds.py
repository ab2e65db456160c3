"""The kinds of match that a world may hold."""

from collections.abc import Callable
from random import Random

from longstop.errors import UsageError
from longstop_lab.simulator.five_days import play_test
from longstop_lab.simulator.football_world import FOOTBALL_KINDS
from longstop_lab.simulator.game import Game
from longstop_lab.simulator.limited import play_odi, play_rainy_t20, play_t20
from longstop_lab.simulator.mistakes import with_mistakes
from longstop_lab.simulator.script import LIVE_PACE, Script, narrate

DEFAULT_KINDS = ("t20",)

_PLAYS: dict[str, Callable[[int, int], Game]] = {
    "t20": play_t20,
    "t20-rain": play_rainy_t20,
    "odi": play_odi,
    "test": play_test,
}
CRICKET_KINDS = tuple(_PLAYS)
KINDS = (*CRICKET_KINDS, *FOOTBALL_KINDS)


def read_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds of a list with commas, as in `t20,odi`."""
    kinds = tuple(kind.strip() for kind in text.split(","))
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise UsageError(f"{unknown[0][:40]!r} is no kind of match: there are {', '.join(KINDS)}")
    return kinds


def play(kind: str, seed: int, index: int) -> Game:
    """Return the final truth of the cricket match number `index` of the seed; the same numbers give the same match."""
    return _PLAYS[kind](seed, index)


def script_for(game: Game, seed: int) -> Script:
    """Return what the site publishes of a match, mistakes included."""
    dice = Random(f"script {seed} {game.key}")
    return with_mistakes(narrate(game, LIVE_PACE, dice), dice)
