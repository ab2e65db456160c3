"""Faults in sofascore's content: readable bodies that are wrong."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.crex.faults import renamed

_Event = dict[str, Any]
_Incident = dict[str, Any]

_SCORES = ("homeScore", "awayScore")
_NEGATIVE_MINUTE = -4
#: Kinds of incident whose minute is always that of the end of a part.
_MARKS = ("period", "injuryTime")


def corrupt(fault: Fault, request: Request, body: bytes) -> bytes:
    """Return the body with the fault applied; other bodies are returned unchanged."""
    value = msgspec.json.decode(body)
    match fault.kind:
        case FaultKind.RENAMED:
            return msgspec.json.encode(renamed(value, fault.field))
        case FaultKind.UNLISTED if "events" in value:
            kept = [event for event in value["events"] if fault.match not in (None, str(event["id"]))]
            return msgspec.json.encode({**value, "events": kept})
        case FaultKind.SWAPPED:
            return msgspec.json.encode(_in_every_event(value, _swapped))
        case FaultKind.ZEROED:
            return msgspec.json.encode(_in_every_event(value, _zeroed))
        case FaultKind.POISONED if "incidents" in value:
            poisoned = _poisoned_incidents(value["incidents"], request.match_key)
            return msgspec.json.encode({**value, "incidents": poisoned})
        case FaultKind.POISONED:
            return msgspec.json.encode(_in_every_event(value, _poisoned))
    return body


def _in_every_event(value: dict[str, Any], change: Callable[[_Event], _Event]) -> dict[str, Any]:
    if "events" in value:
        return {**value, "events": [change(event) for event in value["events"]]}
    return {**value, "event": change(value["event"])} if "event" in value else value


def _swapped(event: dict[str, Any]) -> dict[str, Any]:
    home, away = event["homeTeam"], event["awayTeam"]
    return {**event, "homeTeam": {**home, "id": away["id"]}, "awayTeam": {**away, "id": home["id"]}}


def _zeroed(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, **{name: dict.fromkeys(("current", "display", "period1", "period2"), 0) for name in _SCORES}}


def _poisoned(event: _Event) -> _Event:
    """Return the event with a score that contradicts itself; one without a score stays as it is."""
    dice = Random(f"poisoned event {event['id']}")
    name, more = dice.choice(_SCORES), dice.randint(1, 2)
    score: dict[str, int] = event[name]
    # With a shoot-out the current score differs from the one displayed, so only the sum of the halves can be wrong.
    lies: list[tuple[str, ...]] = [] if "penalties" in score else [("display",), ("current",)]
    lies += [("current", "display", "normaltime")] if "normaltime" in score else []
    if "display" not in score or not lies:
        return event
    return {**event, name: {**score, **{field: score[field] + more for field in dice.choice(lies)}}}


def _poisoned_incidents(incidents: list[_Incident], match: str | None) -> list[_Incident]:
    """Return the incidents with one that cannot be: a goal of the wrong side, a minute before the kick-off, or a mark.

    Which one it is depends on the match; where the match has none of that kind, it is the next.
    """
    goals = [nth for nth, each in enumerate(incidents) if each.get("incidentClass") in ("regular", "penalty")]
    timed = [nth for nth, each in enumerate(incidents) if each["incidentType"] in ("goal", "card", "substitution")]
    marks = [nth for nth, each in enumerate(incidents) if each["incidentType"] in _MARKS and each.get("text") != "PEN"]
    found = [(nths[0], change) for nths, change in ((goals, _other_side), (timed, _negative), (marks, _moved)) if nths]
    if not found:
        return incidents
    place, change = found[Random(f"poisoned incidents {match}").randrange(3) % len(found)]
    return [change(each) if nth == place else each for nth, each in enumerate(incidents)]


def _other_side(goal: _Incident) -> _Incident:
    return {**goal, "isHome": not goal["isHome"]}


def _negative(incident: _Incident) -> _Incident:
    return {**incident, "time": _NEGATIVE_MINUTE}


def _moved(mark: _Incident) -> _Incident:
    return {**mark, "time": mark["time"] - 7}
