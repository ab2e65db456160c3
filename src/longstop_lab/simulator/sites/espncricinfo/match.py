"""The `match` object, the same in the list and on the match's own page."""

import re
from datetime import datetime
from typing import Any

from longstop.clock import to_iso
from longstop.sports.cricket.model import ResultKind
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import BALLS_PER_OVER, Side
from longstop_lab.simulator.cricket.tally import ball_count
from longstop_lab.simulator.sites.espncricinfo.balls import overs_unique
from longstop_lab.simulator.sites.espncricinfo.ids import inner_match_number, match_number, team_number
from longstop_lab.simulator.sites.espncricinfo.innings import SCHEDULED_OVERS, scheduled_overs
from longstop_lab.simulator.sites.espncricinfo.players import slug, team

_ALL_WICKETS = 10
_STATUS = {
    ResultKind.WON: "RESULT",
    ResultKind.TIE: "RESULT",
    ResultKind.DRAW: "RESULT",
    ResultKind.NO_RESULT: "No result",
    ResultKind.ABANDONED: "Abandoned",
    ResultKind.CANCELLED: "Cancelled",
    ResultKind.WALKOVER: "RESULT",
}
#: Only the key of a win by runs is recorded.
_LANG_KEYS = {
    ResultKind.TIE: "match_status_text_tied",
    ResultKind.DRAW: "match_status_text_drawn",
    ResultKind.NO_RESULT: "match_status_text_no_result",
    ResultKind.ABANDONED: "match_status_text_abandoned",
    ResultKind.CANCELLED: "match_status_text_cancelled",
    ResultKind.WALKOVER: "match_status_text_walkover",
}
_MARGIN = re.compile(r"by (?:an innings and )?(\d+) (run|wicket)")


def match_object(board: Board, start_at: datetime) -> dict[str, Any]:
    """Return the match as it stands, all but `generatedAt`."""
    game = board.game
    stage, state = _stage(board)
    status, text = _status(board)
    innings = board.game.innings[board.current - 1] if board.begun else None
    return {
        "_uid": inner_match_number(game.key),
        "id": inner_match_number(game.key),
        "objectId": match_number(game.key),
        "scribeId": match_number(game.key),
        "slug": f"{slug(game.sides[0].name)}-vs-{slug(game.sides[1].name)}-match-{game.number}",
        "stage": stage,
        "state": state,
        "season": str(start_at.year),
        "title": f"Match {game.number}",
        "startDate": f"{start_at:%Y-%m-%d}T00:00:00.000Z",
        "startTime": to_iso(start_at),
        "timePublished": True,
        "isCancelled": bool(board.result and board.result.outcome is ResultKind.CANCELLED),
        "coverage": "Y",
        "status": status,
        "statusText": text,
        "statusEng": status,
        "statusData": _status_data(board),
        "winnerTeamId": _winner(board),
        "tossWinnerTeamId": team_number(game.sides[0].key),
        "tossWinnerChoice": 1,
        "tiebreakerTeamId": _tiebreaker(board),
        "liveInning": board.current if board.begun else None,
        "liveInningPredictions": None,
        **_live_overs(board),
        "liveRecentBalls": None,
        "livePlayers": None,
        "ballsPerOver": BALLS_PER_OVER,
        "series": _series(board, start_at),
        "teams": [_team(board, side) for side in game.sides],
        "dayType": "MULTI" if game.match_format.upper() == "TEST" else "SINGLE",
        "format": game.match_format.upper(),
        "scheduledOvers": SCHEDULED_OVERS.get(game.match_format.upper()),
        "isSuperOver": bool(innings and innings.is_super_over),
        "hasFollowon": _has_follow_on(board),
        "hasCommentary": bool(board.begun),
        "hasScorecard": bool(board.begun),
        "languages": ["en"],
        "ballByBallSource": "feedback",
        "liveDay": 1,
        "liveSession": 1,
    }


def stamped(match: bytes, now: datetime) -> bytes:
    """Return an encoded match with the server's clock in it: the one field that moves while nothing happens."""
    return match[:-1] + f',"generatedAt":"{to_iso(now)}"}}'.encode()


def series_address(board: Board) -> str:
    """Return the part of an address that names the series."""
    return f"simulated-series-{1_300_000 + board.game.number}"


def _series(board: Board, start_at: datetime) -> dict[str, Any]:
    name, _, number = series_address(board).rpartition("-")
    return {
        "id": int(number) - 1_200_000,
        "objectId": int(number),
        "slug": name,
        "name": "Simulated Series",
        "longName": "The Simulated Series",
        "year": start_at.year,
        "season": str(start_at.year),
    }


def _stage(board: Board) -> tuple[str, str]:
    if board.result:
        return "FINISHED", "POST"
    return ("RUNNING", "LIVE") if board.begun else ("SCHEDULED", "PRE")


def _status(board: Board) -> tuple[str, str]:
    """Return the state of play as a keyword and as a sentence."""
    if board.result:
        return _STATUS[board.result.outcome], board.result.text
    if not board.begun:
        # Rain may delay a match that has not started.
        return (board.headline.capitalize() or "Not started"), (board.headline or "Match yet to begin")
    if board.is_break:
        return board.headline.capitalize(), board.headline
    return "Live", _need(board)


