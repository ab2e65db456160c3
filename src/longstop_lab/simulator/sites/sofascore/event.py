"""The `event` object: what list and single call say of a match."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.model import (
    AWAY,
    HOME,
    CardTruth,
    FootballResultTruth,
    GoalTruth,
    KickTruth,
    PeriodTruth,
    StatusTruth,
)
from longstop_lab.simulator.football.world import FootballWorld
from longstop_lab.simulator.sites.sofascore.players import custom_id, match_slug, team_object
from longstop_lab.simulator.sites.sofascore.statuses import PARTS, has_begun, is_over, status_of
from longstop_lab.simulator.sites.sofascore.traits import traits_of

_WINNERS = {HOME: 1, AWAY: 2, "draw": 3}
_PERIOD_FIELDS = {"1st half": "period1", "2nd half": "period2", "1st extra": "extra1", "2nd extra": "extra2"}
_NORMAL, _EXTRA = ("period1", "period2"), ("extra1", "extra2")


def list_event(world: FootballWorld, key: str) -> dict[str, Any]:
    """Return a match as it stands in a list."""
    board, traits = world.boards[key], traits_of(key)
    match = board.match
    return {
        "tournament": _tournament(match.is_cup),
        **({} if traits.is_friendly else _season(match.is_cup)),
        "customId": custom_id(match),
        "status": msgspec.to_builtins(status_of(board, is_low_coverage=traits.is_low_coverage)),
        **_winner(board),
        "homeTeam": team_object(match.home, traits, world.tick),
        "awayTeam": team_object(match.away, traits, world.tick),
        "homeScore": _score(board, HOME),
        "awayScore": _score(board, AWAY),
        **_red_cards(board),
        "time": _time(world, key),
        "changes": _changes(world, key),
        "hasGlobalHighlights": False,
        "hasEventPlayerStatistics": not traits.is_low_coverage,
        "hasEventPlayerHeatMap": not traits.is_low_coverage,
        "detailId": 1,
        "crowdsourcingDataDisplayEnabled": False,
        "id": int(key),
        "slug": match_slug(match, traits),
        "startTimestamp": int(planned_start(world, key).timestamp()),
        "finalResultOnly": False,
        "feedLocked": is_over(board),
        "isEditor": False,
        "eventState": {},
        "eventFilters": {"category": ["club"], "level": ["pro"], "gender": ["M"]},
        "correctAiInsight": True,
        "correctHalftimeAiInsight": True,
    }


def single_event(world: FootballWorld, key: str) -> dict[str, Any]:
    """Return a match as its own call gives it: the list's object and more."""
    traits = traits_of(key)
    return {
        **list_event(world, key),
        "defaultPeriodCount": 2,
        "defaultPeriodLength": 45,
        "defaultOvertimeLength": 15,
        "varInProgress": _var_in_progress(world, key),
        **({"coverage": -1} if traits.is_low_coverage else {"hasXg": True}),
    }


def planned_start(world: FootballWorld, key: str) -> datetime:
    """Return the kick-off that the site shows now; a postponed match keeps its old one."""
    shown = world.boards[key].live.get("status")
    return world.moment(key, shown.shift_seconds if isinstance(shown, StatusTruth) else 0.0)


def _tournament(is_cup: bool) -> dict[str, Any]:
    name = "Lantern Cup" if is_cup else "Harbour League"
    number = 9001 if is_cup else 9000
    category = {"name": "Anywhere", "slug": "anywhere", "sport": {"name": "Football", "slug": "football", "id": 1}}
    return {
        "name": name,
        "slug": name.lower().replace(" ", "-"),
        "category": {**category, "id": 990, "country": {}, "flag": "anywhere"},
        "uniqueTournament": {"name": name, "id": number, "userCount": 4000, "hasEventPlayerStatistics": True},
        "priority": 500,
        "isLive": False,
        "id": number + 100,
    }


def _season(is_cup: bool) -> dict[str, Any]:
    season = {"name": "Season 26/27", "year": "26/27", "editor": False, "seasonCoverageInfo": {}, "id": 77_000}
    cup_round = {"round": 5, "name": "Round of 16", "slug": "round-of-16", "cupRoundType": 8}
    return {"season": season, "roundInfo": cup_round if is_cup else {"round": 14}}


