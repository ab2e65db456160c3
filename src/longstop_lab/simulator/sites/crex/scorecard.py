"""The scorecard (sC4): one item for every innings begun, scores in balls where the live state has overs."""

from collections.abc import Sequence
from typing import Any

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Player
from longstop_lab.simulator.cricket.tally import (
    BatterFigures,
    Posted,
    ball_count,
    batting_figures,
    bowling_figures,
    maidens,
    partnerships,
    total_runs,
)
from longstop_lab.simulator.sites.crex.wire import DISMISSAL_NUMBERS

#: The site ends every batter with two rates; nothing reads them.
_RATES = "20.00-80.00"
_EXTRAS = ("byes", "legbyes", "wides", "noballs", "penalty")


def scorecard(board: Board) -> list[dict[str, Any]]:
    return [_innings(board, number) for number in range(1, board.begun + 1)]


def _innings(board: Board, number: int) -> dict[str, Any]:
    innings = board.game.innings[number - 1]
    balls, score = board.balls(number), board.score(number)
    return {
        "a": _bowlers(balls),
        "b": _batters(innings.batting.players, balls),
        "c": innings.batting.key,
        "d": f"{score.runs}/{score.wickets}({ball_count(score.overs)}",
        "e": _extras(balls, score.runs),
        "im": "",
        "p": _partnerships(balls),
        "st": "1",
        "x": "/".join(player.key for player in innings.batting.players[-2:]),
    }


def _bowlers(balls: Sequence[Posted]) -> list[str]:
    return [
        f"{key}.{bowler.runs}.{bowler.balls}.{maidens(balls, key)}.{bowler.wickets}"
        for key, bowler in bowling_figures(balls).items()
    ]


def _batters(players: Sequence[Player], balls: Sequence[Posted]) -> list[str]:
    """Return the batters: one part is yet to bat, five are batting, more are out."""
    figures = batting_figures(balls)
    return [_batter(key, batter) for key, batter in figures.items()] + [
        f"{player.key}/{_RATES}" for player in players if player.key not in figures
    ]


def _batter(key: str, batter: BatterFigures) -> str:
    text = f"{key}.{batter.runs}.{batter.balls}.{batter.fours}.{batter.sixes}"
    if batter.out is None:
        return f"{text}/{_RATES}"
    how = DISMISSAL_NUMBERS[batter.out.kind]
    return f"{text}.{batter.out_balls}.{batter.out_runs}.{how}.{batter.out_bowler}/{_RATES}/"


def _extras(balls: Sequence[Posted], total: int) -> str:
    runs = [posted.ball.runs for posted in balls]
    kinds = {kind: sum(getattr(given, kind) for given in runs) for kind in _EXTRAS}
    kinds["penalty"] += total - total_runs(balls)  # awarded without a ball
    return ".".join(map(str, kinds.values()))


def _partnerships(balls: Sequence[Posted]) -> list[str]:
    figures = batting_figures(balls)
    return [
        f"{stand.first}.{figures[stand.first].runs}.{figures[stand.first].balls}"
        f".{stand.second}.{figures[stand.second].runs}.{figures[stand.second].balls}.{stand.runs}.{stand.balls}"
        for stand in partnerships(balls)
    ]
