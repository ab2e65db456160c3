"""The truth as espncricinfo shows it: the same match under other numbers, with one wicket a ball at most."""

from typing import Any

from msgspec.structs import replace

from longstop_lab.simulator.sites.espncricinfo.ids import match_number, player_number, team_number
from longstop_lab.simulator.truth import TruthLine


def as_espncricinfo(line: TruthLine) -> TruthLine:
    """Return a line of the log in the numbers of that site."""
    return replace(
        line,
        match=str(match_number(line.match)),
        id=line.id if line.espn_id is None else line.espn_id,
        content=_translated(line.content),
    )


def _translated(content: dict[str, Any]) -> dict[str, Any]:
    there = dict(content)
    for name in ("batter", "bowler"):
        if name in there:
            there[name] = str(player_number(there[name]))
    if there.get("team") is not None:
        there["team"] = str(team_number(there["team"]))
    if "wickets" in there and isinstance(there["wickets"], list):
        there["wickets"] = [
            {**out, "player_key": str(player_number(out["player_key"]))} for out in there["wickets"][:1]
        ]
    return there
