"""The football matches of a simulator: their kinds, when each starts, and how they advance with the clock."""

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.generate import play_football
from longstop_lab.simulator.football.model import FootballMatch
from longstop_lab.simulator.football.script import FootballScript, script_football
from longstop_lab.simulator.timeline import Timeline

#: The kinds of football match, and whether they are cup matches; `None` chooses at random.
FOOTBALL_KINDS: dict[str, bool | None] = {"football": None, "football-cup": True}


class PlannedFootball(Struct, frozen=True, kw_only=True):
    """A match and its start."""

    match: FootballMatch
    script: FootballScript
    #: World seconds from the start of the simulator to the kick-off as first planned.
    starts_at: float

    @property
    def key(self) -> str:
        return self.match.key


class FootballWorld(Timeline[PlannedFootball, FootballBoard]):
    """All football matches of the simulator."""

    def _board(self, plan: PlannedFootball) -> FootballBoard:
        return FootballBoard(plan.match)


def plan_football(seed: int, kinds: Sequence[str]) -> list[PlannedFootball]:
    """Return one match for each of the kinds, most of them in play when the simulator starts."""
    return [_plan(kind, seed, index) for index, kind in enumerate(kinds)]


def _plan(kind: str, seed: int, index: int) -> PlannedFootball:
    match = play_football(seed, index, is_cup=FOOTBALL_KINDS[kind])
    return PlannedFootball(
        match=match,
        script=script_football(match, seed),
        starts_at=_start(match, index, Random(f"football start {seed} {index}")),
    )


def _start(match: FootballMatch, index: int, dice: Random) -> float:
    """Spread the starts: of ten matches, one ends soon, one is about to kick off, one has no line-ups yet.

    No match is over when the simulator starts: a site lists only matches in play, so it could not be discovered.
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
