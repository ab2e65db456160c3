"""The ball feed: every item newest first, ten a page."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from longstop_lab.simulator.cricket.board import Board, PostedOver
from longstop_lab.simulator.cricket.game import BALLS_PER_OVER
from longstop_lab.simulator.cricket.script import FIRST_ID, Remark
from longstop_lab.simulator.cricket.tally import (
    BatterFigures,
    BowlerFigures,
    Posted,
    batting_figures,
    bowling_figures,
    total_runs,
)
from longstop_lab.simulator.sites.crex.wire import DISMISSAL_NUMBERS, ball_value, flag_value, short_value

PAGE_SIZE = 10
_FILLER = "NA"
_OVER_FLAG = 32
_WICKET_FLAG = 64


class BallFeed:
    """The feed of one match; what did not change is not rendered again: a Test match has hundreds of pages."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._ids: list[int] = []
        self._version = -1
        self._overs: dict[int, dict[str, Any]] = {}
        self._rewrites = 0

    def page(self, before: int | None) -> list[dict[str, Any]]:
        """Return the page of items older than `before`, or the newest one; an empty page is the end."""
        self._catch_up()
        end = len(self._ids) if before is None else bisect_left(self._ids, before)
        return [self._item(id_) for id_ in reversed(self._ids[max(0, end - PAGE_SIZE) : end])]

    def _catch_up(self) -> None:
        if self._version != self._board.version:
            self._version = self._board.version
            self._ids = sorted(_ids(self._board))
        if self._rewrites != self._board.rewrites:
            self._rewrites = self._board.rewrites
            self._overs.clear()

    def _item(self, id_: int) -> dict[str, Any]:
        board = self._board
        if id_ in board.balls_posted:
            return _ball(board, board.balls_posted[id_])
        if id_ in board.overs_posted:
            if id_ not in self._overs:
                self._overs[id_] = _over(board, board.overs_posted[id_])
            return self._overs[id_]
        if id_ in board.remarks:
            return _remark(board, board.remarks[id_])
        return _wicket(board, id_)


def _ids(board: Board) -> Iterator[int]:
    yield from board.overs_posted
    yield from board.remarks
    for posted in board.balls_posted.values():
        yield from range(posted.id, posted.id + 1 + len(posted.ball.outs))


def _ball(board: Board, posted: Posted) -> dict[str, Any]:
    innings = board.game.innings[posted.innings - 1]
    return {
        "b": ball_value(posted.ball.runs),
        "ball_db_id": _db_id(board, posted.id),
        "bat_team_fkey": innings.batting.key,
        "bf": posted.ball.bowler,
        "c1": _who(board, posted),
        "c2": "",
        "connect": _FILLER,
        "delivery": _place(posted.id) + 1,
        "fv": flag_value(posted.ball),
        "id": posted.id,
        "inning": posted.innings - 1,
        "is_catch_drop": False,
        "mfkey": board.game.key,
        "o": str(posted.label),
        "on": posted.label.over,
        "pf": posted.ball.batter,
        "s": posted.score,
        "sh": 1,
        "shot_type": _FILLER,
        "type": "b",
        "wagon_w": _FILLER,
    }


def _wicket(board: Board, id_: int) -> dict[str, Any]:
    ball_id = next(id_ - nth for nth in range(1, 12) if id_ - nth in board.balls_posted)
    posted = board.balls_posted[ball_id]
    out = posted.ball.outs[id_ - ball_id - 1]
    return {
        "ball_db_id": _db_id(board, ball_id),
        "bf": posted.ball.bowler,
        "c1": _who(board, posted),
        "c2": f"{board.names[out.player]} is gone.",
        "dismissal": DISMISSAL_NUMBERS[out.kind],
        "fv": _WICKET_FLAG,
        "id": id_,
        "inning": posted.innings - 1,
        "mfkey": board.game.key,
        "o": str(posted.label),
        "on": posted.label.over,
        "pf_out": out.player,
        "player": board.names[out.player],
        "s": posted.score,
        "type": "w",
    }


def _over(board: Board, ended: PostedOver) -> dict[str, Any]:
    """Return an over's end: everything as it is now, but the score as it was first shown."""
    until_then = [posted for posted in board.balls(ended.innings) if posted.id < ended.id]
    balls = [posted for posted in until_then if posted.label.over == ended.over]
    side = board.game.innings[ended.innings - 1].batting
    batting, bowling = batting_figures(until_then), bowling_figures(until_then)
    last = balls[-1].ball
    return {
        "bd": _bowled(bowling[ended.bowler]),
        "bf": ended.bowler,
        "bowler": board.names[ended.bowler],
        "fv": _OVER_FLAG,
        "id": ended.id,
        "inning": ended.innings - 1,
        "mfkey": board.game.key,
        "o": ended.over + 1,
        "on": ended.over,
        "p1": board.names[last.batter],
        "p2": board.names[last.non_striker],
        "pf1": last.batter,
        "pf2": last.non_striker,
        "rb": ".".join(short_value(posted.ball, wicket="W") for posted in balls),
        "runs": total_runs(balls),
        "s": f"{ended.score.runs}/{ended.score.wickets}",
        "s1": _batted(batting[last.batter]),
        "s2": _batted(batting[last.non_striker]),
        "sh": 1,
        "team": side.name,
        "tfkey": side.key,
        "type": "o",
    }


def _bowled(bowler: BowlerFigures) -> str:
    over, ball = divmod(bowler.balls, BALLS_PER_OVER)
    return f"{bowler.wickets}-{bowler.runs}({over}.{ball})"


def _batted(batter: BatterFigures) -> str:
    return f"{batter.runs}({batter.balls})"


def _remark(board: Board, remark: Remark) -> dict[str, Any]:
    return {
        "c1": "",
        "c2": remark.text,
        "fv": 1,
        "id": remark.id,
        "inning": remark.innings - 1,
        "mfkey": board.game.key,
        "sh": 1,
        "type": "t",
    }


def _who(board: Board, posted: Posted) -> str:
    return f"{_short(board.names[posted.ball.bowler])} to {_short(board.names[posted.ball.batter])}"


def _short(name: str) -> str:
    first, _, last = name.partition(" ")
    return f"{first[0]} {last}" if last else name


def _db_id(board: Board, ball_id: int) -> str:
    return f"{board.game.number}-{_place(ball_id)}"


def _place(id_: int) -> int:
    return (id_ - FIRST_ID) // 1000
