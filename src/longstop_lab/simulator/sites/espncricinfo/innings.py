"""The innings of a match page: batters, bowlers, overs and falls of wicket, summed up from what is published."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import BALLS_PER_OVER, Innings, Player
from longstop_lab.simulator.cricket.tally import (
    BatterFigures,
    Posted,
    ball_count,
    batting_figures,
    bowling_figures,
    maidens,
    total_runs,
)
from longstop_lab.simulator.sites.espncricinfo.balls import (
    DISMISSAL_TYPES,
    NOT_OUT,
    Counted,
    Wall,
    ball,
    bowled,
    counted,
    dismissal_text,
    dotted,
    plain,
)
from longstop_lab.simulator.sites.espncricinfo.players import player, players_by_key, team

SCHEDULED_OVERS = {"T20": 20, "ODI": 50}
#: How an innings ended; 5 is recorded, the others are this simulator's choice.
_UNDER_WAY, _ALL_OUT, _DECLARED, _ENDED = 0, 1, 2, 5
_ALL_WICKETS = 10
_EXTRAS = {"byes": "byes", "legbyes": "legbyes", "wides": "wides", "noballs": "noballs", "penalties": "penalty"}


def all_innings(board: Board, wall: Wall, *, is_super_over: bool) -> list[dict[str, Any]]:
    """Return the innings that have begun; super overs stand in a list of their own, under their running numbers."""
    return [
        _innings(board, number, wall)
        for number in range(1, board.begun + 1)
        if board.game.innings[number - 1].is_super_over is is_super_over
    ]


def _innings(board: Board, number: int, wall: Wall) -> dict[str, Any]:
    innings = board.game.innings[number - 1]
    balls, score = board.balls(number), board.score(number)
    rows, target = counted(balls), board.target(number)
    limit = scheduled_overs(board, number)
    return {
        "inningNumber": number,
        "isCurrent": number == board.current,
        "team": team(innings.batting),
        "isBatted": True,
        "runs": score.runs,
        "wickets": score.wickets,
        "lead": _lead(board, number),
        "target": target.runs if target else 0,
        "overs": dotted(score.overs.over, score.overs.ball),
        "balls": ball_count(score.overs),
        "totalOvers": limit,
        "totalBalls": limit and int(limit) * BALLS_PER_OVER,
        "minutes": None,
        **_extras(balls, score.runs),
        "event": _event(board, number),
        "ballsPerOver": BALLS_PER_OVER,
        "inningBatsmen": list(_batters(board, innings, balls)),
        "inningBowlers": list(_bowlers(board, balls)),
        "fours": sum(posted.ball.boundary == 4 for posted in balls),
        "sixes": sum(posted.ball.boundary == 6 for posted in balls),
        "inningPartnerships": [],
        "inningOvers": list(_overs(board, rows, wall)),
        "inningWickets": [],
        "inningFallOfWickets": _falls(board, balls),
        "inningDRSReviews": [],
        "inningOverGroups": [],
    }


def scheduled_overs(board: Board, number: int) -> float | None:
    """Return how many overs an innings may have; `None` where nothing limits it."""
    if board.game.innings[number - 1].is_super_over:
        return 1
    target = board.target(number)
    limit = dotted(target.overs.over, target.overs.ball) if target else 0
    return limit or SCHEDULED_OVERS.get(board.game.match_format.upper())


def _lead(board: Board, number: int) -> int:
    """Return how far the batting side is ahead, over all innings of the kind so far."""
    innings = board.game.innings
    this = innings[number - 1]
    first = (number - 1) // 2 * 2 + 1 if this.is_super_over else 1
    return sum(
        board.score(nth).runs * (1 if innings[nth - 1].batting.key == this.batting.key else -1)
        for nth in range(first, number + 1)
    )


def _event(board: Board, number: int) -> int:
    if not board.is_closed(number):
        return _UNDER_WAY
    if board.score(number).wickets == _ALL_WICKETS:
        return _ALL_OUT
    return _DECLARED if board.game.innings[number - 1].is_declared else _ENDED


def _extras(balls: Sequence[Posted], runs: int) -> dict[str, int]:
    kinds = {name: sum(getattr(posted.ball.runs, kind) for posted in balls) for name, kind in _EXTRAS.items()}
    kinds["penalties"] += runs - total_runs(balls)  # awarded without a ball
    return {"extras": sum(kinds.values()), **kinds}


def _batters(board: Board, innings: Innings, balls: Sequence[Posted]) -> Iterator[dict[str, Any]]:
    players, figures = players_by_key(board.game), batting_figures(balls)
    at_the_crease = [] if not balls or board.result else [balls[-1].ball.batter, balls[-1].ball.non_striker]
    for key, batter in figures.items():
        current = at_the_crease.index(key) + 1 if key in at_the_crease and not batter.out else None
        yield {**_batted(board, players[key], batter), "currentType": current}
    for each in innings.batting.players:
        if each.key not in figures:
            yield {**_yet_to_bat(each), "currentType": None}


def _batted(board: Board, each: Player, batter: BatterFigures) -> dict[str, Any]:
    out = batter.out
    is_out = out is not None and out.counts
    not_out = {"short": "not out", "long": "not out ", "commentary": "", "fielderText": None, "bowlerText": None}
    return {
        "playerRoleType": "P",
        "player": player(each),
        "battedType": "yes",
        "runs": batter.runs,
        "balls": batter.balls,
        "minutes": batter.balls * 2,
        "fours": batter.fours,
        "sixes": batter.sixes,
        "strikerate": plain(batter.runs * 10_000 // batter.balls / 100) if batter.balls else 0,
        "isOut": is_out,
        "dismissalType": DISMISSAL_TYPES[out.kind] if out else NOT_OUT,
        "dismissalText": dismissal_text(board, out, batter.out_bowler) if out else not_out,
        "fowRuns": batter.out_runs if is_out else None,
        "fowBalls": None,
        "fowOvers": dotted(*divmod(batter.out_balls, BALLS_PER_OVER)) if is_out else None,
    }


def _yet_to_bat(each: Player) -> dict[str, Any]:
    unknown = ("runs", "balls", "minutes", "fours", "sixes", "strikerate")
    return {
        "playerRoleType": "P",
        "player": player(each),
        "battedType": "DNB",
        **dict.fromkeys(unknown),
        "isOut": False,
        **dict.fromkeys(("dismissalType", "dismissalText", "fowRuns", "fowBalls", "fowOvers")),
    }


def _bowlers(board: Board, balls: Sequence[Posted]) -> Iterator[dict[str, Any]]:
    players = players_by_key(board.game)
    for key, bowler in bowling_figures(balls).items():
        own = [posted.ball for posted in balls if posted.ball.bowler == key]
        yield {
            "player": player(players[key]),
            "bowledType": "yes",
            **bowled(bowler),
            "maidens": maidens(balls, key),
            "economy": plain(bowler.runs * 600 // bowler.balls / 100) if bowler.balls else 0,
            "dots": bowler.dots,
            "fours": sum(ball.boundary == 4 for ball in own),
            "sixes": sum(ball.boundary == 6 for ball in own),
            "wides": sum(ball.runs.wides for ball in own),
            "noballs": sum(ball.runs.noballs for ball in own),
            "currentType": None,
        }


def _overs(board: Board, rows: Sequence[Counted], wall: Wall) -> Iterator[dict[str, Any]]:
    balls = 0
    for _, group in groupby(rows, key=lambda row: row.posted.label.over):
        over = list(group)
        # By the labels: a ball that is not shown yet was bowled all the same, and an over may be miscounted.
        balls += max(row.posted.label.ball - (not row.posted.ball.runs.is_legal) for row in over)
        yield _over(board, over, balls, wall)


def _over(board: Board, rows: list[Counted], total_balls: int, wall: Wall) -> dict[str, Any]:
    """Return an over; its balls are shown for the first over of an innings alone."""
    first, last = rows[0].posted, rows[-1]
    ended = board.over_end(first.innings, first.label.over)
    bowler = ended.bowler if ended else last.posted.ball.bowler
    return {
        "overNumber": first.label.over + 1,
        "overRuns": sum(row.posted.ball.runs.total for row in rows),
        "overWickets": sum(row.posted.ball.wickets for row in rows),
        "isComplete": ended is not None,
        "totalBalls": total_balls,
        # What the board said when the over ended; a later correction of an earlier over does not move it.
        "totalRuns": ended.score.runs if ended else last.runs,
        "totalWickets": ended.score.wickets if ended else last.wickets,
        "overRunRate": plain(last.runs * 600 // max(1, total_balls) / 100),
        "bowlers": [player(players_by_key(board.game)[bowler])],
        "predictions": {"score": last.runs + 40, "winProbability": 50},
        "balls": [ball(board, row, wall) for row in rows] if first.label.over == 0 else [],
        "events": [],
    }


def _falls(board: Board, balls: Sequence[Posted]) -> list[dict[str, Any]]:
    players = players_by_key(board.game)
    gone = [(key, batter) for key, batter in batting_figures(balls).items() if batter.out and batter.out.counts]
    return [
        {
            "dismissalBatsman": player(players[key]),
            "fowType": 1,
            "fowOrder": order,
            "fowWicketNum": order + 1,
            "fowRuns": batter.out_runs,
            "fowOvers": dotted(*divmod(batter.out_balls, BALLS_PER_OVER)),
            "fowBalls": None,
        }
        for order, (key, batter) in enumerate(sorted(gone, key=lambda pair: pair[1].out_balls))
    ]
