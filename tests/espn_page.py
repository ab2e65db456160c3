"""A made-up espncricinfo page: the shape of the recorded one, with invented values."""

import json
from typing import Any

HOME, AWAY = {"id": 501, "longName": "Ashford"}, {"id": 502, "longName": "Bexley"}


def ball(id_: int, label: str, nth: int, runs: int = 0, *, innings: int = 1, **changes: Any) -> dict[str, Any]:
    over = int(label.partition(".")[0])
    return {
        "id": id_,
        "inningNumber": innings,
        "oversUnique": float(f"{over}.{nth:02d}"),
        "oversActual": float(label),
        "overNumber": over + 1,
        "ballNumber": nth,
        "totalRuns": runs,
        "batsmanRuns": runs,
        "isFour": runs == 4,
        "isSix": runs == 6,
        "isWicket": False,
        "dismissalType": None,
        "byes": 0,
        "legbyes": 0,
        "wides": 0,
        "noballs": 0,
        "penalties": 0,
        "batsmanPlayerId": 11,
        "bowlerPlayerId": 22,
        "outPlayerId": None,
        "dismissalText": None,
        **changes,
    }


def over(number: int, runs: int, total: int, wickets: int = 0, *, balls: int = 6, **changes: Any) -> dict[str, Any]:
    """Return over `number` (from 1); `balls` are those it had."""
    return {
        "overNumber": number,
        "overRuns": runs,
        "overWickets": 0,
        "isComplete": True,
        "totalBalls": (number - 1) * 6 + balls,
        "totalRuns": total,
        "totalWickets": wickets,
        "bowlers": [{"id": 22, "longName": "B Bowler"}],
        "balls": [],
        **changes,
    }


def innings(
    number: int, runs: int, wickets: int, overs: float, *all_overs: dict[str, Any], **more: Any
) -> dict[str, Any]:
    return {
        "inningNumber": number,
        "isCurrent": True,
        "team": HOME if number % 2 else AWAY,
        "runs": runs,
        "wickets": wickets,
        "overs": overs,
        "balls": 0,
        "totalOvers": 20,
        "target": 0,
        "inningOvers": list(all_overs),
        **more,
    }


def match(object_id: int = 77, **changes: Any) -> dict[str, Any]:
    return {
        "id": 9,
        "objectId": object_id,
        "stage": "RUNNING",
        "state": "LIVE",
        "status": "Live",
        "statusText": "Ashford chose to bat",
        "format": "T20",
        "liveInning": 1,
        "liveOvers": 1.02,
        "startTime": "2026-03-07T14:00:00.000Z",
        "teams": [{"team": HOME, "score": "9/0", "scoreInfo": None}, {"team": AWAY, "score": None, "scoreInfo": None}],
        **changes,
    }


def page(data: dict[str, Any]) -> bytes:
    state = {"props": {"appPageProps": {"data": data}}}
    script = f'<script id="__NEXT_DATA__" type="application/json">{json.dumps(state)}</script>'
    return f"<!DOCTYPE html><html><head><script>var a = 1;</script></head><body>{script}</body></html>".encode()


def match_page(all_innings: list[dict[str, Any]], balls: list[dict[str, Any]], **changes: Any) -> bytes:
    """Return a match's page; `balls` newest first, as the site has them."""
    content = {
        "innings": all_innings,
        "superOverInnings": [],
        "recentBallCommentary": {"ballComments": balls, "superOverBallComments": []},
        "matchPlayers": {
            "teamPlayers": [
                {"players": [{"player": {"id": 11, "longName": "A Batter"}}]},
                {"players": [{"player": {"id": 22, "longName": "B Bowler"}}]},
            ]
        },
    }
    return page({"data": {"match": match(**changes), "content": content}})


def page_in_play(all_innings: list[dict[str, Any]], balls: list[dict[str, Any]], **changes: Any) -> bytes:
    """Return a match's page as the site shows it in play: no commentary, balls and players in a summary."""
    balls = [{key: value for key, value in each.items() if key != "dismissalText"} for each in balls]
    summary = {
        "recentBalls": balls,
        "batsmen": [
            {"runs": 22, "balls": 16, "currentType": 2, "player": {"id": 12, "longName": "C Partner"}},
            {"runs": 35, "balls": 32, "currentType": 1, "player": {"id": 11, "longName": "A Batter"}},
        ],
        "bowlers": [
            {"overs": 1, "balls": 6, "conceded": 5, "wickets": 1, "currentType": 2, "player": {"id": 23}},
            {"overs": 1.4, "balls": 10, "conceded": 16, "wickets": 0, "currentType": 1, "player": {"id": 22}},
        ],
    }
    for each in summary["bowlers"]:
        each["player"]["longName"] = "Bowler"
    content = {
        "innings": all_innings,
        "superOverInnings": [],
        "matchPlayers": None,
        "supportInfo": {"liveSummary": summary, "superOverLiveSummary": None, "liveInfo": {"currentRunRate": 7.84}},
    }
    return page({"data": {"match": match(**changes), "content": content}})


def older_list_page(*matches: dict[str, Any]) -> bytes:
    """Return a list as the site embedded it until 2022."""
    data = {"view": "results", "pageData": {"series": {"id": 1}, "content": {"matches": list(matches)}}}
    state = json.dumps({"props": {"pageProps": {"seo": {}, "data": data}}, "page": "/series/SeriesResultPage"})
    script = f'<script id="__NEXT_DATA__" type="application/json" crossorigin="anonymous">{state}</script>'
    return f"<!DOCTYPE html><html><body>{script}</body></html>".encode()


def list_page(*matches: dict[str, Any]) -> bytes:
    return page({"content": {"matches": list(matches)}})
