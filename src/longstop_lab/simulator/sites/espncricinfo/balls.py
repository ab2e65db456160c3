"""The newest balls, newest first: all that the page shows of the deliveries but for the first over."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any

from msgspec import Struct

from longstop.clock import to_iso
from longstop.sports.cricket.model import Dismissal
from longstop_lab.simulator.cricket.board import Board, PostedOver
from longstop_lab.simulator.cricket.game import BALLS_PER_OVER, Out
from longstop_lab.simulator.cricket.tally import (
    BowlerFigures,
    Posted,
    batting_figures,
    bowling_figures,
    maidens,
    total_runs,
)
from longstop_lab.simulator.sites.espncricinfo.ids import ball_number, player_number
from longstop_lab.simulator.sites.espncricinfo.players import last_name, player, players_by_key, team

#: In the commentary; the summary has as many here, although 33 are recorded: fewer are harder for the scraper.
WINDOW = 20
#: 1 to 4, 6 and 12 (not out, batters only) are recorded; 5 and those from 7 on are this simulator's choice.
DISMISSAL_TYPES = {
    Dismissal.CAUGHT: 1,
    Dismissal.BOWLED: 2,
    Dismissal.LBW: 3,
    Dismissal.RUN_OUT: 4,
    Dismissal.STUMPED: 5,
    Dismissal.HIT_WICKET: 6,
    Dismissal.OBSTRUCTING: 8,
    Dismissal.RETIRED: 11,
    Dismissal.OTHER: 13,
}
NOT_OUT = 12
#: By whether the scoreboard counts it.
_RETIRED = {True: "retired out", False: "retired hurt"}
_WITH_FIELDER = {Dismissal.CAUGHT: "c sub", Dismissal.STUMPED: "st sub", Dismissal.RUN_OUT: "run out (sub)"}
_TO_THE_BOWLER = (Dismissal.CAUGHT, Dismissal.BOWLED, Dismissal.LBW, Dismissal.STUMPED, Dismissal.HIT_WICKET)

#: When something of a match was published, on the wall clock, by seconds from the match's start.
Wall = Callable[[float], datetime]


class Counted(Struct, frozen=True):
    """A ball with what must be counted to show it: its place in the over and the score after it."""

    posted: Posted
    nth: int
    runs: int
    wickets: int


def counted(balls: Sequence[Posted]) -> list[Counted]:
    """Return the balls of an innings, numbered as they are shown now: a late ball moves those after it."""
    runs = wickets = 0
    rows = []
    for _, over in groupby(balls, key=lambda posted: posted.label.over):
        for nth, posted in enumerate(over, start=1):
            runs += posted.ball.runs.total
            wickets += posted.ball.wickets
            rows.append(Counted(posted, nth, runs, wickets))
    return rows


def recent_balls(board: Board, wall: Wall) -> dict[str, Any]:
    return {
        "ballComments": _window(board, wall, is_super_over=False),
        "superOverBallComments": _window(board, wall, is_super_over=True),
        "preComments": [],
    }


def has_commentary(board: Board) -> bool:
    """Return whether the page has commentary: in play, half of the matches show their balls in the summary only."""
    return board.result is not None or not board.begun or board.game.number % 2 == 1


def live_summary(board: Board, wall: Wall) -> dict[str, Any] | None:
    """Return the newest balls, the batters and the bowlers; `None` unless the match is in play."""
    balls = board.balls(board.current)
    if board.result or not balls:
        return None
    last, players = balls[-1].ball, players_by_key(board.game)
    batting, bowling = batting_figures(balls), bowling_figures(balls)
    others = [posted.ball.bowler for posted in balls if posted.ball.bowler != last.bowler]
    pair = (last.non_striker, last.batter) if last.runs.total % 2 else (last.batter, last.non_striker)
    is_super_over = board.game.innings[board.current - 1].is_super_over
    return {
        "recentBalls": [ball(board, row, wall) for row in islice(_newest_first(board, is_super_over), WINDOW)],
        "batsmen": [
            {
                "runs": batting[key].runs,
                "balls": batting[key].balls,
                "fours": batting[key].fours,
                "sixes": batting[key].sixes,
                "currentType": nth,
                "player": player(players[key]),
            }
            for nth, key in enumerate(pair, start=1)
        ],
        "bowlers": [
            {**bowled(bowling[key]), "currentType": nth, "player": player(players[key])}
            for nth, key in enumerate((last.bowler, *others[-1:]), start=1)
        ],
        "partnershipText": "",
        "lastBatText": "",
        "fowText": "",
    }


def _window(board: Board, wall: Wall, *, is_super_over: bool) -> list[dict[str, Any]]:
    return [_comment(board, row, wall) for row in islice(_newest_first(board, is_super_over), WINDOW)]


def _newest_first(board: Board, is_super_over: bool) -> Iterator[Counted]:
    for number in range(board.begun, 0, -1):
        if board.game.innings[number - 1].is_super_over is is_super_over:
            yield from reversed(counted(board.balls(number)))


def ball(board: Board, row: Counted, wall: Wall) -> dict[str, Any]:
    """Return what is the same wherever a ball is shown."""
    posted, runs = row.posted, row.posted.ball.runs
    out = posted.ball.outs[0] if posted.ball.outs else None
    shown_at, changed_at = board.moments[posted.id]
    number = ball_number(posted.id)
    return {
        "_uid": number,
        "id": number,
        "inningNumber": posted.innings,
        "ballsActual": None,
        "ballsUnique": None,
        "oversUnique": overs_unique(posted.label.over, row.nth),
        "oversActual": overs_actual(posted),
        "overNumber": posted.label.over + 1,
        "ballNumber": row.nth,
        "totalRuns": runs.total,
        "batsmanRuns": runs.batter,
        "isFour": posted.ball.boundary == 4,
        "isSix": posted.ball.boundary == 6,
        "isWicket": out is not None,
        "dismissalType": DISMISSAL_TYPES[out.kind] if out else None,
        "byes": runs.byes,
        "legbyes": runs.legbyes,
        "wides": runs.wides,
        "noballs": runs.noballs,
        "penalties": runs.penalty,
        "wagonX": number * 37 % 360,
        "wagonY": number * 53 % 360,
        "wagonZone": number % 8 + 1,
        "pitchLine": "ON_THE_STUMPS",
        "pitchLength": "GOOD_LENGTH",
        "shotType": "ON_DRIVE",
        "shotControl": number % 2 + 1,
        # Bowled two or three seconds before it is shown; a correction moves only the second moment.
        "timestamp": _iso(wall(shown_at) - timedelta(seconds=2 + number % 2)),
        "modified": _iso(wall(changed_at)),
        "batsmanPlayerId": player_number(posted.ball.batter),
        "nonStrikerPlayerId": player_number(posted.ball.non_striker),
        "bowlerPlayerId": player_number(posted.ball.bowler),
        "outPlayerId": player_number(out.player) if out else None,
        "totalInningRuns": row.runs,
        "totalInningWickets": row.wickets,
        "predictions": {"score": row.runs + 40, "winProbability": number % 100},
    }


def _comment(board: Board, row: Counted, wall: Wall) -> dict[str, Any]:
    posted = row.posted
    out = posted.ball.outs[0] if posted.ball.outs else None
    bowler, batter = (last_name(board.names[key]) for key in (posted.ball.bowler, posted.ball.batter))
    return {
        **ball(board, row, wall),
        "title": f"{bowler} to {batter}",
        # Only the first wicket of a ball has room here.
        "dismissalText": dismissal_text(board, out, posted.ball.bowler) if out else None,
        "commentPreTextItems": None,
        "commentTextItems": [
            {"type": "HTML", "html": f"<strong>{posted.ball.runs.total} run</strong>, says the book."}
        ],
        "commentPostTextItems": None,
        "commentVideos": [],
        "commentImages": [],
        "events": [],
        "over": _over_end(board, row),
        "batsmanStatText": None,
        "bowlerStatText": None,
        "smartStats": [],
    }


def dismissal_text(board: Board, out: Out, bowler: str) -> dict[str, Any]:
    words = _RETIRED[out.counts] if out.kind is Dismissal.RETIRED else out.kind.value
    fielder = _WITH_FIELDER.get(out.kind)
    by = f"b {last_name(board.names[bowler])}" if out.kind in _TO_THE_BOWLER else None
    how = "" if out.kind is Dismissal.BOWLED else fielder or words
    long = f"{how} {by}" if by else how
    return {
        "short": words,
        "long": long,
        "commentary": f"{board.names[out.player]} {long.strip()}",
        "fielderText": fielder,
        "bowlerText": by,
    }


def _over_end(board: Board, row: Counted) -> dict[str, Any] | None:
    """Return the over's summary, which hangs on its last ball once the over has ended."""
    posted = row.posted
    ended = board.over_end(posted.innings, posted.label.over)
    over = board.over_balls(posted.innings, posted.label.over)
    return _summary(board, ended, over) if ended and over[-1].id == posted.id else None


