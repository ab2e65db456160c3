"""The world of football: scripted matches that advance with the clock."""

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from longstop_lab.simulator.football import FootballMatch
from longstop_lab.simulator.football_board import FootballBoard
from longstop_lab.simulator.football_play import play_football
from longstop_lab.simulator.football_script import FootballScript, script_football
from longstop_lab.simulator.timeline import Timeline

#: The kinds of football match, and whether they are of a cup; `None` leaves that to the dice.
FOOTBALL_KINDS: dict[str, bool | None] = {"football": None, "football-cup": True}


class PlannedFootball(Struct, frozen=True, kw_only=True):
    """A match, and when it is to kick off in this world."""

    match: FootballMatch
    script: FootballScript
    #: World seconds from the world's own start to the kick-off as first planned.
    starts_at: float

    @property
    def key(self) -> str:
        return self.match.key


class FootballWorld(Timeline[PlannedFootball, FootballBoard]):
    """All football matches of the simulator."""

    def _board(self, plan: PlannedFootball) -> FootballBoard:
        return FootballBoard(plan.match)


def plan_football(seed: int, kinds: Sequence[str]) -> list[PlannedFootball]:
    """Return one match for each of the kinds, most of them in play when the world begins."""
    return [_plan(kind, seed, index) for index, kind in enumerate(kinds)]


def _plan(kind: str, seed: int, index: int) -> PlannedFootball:
    match = play_football(seed, index, is_cup=FOOTBALL_KINDS[kind])
    return PlannedFootball(
        match=match,
        script=script_football(match, seed),
        starts_at=_start(match, index, Random(f"football start {seed} {index}")),
    )


def _start(match: FootballMatch, index: int, dice: Random) -> float:
    """Spread the matches: of ten, one ends soon, one is about to kick off, one has no line-ups yet.

    None is over when the world begins: a site lists what is in play, and nobody could know of it.
    """
    shift = match.final_shift
    soon_over = dice.uniform(60, 500) - match.ends_at
    if index % 10 == 9:
        return dice.uniform(5500, 6500) - shift
    if index % 10 == 6:
        return dice.uniform(30, 300) - shift
    if index % 10 == 3:
        return soon_over
    return max(soon_over, -shift - dice.uniform(300, 5400))