def _winner(board: FootballBoard) -> dict[str, Any]:
    result = board.live.get("result")
    code = _WINNERS.get(result.outcome) if isinstance(result, FootballResultTruth) else None
    return {} if code is None else {"winnerCode": code}


def _red_cards(board: FootballBoard) -> dict[str, int]:
    sent_off = [shown.side for shown in board.live.values() if isinstance(shown, CardTruth) and shown.card != "yellow"]
    counts = {"homeRedCards": sent_off.count(HOME), "awayRedCards": sent_off.count(AWAY)}
    return {name: count for name, count in counts.items() if count}


def _score(board: FootballBoard, side: str) -> dict[str, int]:
    """Return a side's goals by part; nothing at all before the kick-off. `current` counts a shoot-out in."""
    if not has_begun(board):
        return {}
    goals = sum(isinstance(shown, GoalTruth) and shown.side == side for shown in board.live.values())
    parts = _by_part(board, side, goals)
    kicks = [shown for shown in board.live.values() if isinstance(shown, KickTruth)]
    scored = sum(kick.is_scored and kick.side == side for kick in kicks)
    score = {"current": goals + scored, "display": goals, **{name: parts[name] for name in _NORMAL if name in parts}}
    if "period2" in parts:
        score["normaltime"] = sum(parts[name] for name in _NORMAL)
    if "extra1" in parts:
        score |= {name: parts[name] for name in _EXTRA if name in parts}
        score["overtime"] = sum(parts.get(name, 0) for name in _EXTRA)
    return {**score, "penalties": scored} if kicks else score


def _by_part(board: FootballBoard, side: str, goals: int) -> Mapping[str, int]:
    parts, before = {}, 0
    for status, name in _PERIOD_FIELDS.items():
        if status not in board.since:
            continue
        ended = board.live.get(f"period-{PARTS[status][2]}")
        after = getattr(ended, side) if isinstance(ended, PeriodTruth) else goals
        parts[name], before = after - before, after
    return parts


def _time(world: FootballWorld, key: str) -> dict[str, int]:
    board = world.boards[key]
    if not has_begun(board):
        return {}
    played = [status for status in PARTS if status in board.since]
    halves = (board.live.get("period-HT"), board.live.get("period-FT"))
    time = {f"injuryTime{nth}": half.added for nth, half in enumerate(halves, 1) if isinstance(half, PeriodTruth)}
    time["currentPeriodStartTimestamp"] = _stamp(world, key, board.since[played[-1]])
    return {**time, "periodLength": 2700, "overtimeLength": 900, "totalPeriodCount": 2}


def _changes(world: FootballWorld, key: str) -> dict[str, Any]:
    """Return the dotted paths of the last update only."""
    board = world.boards[key]
    if board.version <= 1:
        return {"changes": [], "changeTimestamp": 0}
    paths: list[str] = []
    for id_ in board.changed:
        paths += _paths(id_, board)
    return {"changes": sorted(set(paths)), "changeTimestamp": _stamp(world, key, board.changed_at)}


def _paths(id_: str, board: FootballBoard) -> list[str]:
    if id_ == "status":
        return ["status.code", "status.description", "status.type"]
    match board.live.get(id_):
        case GoalTruth(side=side):
            return [f"{side}Score.{name}" for name in ("current", "display")]
        case CardTruth():
            return ["cardsCode"]
        case KickTruth(side=side):
            return [f"{side}Score.penalties"]
        case PeriodTruth():
            return ["time.lastPeriodEnd"]
    return ["providerLock.status"]


def _var_in_progress(world: FootballWorld, key: str) -> dict[str, bool]:
    """Return the side whose event is under review."""
    board, elapsed = world.boards[key], world.elapsed(key)
    looked_at = {
        getattr(entry.shown_first, "side", "")
        for entry in board.match.entries
        if entry.id in board.live and not entry.id.startswith("lineup") and entry.at <= elapsed < entry.settled_at
    }
    return {"homeTeam": HOME in looked_at, "awayTeam": AWAY in looked_at}


def _stamp(world: FootballWorld, key: str, seconds: float) -> int:
    return int(world.moment(key, seconds).timestamp())
