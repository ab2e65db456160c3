"""Figures of batters and bowlers, computed from the published balls."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from longstop.sports.cricket.model import Dismissal, Overs
from longstop_lab.simulator.cricket.game import BALLS_PER_OVER, Ball, Out

_BOWLERS_WICKETS = (Dismissal.BOWLED, Dismissal.CAUGHT, Dismissal.LBW, Dismissal.STUMPED, Dismissal.HIT_WICKET)


class Posted(Struct, frozen=True, kw_only=True, gc=False):
    """A ball as the site shows it now."""

    id: int
    innings: int
    label: Overs
    ball: Ball
    #: The score when it was first shown; a correction does not touch it.
    score: str


class BatterFigures(Struct):
    position: int
    runs: int = 0
    balls: int = 0
    fours: int = 0
    sixes: int = 0
    out: Out | None = None
    #: The bowler and the score at the dismissal.
    out_bowler: str = ""
    out_runs: int = 0
    out_balls: int = 0


class BowlerFigures(Struct):
    runs: int = 0
    balls: int = 0
    wickets: int = 0
    dots: int = 0


class Partnership(Struct):
    first: str
    second: str
    runs: int = 0
    balls: int = 0


def overs_bowled(over: int, legal_balls: int) -> Overs:
    """Return overs as a board writes them: six balls are an over, and a miscounted seventh is none more."""
    return Overs(over + 1, 0) if legal_balls >= BALLS_PER_OVER else Overs(over, legal_balls)


def ball_count(overs: Overs) -> int:
    return overs.over * BALLS_PER_OVER + overs.ball


def total_runs(balls: Iterable[Posted]) -> int:
    return sum(posted.ball.runs.total for posted in balls)


def batting_figures(balls: Sequence[Posted]) -> dict[str, BatterFigures]:
    """Return the figures of all batters so far, in batting order."""
    figures: dict[str, BatterFigures] = {}
    runs = legal = 0
    for ball in (posted.ball for posted in balls):
        for key in (ball.batter, ball.non_striker):
            # A batter who retired hurt may return.
            figures.setdefault(key, BatterFigures(position=len(figures) + 1)).out = None
        _bat(figures[ball.batter], ball)
        runs += ball.runs.total
        legal += ball.runs.is_legal
        for out in ball.outs:
            gone = figures.setdefault(out.player, BatterFigures(position=len(figures) + 1))
            gone.out, gone.out_bowler, gone.out_runs, gone.out_balls = out, ball.bowler, runs, legal
    return figures


def _bat(batter: BatterFigures, ball: Ball) -> None:
    batter.runs += ball.runs.batter
    batter.balls += not ball.runs.wides
    batter.fours += ball.boundary == 4
    batter.sixes += ball.boundary == 6


def bowling_figures(balls: Iterable[Posted]) -> dict[str, BowlerFigures]:
    figures: dict[str, BowlerFigures] = {}
    for ball in (posted.ball for posted in balls):
        bowler = figures.setdefault(ball.bowler, BowlerFigures())
        conceded = ball.runs.batter + ball.runs.wides + ball.runs.noballs
        bowler.runs += conceded
        bowler.balls += ball.runs.is_legal
        bowler.dots += ball.runs.is_legal and not conceded
        bowler.wickets += sum(out.kind in _BOWLERS_WICKETS for out in ball.outs)
    return figures


def maidens(balls: Iterable[Posted], bowler: str) -> int:
    """Return the whole overs in which the bowler gave nothing away."""
    overs: dict[int, list[Ball]] = {}
    for posted in balls:
        overs.setdefault(posted.label.over, []).append(posted.ball)
    return sum(
        len(over) >= BALLS_PER_OVER
        and all(b.bowler == bowler and not b.runs.batter + b.runs.wides + b.runs.noballs for b in over)
        for over in overs.values()
    )


def partnerships(balls: Iterable[Posted]) -> list[Partnership]:
    stands: list[Partnership] = []
    for ball in (posted.ball for posted in balls):
        pair = {ball.batter, ball.non_striker}
        if not stands or {stands[-1].first, stands[-1].second} != pair:
            stands.append(Partnership(first=ball.batter, second=ball.non_striker))
        stands[-1].runs += ball.runs.total
        stands[-1].balls += ball.runs.is_legal
    return stands