def _summary(board: Board, ended: PostedOver, over: list[Posted]) -> dict[str, Any]:
    innings = board.game.innings[ended.innings - 1]
    until_then = [posted for posted in board.balls(ended.innings) if posted.id < ended.id]
    players, batting, bowling = players_by_key(board.game), batting_figures(until_then), bowling_figures(until_then)
    last = over[-1].ball
    return {
        "team": team(innings.batting),
        "inningNumber": ended.innings,
        "overNumber": ended.over + 1,
        "overRuns": total_runs(over),
        "overWickets": sum(posted.ball.wickets for posted in over),
        "totalRuns": ended.score.runs,
        "totalWickets": ended.score.wickets,
        "target": innings.target.runs if innings.target else 0,
        "isMaiden": maidens(over, ended.bowler) == 1,
        "isComplete": True,
        "isSuperOver": innings.is_super_over,
        "overEndBatsmen": [
            {
                "player": player(players[key]),
                "runs": batting[key].runs,
                "balls": batting[key].balls,
                "fours": batting[key].fours,
                "sixes": batting[key].sixes,
            }
            for key in (last.batter, last.non_striker)
        ],
        "overEndBowlers": [
            {"player": player(players[ended.bowler]), **bowled(bowling[ended.bowler]), "currentType": 1}
        ],
        "rollover": None,
    }


def bowled(figures: BowlerFigures) -> dict[str, Any]:
    return {
        "overs": dotted(*divmod(figures.balls, BALLS_PER_OVER)),
        "balls": figures.balls,
        "conceded": figures.runs,
        "wickets": figures.wickets,
    }


def overs_unique(over: int, nth: int) -> float:
    """Return the trap: the nth delivery as two decimals, so that the tenth of the first over reads 0.1."""
    return plain(round(over + nth / 100, 2))


def overs_actual(posted: Posted) -> float:
    """Return the label as a float; it repeats on wides and no-balls."""
    return dotted(posted.label.over, posted.label.ball)


def dotted(over: int, ball_of_over: int) -> float:
    return plain(round(over + ball_of_over / 10, 1))


def plain(number: float) -> float:
    """Return a whole number without its `.0`, as JavaScript writes it."""
    return int(number) if number == int(number) else number


def _iso(moment: datetime) -> str:
    """Write a moment in whole seconds, as the page does."""
    return to_iso(moment.replace(microsecond=0))
