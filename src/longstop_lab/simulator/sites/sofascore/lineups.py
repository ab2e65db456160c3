"""Line-ups: nothing, then a guess, then the confirmed elevens, with figures once they play."""

from collections.abc import Iterator
from random import Random
from typing import Any

from msgspec import Struct

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.model import (
    SIDES,
    FootballPlayer,
    GoalTruth,
    LineupTruth,
    SubstitutionTruth,
    Team,
)
from longstop_lab.simulator.sites.sofascore.players import player_object, players_of
from longstop_lab.simulator.sites.sofascore.statuses import has_begun, minute_now
from longstop_lab.simulator.sites.sofascore.traits import traits_of

_COLOURS = {"primary": "204080", "number": "ffffff", "outline": "204080", "fancyNumber": "ffffff"}
#: Players with fewer minutes have no rating.
_RATED_MINUTES = 8
_FIRST_MISSING = 790_000


class _Figures(Struct, kw_only=True):
    """What one player has done so far."""

    minutes: int = 0
    goals: int = 0
    assists: int = 0


def lineups(board: FootballBoard, elapsed: float) -> dict[str, Any] | None:
    """Return the whole body; `None` while there is none."""
    shown = {side: line for side in SIDES if isinstance(line := board.live.get(f"lineup-{side}"), LineupTruth)}
    traits = traits_of(board.match.key)
    if not shown or traits.has_no_lineups:
        return None
    if len(shown) < len(SIDES):
        return {"confirmed": False}
    figures = _figures(board, shown, minute_now(board, elapsed))
    body = {side: _side(board, line, figures) for side, line in shown.items()}
    return {"confirmed": all(line.is_confirmed for line in shown.values()), **body, "statisticalVersion": 3}


def _side(board: FootballBoard, line: LineupTruth, figures: dict[str, _Figures]) -> dict[str, Any]:
    players, team = players_of(board.match), board.match.team(line.side)
    is_rated = not traits_of(board.match.key).is_low_coverage
    entries = [
        _entry(players[key], team, is_substitute=key in line.bench)
        | ({"statistics": _statistics(key, figures.get(key), is_rated=is_rated)} if has_begun(board) else {})
        for key in (*line.eleven, *line.bench)
    ]
    entries[3]["captain"] = True
    return {
        "players": entries,
        "supportStaff": [],
        "formation": line.formation,
        "playerColor": _COLOURS,
        "goalkeeperColor": _COLOURS,
        "missingPlayers": list(_missing(team)),
    }


def _entry(player: FootballPlayer, team: Team, *, is_substitute: bool) -> dict[str, Any]:
    dice = Random(f"entry {player.key}")
    profile = player_object(player)
    if player.position != "G" and dice.random() < 0.13:
        profile["position"] = dice.choice("DMF")
    # The profile has the number of another season, and some belong to a youth team.
    profile["jerseyNumber"] = str(player.shirt if dice.random() < 0.7 else dice.randint(40, 99))
    is_lent = dice.random() < 0.09
    return {
        "player": {**profile, "height": dice.randint(168, 199), "country": {}, "marketValueCurrency": "EUR"},
        "teamId": 200_000 + int(team.key) if is_lent else int(team.key),
        "shirtNumber": player.shirt,
        "jerseyNumber": str(player.shirt),
        "position": player.position,
        "substitute": is_substitute,
    }


def _missing(team: Team) -> Iterator[dict[str, Any]]:
    dice = Random(f"missing {team.key}")
    for nth in range(dice.randint(0, 2)):
        key = _FIRST_MISSING + 4 * int(team.key) + nth
        player = FootballPlayer(key=str(key), name=f"Missing Player{nth + 1}", shirt=50 + nth, position="M")
        yield {"player": player_object(player), "type": "missing", "reason": dice.choice((0, 1, 11, 13))}


def _figures(board: FootballBoard, shown: dict[str, LineupTruth], minute: int) -> dict[str, _Figures]:
    if not has_begun(board):
        return {}
    figures = {key: _Figures(minutes=minute) for line in shown.values() for key in line.eleven}
    for change in board.live.values():
        if isinstance(change, SubstitutionTruth):
            figures.setdefault(change.player_in, _Figures()).minutes = max(1, minute - change.minute)
            figures.setdefault(change.player_out, _Figures()).minutes = min(minute, change.minute)
        elif isinstance(change, GoalTruth):
            if change.how != "own goal":
                figures.setdefault(change.scorer, _Figures()).goals += 1
            if change.assist:
                figures.setdefault(change.assist, _Figures()).assists += 1
    return figures


def _statistics(key: str, figures: _Figures | None, *, is_rated: bool) -> dict[str, Any]:
    """Return a player's figures: empty for a player who has not played; most zeros are omitted."""
    if figures is None:
        return {}
    dice = Random(f"figures {key} {figures.minutes // 15}")
    statistics: dict[str, Any] = {"goalAssist": figures.assists, "minutesPlayed": figures.minutes}
    statistics["touches"] = figures.minutes // 2 + dice.randint(1, 9)
    if figures.goals:
        statistics["goals"] = figures.goals
    if is_rated and figures.minutes >= _RATED_MINUTES:
        tenths = min(100, 58 + dice.randint(0, 16) + 9 * figures.goals + 5 * figures.assists)
        rating = tenths // 10 if tenths % 10 == 0 else tenths / 10
        statistics |= {"rating": rating, "ratingVersions": {"original": rating, "alternative": rating}}
    return statistics
