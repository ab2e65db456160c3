"""Faults in sofascore's content: readable bodies that are wrong."""

from collections.abc import Callable
from typing import Any

import msgspec

from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.sites.crex.faults import renamed

_Event = dict[str, Any]

_SCORES = ("homeScore", "awayScore")


def corrupt(fault: Fault, body: bytes) -> bytes:
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
