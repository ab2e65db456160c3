"""Pages of the simulated espncricinfo for its tests."""

from datetime import timedelta
from random import Random
from typing import Any

from longstop.sports.cricket.model import Dismissal, Overs, Result, ResultKind
from longstop_lab.simulator.cricket.game import Game, Innings, Out, Over, Target
from longstop_lab.simulator.cricket.script import Script, narrate, steady_pace
from longstop_lab.simulator.cricket.world import PlannedMatch, World
from longstop_lab.simulator.http import Request, Response
from longstop_lab.simulator.sites.espncricinfo.ids import match_number
from longstop_lab.simulator.sites.espncricinfo.site import LIST, EspncricinfoSite
from longstop_lab.simulator.truth import TruthLine
from tests.readers import ManualClock
from tests.unit.lab.simulator.games import HERONS, NOON, ROVERS, ball, small_game, small_script
from tests.unit.lab.simulator.recorded import next_data

END = 100_000.0


def world_at(seconds: float, game: Game | None = None, script: Script | None = None) -> tuple[World, list[TruthLine]]:
    """Return a world with one match after this many seconds, and its truth lines; by default the small game."""
    lines: list[TruthLine] = []
    plan = PlannedMatch(game=game or small_game(), script=script or small_script(), starts_at=0.0)
    world = World([plan], started_at=NOON, speed=1.0, record=lines.extend)
    world.advance(NOON + timedelta(seconds=seconds))
    return world, lines


def steady(game: Game) -> Script:
    """Return a script with a ball every ten seconds."""
    return narrate(game, steady_pace(10), Random(1))


def address(key: str = "11AB") -> str:
    return f"/series/any-series-12/any-match-{match_number(key)}/full-scorecard"


def get(world: World, path: str) -> Response:
    return EspncricinfoSite(world, ManualClock()).answer(Request(method="GET", path=path))


def page_of(world: World) -> dict[str, Any]:
    """Return match and content of the world's only match, as its page has them."""
    (key,) = world.boards
    data: dict[str, Any] = next_data(get(world, address(key)).body)["data"]
    return data


def page_at(seconds: float, game: Game | None = None, script: Script | None = None) -> dict[str, Any]:
    return page_of(world_at(seconds, game, script)[0])


def listing_of(world: World) -> list[dict[str, Any]]:
    matches: list[dict[str, Any]] = next_data(get(world, LIST).body)["content"]["matches"]
    return matches


def super_over_game() -> Game:
    """Return a match of one over a side, tied, with a super over after it."""
    pair = (ROVERS, HERONS)
    single = Over(number=0, balls=tuple(ball(batter=1) for _ in range(6)))
    decider = Over(number=0, balls=(ball(batter=4, boundary=4),))
    target = Target(runs=7, overs=Overs(1, 0))
    return Game(
        key="11CD",
        number=8,
        match_format="T20",
        sides=pair,
        innings=(
            Innings(batting=ROVERS, bowling=HERONS, overs=(single,)),
            Innings(batting=HERONS, bowling=ROVERS, overs=(single,), target=target),
            Innings(batting=HERONS, bowling=ROVERS, overs=(decider,), is_super_over=True),
            Innings(batting=ROVERS, bowling=HERONS, overs=(decider,), target=target, is_super_over=True),
        ),
        result=Result(outcome=ResultKind.TIE, text="Match tied (Herons won the Super Over)"),
    )


def one_over_game(*outs: Out, result: Result | None = None) -> Game:
    """Return a match whose first ball brings these batters down."""
    over = Over(number=0, balls=(ball(outs=outs), *(ball(batter=1) for _ in range(5))))
    return Game(
        key="11EF",
        number=9,
        match_format="T20",
        sides=(ROVERS, HERONS),
        innings=(Innings(batting=ROVERS, bowling=HERONS, overs=(over,)),),
        result=result or Result(outcome=ResultKind.NO_RESULT, text="No result"),
    )


TWO_GONE = (Out(kind=Dismissal.RUN_OUT, player="R1"), Out(kind=Dismissal.RETIRED, player="R0", counts=False))