def _need(board: Board) -> str:
    batting, target = board.game.innings[board.current - 1].batting, board.target(board.current)
    if target is None:
        return f"{batting.name} chose to bat."
    missing = max(0, target.runs - board.score(board.current).runs)
    return f"{batting.name} need {missing} runs."


def _status_data(board: Board) -> dict[str, Any]:
    runs, wickets, key = _margin(board)
    batting = board.game.innings[board.current - 1].batting if board.begun else None
    unsaid = ("day", "session", "crr", "rrr", "rpb", "rrpb", "requiredRuns", "remainingBalls", "remainingOvers")
    return {
        "statusTextLangKey": key,
        "statusTextLangData": {
            "firstBattingTeamId": team_number(board.game.sides[0].key),
            "tossWinnerTeamId": team_number(board.game.sides[0].key),
            "tiebreakerTeamId": _tiebreaker(board),
            "winnerTeamId": _winner(board),
            "currentBattingTeamId": team_number(batting.key) if batting else None,
            "wonByRuns": runs,
            "wonByWickets": wickets,
            "wonByBalls": 0,
            **dict.fromkeys(unsaid),
            **dict.fromkeys(("leadRuns", "trailRuns", "amountType", "rainRuleType")),
        },
    }


def _margin(board: Board) -> tuple[int | None, int | None, str]:
    """Return runs, wickets and the key that says which counts: the other one is whatever the sum gives."""
    if board.result is None:
        return None, None, "match_status_text_live" if board.begun else "match_status_text_not_started"
    said = _MARGIN.search(board.result.text)
    if board.result.outcome is not ResultKind.WON or said is None:
        return 0, 0, _LANG_KEYS.get(board.result.outcome, "match_status_text_won")
    if said[2] == "run":
        return int(said[1]), _ALL_WICKETS - board.score(board.current).wickets, "match_status_text_won_runs"
    return 1, int(said[1]), "match_status_text_won_wickets"


def _winner(board: Board) -> int | None:
    return _named(board, ResultKind.WON, "{} won")


def _tiebreaker(board: Board) -> int | None:
    return _named(board, ResultKind.TIE, "({} won")


def _named(board: Board, outcome: ResultKind, words: str) -> int | None:
    if board.result is None or board.result.outcome is not outcome:
        return None
    named = [side for side in board.game.sides if words.format(side.name) in board.result.text]
    # One team's name may be the end of the other's.
    return team_number(max(named, key=lambda side: len(side.name)).key) if named else None


def _live_overs(board: Board) -> dict[str, Any]:
    """Return the place of the last ball, and a count of balls that does not quite agree with it."""
    shown = board.balls(board.current) if board.begun else []
    if not shown:
        return {"liveOvers": None, "liveOversPending": None, "liveBalls": None}
    balls, over = ball_count(board.score(board.current).overs), shown[-1].label.over
    return {
        "liveOvers": overs_unique(over, len(board.over_balls(board.current, over))),
        "liveOversPending": None,
        "liveBalls": balls - balls // 24,
    }


def _team(board: Board, side: Side) -> dict[str, Any]:
    numbers = [
        number
        for number, innings in enumerate(board.game.innings[: board.begun], start=1)
        if innings.batting.key == side.key and not innings.is_super_over
    ]
    is_batting = bool(board.begun) and board.game.innings[board.current - 1].batting.key == side.key
    return {
        "team": team(side),
        "isHome": side is board.game.sides[1],
        "isLive": is_batting and board.result is None and not board.is_closed(board.current),
        "score": " & ".join(_score(board, number) for number in numbers) or None,
        "scoreInfo": _score_info(board, numbers[-1]) if numbers else None,
        "inningNumbers": numbers,
        "sidePlayers": len(side.players),
        "sideBatsmen": len(side.players),
        "sideFielders": len(side.players),
        "teamOdds": None,
    }


def _score(board: Board, number: int) -> str:
    score = board.score(number)
    if score.wickets == _ALL_WICKETS:
        return str(score.runs)
    is_declared = board.is_closed(number) and board.game.innings[number - 1].is_declared
    return f"{score.runs}/{score.wickets}{'d' if is_declared else ''}"


def _score_info(board: Board, number: int) -> str | None:
    """Return overs and target of the innings under way or last played; a side that is done shows none."""
    last = max((n for n in range(1, board.begun + 1) if not board.game.innings[n - 1].is_super_over), default=0)
    if number != last or (board.is_closed(number) and board.result is None):
        return None
    overs, limit, target = board.score(number).overs, scheduled_overs(board, number), board.target(number)
    played = str(overs.over) if not overs.ball else str(overs)
    share = played if limit in (None, overs.over) else f"{played}/{limit}"
    return f"{share} ov, T:{target.runs}" if target else f"{share} ov"


def _has_follow_on(board: Board) -> bool:
    """Return whether the side that batted second had to bat again at once."""
    innings = board.game.innings[: board.begun]
    return len(innings) > 2 and not innings[2].is_super_over and innings[2].batting.key == innings[1].batting.key
