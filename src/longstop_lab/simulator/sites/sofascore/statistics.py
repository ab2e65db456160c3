"""Match statistics: numbers as text in four forms, some of them in two places."""

from random import Random
from typing import Any

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.model import AWAY, HOME, SIDES, CardTruth
from longstop_lab.simulator.sites.sofascore.statuses import has_begun, minute_now
from longstop_lab.simulator.sites.sofascore.traits import traits_of

_Item = dict[str, Any]


def statistics(board: FootballBoard, elapsed: float) -> dict[str, Any] | None:
    """Return the whole body; `None` while there is none."""
    if not has_begun(board) or traits_of(board.match.key).is_low_coverage:
        return None
    minute = minute_now(board, elapsed)
    parts = [_part(board, "ALL", minute, minute), _part(board, "1ST", min(minute, 45), minute)]
    if minute > 45:
        parts.append(_part(board, "2ND", minute - 45, minute))
    return {"statistics": parts}


def _part(board: FootballBoard, period: str, played: int, minute: int) -> dict[str, Any]:
    dice = Random(f"statistics {board.match.key} {period} {minute // 5}")
    possession = dice.randint(32, 68)
    goals = dict(zip(SIDES, board.score, strict=True))
    shots = {side: goals[side] + played * dice.randint(8, 20) // 90 for side in SIDES}
    on_target = {side: dice.randint(goals[side], shots[side]) for side in SIDES}
    passes = {side: 1 + played * dice.randint(3, 6) for side in SIDES}
    accurate = {side: passes[side] * dice.randint(70, 90) // 100 for side in SIDES}
    yellow = {side: _yellow_cards(board, side) for side in SIDES}
    tackles = {side: played * dice.randint(10, 20) // 90 for side in SIDES}
    all_shots = _count("Total shots", "totalShotsOnGoal", shots)
    all_tackles = _count("Tackles", "totalTackle", tackles)
    groups = {
        "Match overview": [
            _percent("Ball possession", "ballPossession", {HOME: possession, AWAY: 100 - possession}),
            _decimal("Expected goals", "expectedGoals", {side: shots[side] * 0.11 for side in SIDES}),
            all_shots,
            all_tackles,
            _count("Yellow cards", "yellowCards", yellow),
        ],
        "Shots": [all_shots, _count("Shots on target", "shotsOnGoal", on_target)],
        "Passes": [_share("Accurate passes", "accuratePasses", accurate, passes)],
        "Defending": [all_tackles],
    }
    listed = [{"groupName": name, "statisticsItems": items} for name, items in groups.items()]
    return {"period": period, "groups": listed}


def _yellow_cards(board: FootballBoard, side: str) -> int:
    shown = board.live.values()
    return sum(isinstance(card, CardTruth) and card.side == side and card.card != "red" for card in shown)


def _item(name: str, key: str, texts: dict[str, str], values: dict[str, float]) -> _Item:
    ahead = values[HOME] - values[AWAY]
    return {
        "name": name,
        "home": texts[HOME],
        "away": texts[AWAY],
        "compareCode": 1 if ahead > 0 else 2 if ahead < 0 else 3,
        "statisticsType": "positive",
        "valueType": "event",
        "homeValue": values[HOME],
        "awayValue": values[AWAY],
        "renderType": 1,
        "key": key,
    }


def _count(name: str, key: str, values: dict[str, int]) -> _Item:
    return _item(name, key, {side: str(value) for side, value in values.items()}, {**values})


def _percent(name: str, key: str, values: dict[str, int]) -> _Item:
    return _item(name, key, {side: f"{value}%" for side, value in values.items()}, {**values})


def _decimal(name: str, key: str, values: dict[str, float]) -> _Item:
    return _item(name, key, {side: f"{value:.2f}" for side, value in values.items()}, values)


def _share(name: str, key: str, values: dict[str, int], totals: dict[str, int]) -> _Item:
    texts = {side: f"{values[side]}/{totals[side]} ({100 * values[side] // totals[side]}%)" for side in SIDES}
    return {**_item(name, key, texts, {**values}), "homeTotal": totals[HOME], "awayTotal": totals[AWAY]}
