"""The compact live state (sV3) and the listing's entry: single letters, strings in strings, much of it noise."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from longstop.sports.cricket.model import InningsScore
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.tally import (
    BowlerFigures,
    Posted,
    batting_figures,
    bowling_figures,
    partnerships,
)
from longstop_lab.simulator.sites.crex.noise import odds, trimmings
from longstop_lab.simulator.sites.crex.wire import DISMISSAL_NUMBERS, short_value

_OVERS_SHOWN = 4
_EARLIER_OVERS_SHOWN = 2
#: What the site blanks while there is no play.
_PLAY_FIELDS = ("A", "b", "c", "d", "l", "m", "n", "p", "q", "r", "s", "t", "x", "y", "z")


def list_entry(board: Board, start_at: datetime, tick: int) -> dict[str, Any]:
    """Return what the live list says of a match; `tick` moves the odds while nothing happens in play."""
    number = board.current
    innings = board.innings(number)
    first = (number - 1) // 2 * 2 + 1
    # The order of the fixture, which does not say who bats: in half of the matches the side that bats first is second.
    sides = board.game.sides if board.game.number % 2 else board.game.sides[::-1]
    batting = innings.batting if innings else board.game.sides[0]
    entry = {
        "a": ".".join(side.key for side in sides),
        "B": board.headline,
        "j": _unclosed(board.score(first)),
        "k": _unclosed(board.score(first + 1)),
        "fo": board.game.match_format,
        "mt": int(start_at.timestamp() * 1000),
        "mn": str(board.game.number),
        "F": f"^{batting.key}",
        "R": odds(board.game.key, tick)["R"],
        "st": "1",
    }
    if target := board.target(number):
        entry["tg"] = f"{target.runs}({target.overs}"
    return entry


def live_state(board: Board, start_at: datetime, tick: int) -> dict[str, Any]:
    """Return the whole compact state."""
    state = {**trimmings(board.game), **list_entry(board, start_at, tick), **odds(board.game.key, tick)}
    play: dict[str, Any] = dict.fromkeys(_PLAY_FIELDS, "")
    balls = board.balls(board.current)
    if balls and not board.is_break:
        play |= _play(board, balls)
    return {**state, **play, "rb": [] if board.is_break else _recent_overs(board, balls)}


def _play(board: Board, balls: Sequence[Posted]) -> dict[str, str]:
    overs = [(over, list(group)) for over, group in groupby(balls, key=lambda posted: posted.label.over)]
    over, current = overs[-1]
    is_between = board.over_end(board.current, over) is not None
    complete = overs if is_between else overs[:-1]
    return {
        "A": "" if is_between else _row(current),
        **_slots(complete),
        **_batters(balls),
        **_bowlers(balls),
        "d": "|".join(_row(group) for group in _earlier_overs(overs)),
        "x": _last_wicket(balls),
    }


def _slots(complete: list[tuple[int, list[Posted]]]) -> dict[str, str]:
    """Return the three last complete overs; the number decides the slot, so they rotate and are not in order."""
    slots = {"l": "", "m": "", "n": ""}
    for over, group in complete[-3:]:
        slots["nlm"[(over + 1) % 3]] = f"{over + 1}:{_row(group)}"
    return slots


def _earlier_overs(overs: list[tuple[int, list[Posted]]]) -> list[list[Posted]]:
    """Return overs that the current bowler bowled before: read as overs of the innings they make ghosts."""
    bowler = overs[-1][1][-1].ball.bowler
    return [group for _, group in overs[:-1] if group[-1].ball.bowler == bowler][:_EARLIER_OVERS_SHOWN]


def _batters(balls: Sequence[Posted]) -> dict[str, str]:
    last = balls[-1].ball
    figures = batting_figures(balls)
    stand = partnerships(balls)[-1]
    # The later batter comes first.
    one, two = sorted((last.batter, last.non_striker), key=lambda key: -figures[key].position)
    on_strike = last.non_striker if last.runs.total % 2 else last.batter
    fields = {"p": f"{one}.{two}"}
    for key, score, more in ((one, "q", "r"), (two, "s", "t")):
        batter = figures[key]
        fields[score] = f"{batter.runs}.{batter.balls}{'*' if key == on_strike else ''}"
        fields[more] = f"{batter.fours}.{batter.sixes}.{batter.position}.{stand.runs}"
    return fields


def _bowlers(balls: Sequence[Posted]) -> dict[str, str]:
    """Return the bowler twice: `c` says runs before balls, `y` and `z` balls before runs."""
    figures = bowling_figures(balls)
    current = balls[-1].ball.bowler
    others = [posted.ball.bowler for posted in balls if posted.ball.bowler != current]
    bowler = figures[current]
    return {
        "b": current,
        "c": f"{bowler.runs}.{bowler.balls}.{bowler.wickets}.{bowler.dots}",
        "y": _figures(others[-1], figures) if others else "",
        "z": _figures(current, figures),
    }


def _figures(key: str, figures: dict[str, BowlerFigures]) -> str:
    bowler = figures[key]
    return f"{key}.{bowler.balls}.{bowler.runs}.{bowler.wickets}"


def _last_wicket(balls: Sequence[Posted]) -> str:
    gone = [(key, batter) for key, batter in batting_figures(balls).items() if batter.out]
    if not gone:
        return ""
    key, batter = max(gone, key=lambda pair: pair[1].out_balls)
    how = DISMISSAL_NUMBERS[batter.out.kind] if batter.out else 0
    return f"{key}.{batter.runs}.{batter.balls}.{batter.out_runs}.{batter.out_balls}.0.{how}"


def _recent_overs(board: Board, balls: Sequence[Posted]) -> list[dict[str, Any]]:
    overs = [list(group) for _, group in groupby(balls, key=lambda posted: posted.label.over)]
    shown = overs[-_OVERS_SHOWN:]
    before = [overs[-_OVERS_SHOWN - 1] if len(overs) > _OVERS_SHOWN else None, *shown]
    return [_recent_over(board, over, earlier) for over, earlier in zip(shown, before, strict=False)]


def _recent_over(board: Board, over: list[Posted], earlier: list[Posted] | None) -> dict[str, Any]:
    first = over[0]
    number = board.current
    score = board.score(number)
    ended = board.over_end(number, first.label.over)
    bowlers = [posted.ball.bowler for posted in over]
    # The site is a ball late in seeing that the bowler has changed, though not in every over.
    if earlier and first.label.over % 3 != 2:
        bowlers[0] = earlier[-1].ball.bowler
    innings = board.innings(number)
    return {
        "b": [_recent_ball(posted, bowler) for posted, bowler in zip(over, bowlers, strict=True)],
        "bt": innings.batting.key if innings else "",
        "i": number - 1,
        "o": first.label.over + 1,
        "r": sum(posted.ball.runs.total for posted in over),
        "ts": f"{ended.score.runs}/{ended.score.wickets}" if ended else f"{score.runs}/{score.wickets}",
    }


def _recent_ball(posted: Posted, bowler: str) -> dict[str, Any]:
    ball = posted.ball
    kind = 1 if ball.outs else 2 if ball.boundary else 0
    return {"bf": bowler, "d": posted.label.ball, "t": kind, "u": short_value(ball, wicket="w")}


def _row(balls: Sequence[Posted]) -> str:
    return ".".join(short_value(posted.ball, wicket="W") for posted in balls)


def _unclosed(score: InningsScore) -> str:
    """Write a score as the site does: the parenthesis is never closed."""
    return f"{score.runs}/{score.wickets}({score.overs}"
