"""How cadence and time-outs step up and down while a site degrades and recovers, read from the log."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from longstop.clock import from_iso

#: Reasons for a pace at which errors play no part and the match goes on.
USUAL = ("baseline", "busy", "important")


class Level(Struct, frozen=True, kw_only=True):
    """From this moment on, this many seconds apply."""

    at: datetime
    seconds: float


class Step(Struct, frozen=True, kw_only=True):
    at: datetime
    is_up: bool


#: The steps by subject: a match's cadence or a source's time-outs.
Ladders = Mapping[str, Sequence[Level]]


def read_events(log: Path, *names: str) -> list[dict[str, Any]]:
    """Return the log's events of these names; other lines are ignored."""
    found: list[dict[str, Any]] = []
    for raw in log.read_bytes().splitlines():
        if any(name.encode() in raw for name in names):
            try:
                line = msgspec.json.decode(raw)
            except msgspec.MsgspecError:
                continue
            if isinstance(line, dict) and line.get("event") in names:
                found.append(line)
    return found


def pace_by_errors(events: Iterable[dict[str, Any]], base: float) -> Ladders:
    """Return how far errors have slowed down each match; a break or an end is the game's, and says nothing of them."""
    relevant = [event for event in events if event["reason"] in ("errors", *USUAL)]
    return _ladders(relevant, "ref", lambda event: event["interval_seconds"] if event["reason"] == "errors" else base)


def slowed(events: Iterable[dict[str, Any]]) -> set[str]:
    """Return the matches that are slow because of errors, by their last event."""
    latest = {event["ref"]: event["reason"] for event in events}
    return {ref for ref, reason in latest.items() if reason == "errors"}


def paces(events: Iterable[dict[str, Any]]) -> Ladders:
    """Return how often each match was polled, for any reason."""
    return _ladders(events, "ref", lambda event: event["interval_seconds"])


def time_outs(events: Iterable[dict[str, Any]]) -> Ladders:
    """Return how much time each source was given."""
    return _ladders(events, "source", lambda event: event["fetch_seconds"])


def _ladders(events: Iterable[dict[str, Any]], subject: str, seconds: Any) -> Ladders:
    ladders: dict[str, list[Level]] = defaultdict(list)
    for event in events:
        ladders[event[subject]].append(Level(at=from_iso(event["timestamp"]), seconds=seconds(event)))
    return ladders


def level(levels: Sequence[Level], at: datetime, base: float) -> float:
    """Return what counts at a moment: the latest level, or the base before the first."""
    return next((level.seconds for level in reversed(levels) if level.at <= at), base)


def steps(levels: Sequence[Level], *, since: datetime, base: float) -> list[Step]:
    """Return the steps since a moment; a level as high as the one before is none."""
    start = Level(at=since, seconds=level(levels, since, base))
    taken = [start, *(level for level in levels if level.at > since)]
    return [
        Step(at=after.at, is_up=after.seconds > before.seconds)
        for before, after in pairwise(taken)
        if after.seconds != before.seconds
    ]


def swings(taken: Sequence[Step], window_seconds: float) -> list[tuple[Step, Step]]:
    """Return the oscillations: steps that are taken back within the window, with the step back."""
    return [
        (before, after)
        for before, after in pairwise(taken)
        if before.is_up != after.is_up and (after.at - before.at).total_seconds() < window_seconds
    ]
