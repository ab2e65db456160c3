"""The list of incidents: newest first, some without an id, numbers that mean something else."""

from collections.abc import Iterator, Mapping
from typing import Any

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.model import (
    AWAY,
    HOME,
    CardTruth,
    FootballContent,
    FootballPlayer,
    GoalTruth,
    KickTruth,
    MissedPenaltyTruth,
    PeriodTruth,
    SubstitutionTruth,
    VarTruth,
)
from longstop_lab.simulator.sites.sofascore.players import player_object, players_of
from longstop_lab.simulator.sites.sofascore.statuses import PARTS
from longstop_lab.simulator.sites.sofascore.traits import Traits, traits_of

#: Stands where a number has no meaning.
_NO_NUMBER = 999
_GOALS = {"regular": "regular", "penalty": "penalty", "own goal": "ownGoal"}
_CARDS = {"yellow": "yellow", "second yellow": "yellowRed", "red": "red"}
_DECISIONS = {"goal awarded": "goalAwarded", "goal not awarded": "goalNotAwarded", "card upgrade": "cardUpgrade"}
_COLOURS = {"playerColor": {"primary": "233251"}, "goalkeeperColor": {"primary": "268668"}}

_Incident = dict[str, Any]


def incidents(board: FootballBoard) -> dict[str, Any]:
    """Return the whole body."""
    shown = [*_periods(board), *_announced_times(board), *_told(board)]
    # Of what carries the same minute, the one published last stands first.
    shown.reverse()
    shown.sort(key=_moment, reverse=True)
    return {"incidents": shown, "home": _COLOURS, "away": _COLOURS}


def _moment(incident: _Incident) -> tuple[int, int, int]:
    if incident["incidentType"] == "penaltyShootout":
        return _NO_NUMBER, 0, incident["sequence"]
    return incident["time"], incident.get("addedTime", 0), 0


def _told(board: FootballBoard) -> Iterator[_Incident]:
    players, traits = players_of(board.match), traits_of(board.match.key)
    for id_, content in board.live.items():
        incident = _told_one(content, players, traits)
        if incident:
            yield {**incident, "id": int(id_), **_minute(content)}


def _told_one(content: FootballContent, players: Mapping[str, FootballPlayer], traits: Traits) -> _Incident | None:
    match content:
        case GoalTruth():
            return _goal(content, players, traits)
        case CardTruth():
            player = players[content.player]
            card = {"player": player_object(player), "playerName": player.name, "reason": "Foul"}
            return {**card, **_labels("card", content.side, _CARDS[content.card])}
        case SubstitutionTruth():
            return _substitution(content, players)
        case VarTruth():
            looked_at = {"confirmed": True, "player": player_object(players[content.player])}
            return {**looked_at, **_labels("varDecision", content.side, _DECISIONS[content.decision])}
        case MissedPenaltyTruth():
            missed = {"player": player_object(players[content.player]), "description": "Goalkeeper save"}
            return {**missed, **_labels("inGamePenalty", content.side, "missed")}
        case KickTruth():
            how = "scored" if content.is_scored else "missed"
            kick = {"player": player_object(players[content.player]), "homeScore": content.home}
            kick |= {"awayScore": content.away, "sequence": content.sequence}
            kick |= {"description": how.capitalize(), "reason": how}
            return {**kick, **_labels("penaltyShootout", content.side, how)}
    return None


def _goal(goal: GoalTruth, players: Mapping[str, FootballPlayer], traits: Traits) -> _Incident:
    side = goal.side
    if goal.how == "own goal" and traits.own_goals_by_scorer:
        side = AWAY if side == HOME else HOME
    incident = {"homeScore": goal.home, "awayScore": goal.away, "player": player_object(players[goal.scorer])}
    if goal.assist:
        incident["assist1"] = player_object(players[goal.assist])
    return {**incident, **_labels("goal", side, _GOALS[goal.how])}


def _substitution(change: SubstitutionTruth, players: Mapping[str, FootballPlayer]) -> _Incident:
    incident = {
        "playerIn": player_object(players[change.player_in]),
        "playerOut": player_object(players[change.player_out]),
        "incidentType": "substitution",
        "isHome": change.side == HOME,
    }
    return {**incident, "injury": True, "incidentClass": "injury"} if change.is_injury else incident


def _labels(kind: str, side: str, class_: str) -> _Incident:
    return {"incidentType": kind, "isHome": side == HOME, "incidentClass": class_}


def _minute(content: FootballContent) -> dict[str, int]:
    match content:
        case GoalTruth() | CardTruth() | SubstitutionTruth() | VarTruth() | MissedPenaltyTruth():
            return {"time": content.minute, **({"addedTime": content.added} if content.added else {})}
    return {}


def _periods(board: FootballBoard) -> Iterator[_Incident]:
    """Yield a mark for each part that has ended, and one, marked as live, for the part that is played."""
    for status, (_, last, text) in PARTS.items():
        ended = board.live.get(f"period-{text}")
        if isinstance(ended, PeriodTruth):
            yield _period(text, last, ended.home, ended.away, is_live=False)
        elif status == board.status:
            kicks = [shown for shown in board.live.values() if isinstance(shown, KickTruth)]
            shoot_out = (kicks[-1].home, kicks[-1].away) if kicks else (0, 0)
            yield _period(text, last, *(shoot_out if text == "PEN" else board.score), is_live=True)


def _period(text: str, last: int, home: int, away: int, *, is_live: bool) -> _Incident:
    mark = {"text": text, "homeScore": home, "awayScore": away, "isLive": is_live, "addedTime": _NO_NUMBER}
    if text == "PEN":
        return {**mark, "period": "penalties", "time": _NO_NUMBER, "incidentType": "period"}
    return {**mark, "time": last, "incidentType": "period"}


def _announced_times(board: FootballBoard) -> Iterator[_Incident]:
    """Yield how much time is added to a part, once something happened in that time or the part is over."""
    for first, last, text in PARTS.values():
        ended = board.live.get(f"period-{text}")
        in_added = [
            shown.added
            for shown in board.live.values()
            if isinstance(shown, GoalTruth | CardTruth | SubstitutionTruth | VarTruth) and first <= shown.minute <= last
        ]
        length = ended.added if isinstance(ended, PeriodTruth) else max(in_added, default=0)
        if length:
            yield {"length": length, "time": last, "addedTime": 0, "incidentType": "injuryTime"}
