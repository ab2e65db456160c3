"""How crex goes wrong in what it says: bodies that can be read and are not true."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.http import Request

_LIST = "/api/v3/getLiveMatches"
_STATE = "/api/v3/getSV3"
_CARD = "/api/v3/getSC4"
_FEED = "/commentary/v1/getBallFeeds"
_NAMES = "/mapping/getHomeMapData"

_ZERO_OVERS = "0/0(0.0"
_ZERO_BALLS = "0/0(0"
#: What a poisoned innings has too much.
_POISON_RUNS = 23
_ALL_WICKETS = 10
_SCORE = re.compile(r"(\d+)/(\d+)\((.*)")

#: The two teams' keys of the match that a request is about.
TeamKeys = tuple[str, str]


def corrupt(fault: Fault, request: Request, body: bytes, teams: TeamKeys | None) -> bytes:
    """Return the body as the fault has it; one that the fault does not concern comes back as it was."""
    change = _CHANGES.get((fault.kind, request.path))
    if fault.kind is FaultKind.RENAMED:
        return msgspec.json.encode(renamed(msgspec.json.decode(body), fault.field))
    if change is None:
        return body
    return msgspec.json.encode(change(msgspec.json.decode(body), fault, teams))


def renamed(value: Any, field: str) -> Any:
    """Return the value with every key `field` called otherwise."""
    if isinstance(value, dict):
        return {f"{key}New" if key == field else key: renamed(part, field) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, field) for part in value]
    return value


_Change = Callable[[Any, Fault, TeamKeys | None], Any]


def _swap_state(state: dict[str, Any], _fault: Fault, _teams: TeamKeys | None) -> dict[str, Any]:
    one, _, two = state["a"].partition(".")
    other = {one: two, two: one, f"^{one}": f"^{two}", f"^{two}": f"^{one}"}
    swapped = {**state, "a": f"{two}.{one}", "F": other.get(state["F"], state["F"])}
    if "rb" in state:
        swapped["rb"] = [{**over, "bt": other.get(over["bt"], over["bt"])} for over in state["rb"]]
    return swapped


def _swap_list(listing: dict[str, Any], fault: Fault, teams: TeamKeys | None) -> dict[str, Any]:
    return {key: _swap_state(entry, fault, teams) for key, entry in listing.items()}


def _swap_items(items: list[dict[str, Any]], _fault: Fault, teams: TeamKeys | None) -> list[dict[str, Any]]:
    if teams is None:
        return items
    other = dict(zip(teams, reversed(teams), strict=True))
    fields = ("bat_team_fkey", "tfkey", "c")
    return [{**item, **{name: other[item[name]] for name in fields if item.get(name) in other}} for item in items]


def _zero_state(state: dict[str, Any], _fault: Fault, _teams: TeamKeys | None) -> dict[str, Any]:
    return {**state, "j": _ZERO_OVERS, "k": _ZERO_OVERS}


def _zero_list(listing: dict[str, Any], fault: Fault, teams: TeamKeys | None) -> dict[str, Any]:
    return {key: _zero_state(entry, fault, teams) for key, entry in listing.items()}


def _zero_card(card: list[dict[str, Any]], _fault: Fault, _teams: TeamKeys | None) -> list[dict[str, Any]]:
    return [{**innings, "d": _ZERO_BALLS} for innings in card]


def _poison_state(state: dict[str, Any], _fault: Fault, _teams: TeamKeys | None) -> dict[str, Any]:
    """Return the state with a wrong score of the innings under way, which event list and scorecard contradict."""
    begun = [name for name in ("j", "k") if state[name] != _ZERO_OVERS]
    return {**state, begun[-1]: _SCORE.sub(_poisoned_score, state[begun[-1]])} if begun else state


def _poisoned_score(score: re.Match[str]) -> str:
    return f"{int(score[1]) + _POISON_RUNS}/{min(_ALL_WICKETS, int(score[2]) + 1)}({score[3]}"


def _poison_list(listing: dict[str, Any], fault: Fault, teams: TeamKeys | None) -> dict[str, Any]:
    return {key: _poison_state(entry, fault, teams) for key, entry in listing.items()}


def _no_names(_table: Any, _fault: Fault, _teams: TeamKeys | None) -> dict[str, Any]:
    return {"p": [], "t": []}


def _unlist(listing: dict[str, Any], fault: Fault, _teams: TeamKeys | None) -> dict[str, Any]:
    return {key: entry for key, entry in listing.items() if fault.match not in (None, key)}


_CHANGES: dict[tuple[FaultKind, str], _Change] = {
    (FaultKind.SWAPPED, _LIST): _swap_list,
    (FaultKind.SWAPPED, _STATE): _swap_state,
    (FaultKind.SWAPPED, _FEED): _swap_items,
    (FaultKind.SWAPPED, _CARD): _swap_items,
    (FaultKind.ZEROED, _LIST): _zero_list,
    (FaultKind.ZEROED, _STATE): _zero_state,
    (FaultKind.ZEROED, _CARD): _zero_card,
    (FaultKind.POISONED, _LIST): _poison_list,
    (FaultKind.POISONED, _STATE): _poison_state,
    (FaultKind.NAMELESS, _NAMES): _no_names,
    (FaultKind.UNLISTED, _LIST): _unlist,
}
