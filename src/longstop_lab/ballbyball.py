"""Real ball-by-ball files, read on their own: the simulator has its own reader, and one must not excuse the other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from longstop.errors import UsageError

#: A file's words for how a batter went, in the nine classes that a source can tell apart.
_KINDS = {
    "bowled": "bowled",
    "caught": "caught",
    "caught and bowled": "caught",
    "lbw": "lbw",
    "run out": "run out",
    "stumped": "stumped",
    "hit wicket": "hit wicket",
    "retired hurt": "retired",
    "retired out": "retired",
    "retired not out": "retired",
    "obstructing the field": "obstructing the field",
}
_RUNS = {"wides": "wides", "noballs": "noballs", "byes": "byes", "legbyes": "legbyes", "penalty": "penalty"}


class Ball(Struct, frozen=True, kw_only=True):
    """One delivery in comparable form."""

    innings: int
    over: int
    position: int
    #: (kind, count) pairs that are not zero, in the order of their names.
    runs: tuple[tuple[str, int], ...]
    #: (kind, player out) pairs.
    wickets: tuple[tuple[str, str], ...]


def balls_of_file(path: Path) -> list[Ball]:
    """Return the deliveries of a Cricsheet file in the order of play."""
    try:
        match = json.loads(path.read_bytes())
        return list(_balls_of(match["innings"]))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is no Cricsheet JSON file") from error


def _balls_of(innings: list[dict[str, Any]]) -> Iterator[Ball]:
    for number, each in enumerate(innings, start=1):
        position = 0
        for over in each.get("overs", ()):
            for delivery in over["deliveries"]:
                position += 1
                runs = {"batter": delivery["runs"]["batter"]}
                runs |= {_RUNS[kind]: count for kind, count in delivery.get("extras", {}).items()}
                wickets = [(_KINDS.get(w["kind"], "other"), w["player_out"]) for w in delivery.get("wickets", ())]
                yield Ball(
                    innings=number,
                    over=over["over"],
                    position=position,
                    runs=_nonzero(runs),
                    wickets=tuple(sorted(wickets)),
                )


def balls_of_events(events: list[dict[str, Any]]) -> list[Ball]:
    """Return the live deliveries that the API serves, in the order of play."""
    return [
        Ball(
            innings=event["innings"],
            over=event["over"],
            position=event["position"],
            runs=_nonzero(event["data"]["runs"]),
            wickets=tuple(sorted((w["kind"], w["player_out"]) for w in event["data"]["wickets"])),
        )
        for event in events
        if event["kind"] == "delivery"
    ]


def _nonzero(runs: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((kind, count) for kind, count in runs.items() if count))
