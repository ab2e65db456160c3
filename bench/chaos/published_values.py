"""Which scores, results and teams the sites have published, and what a payload shows that they never have.

It knows the truth log, the teams that the simulator names, and the payloads of the API, nothing else.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from longstop_lab.client import sport_at
from longstop_lab.simulator.sites.espncricinfo.ids import SITE as ESPNCRICINFO
from longstop_lab.simulator.sites.espncricinfo.ids import match_number, team_number
from longstop_lab.simulator.truth import TruthLine, decode_line

#: The truth log does not say whether a batter who retired counts as a wicket.
RETIRED = "retired"
#: Before everything.
EVER = datetime.min.replace(tzinfo=UTC)

#: Two numbers, such as goals home and away, or runs and wickets; or the outcome of a match.
_Value = tuple[int, int] | str
#: Values that held from a moment on.
_Held = tuple[datetime, frozenset[_Value]]
_BEFORE_THE_START: _Held = (EVER, frozenset({(0, 0)}))


class ServedTeam(Struct, frozen=True, kw_only=True):
    key: str
    name: str


class ServedMatch(Struct, frozen=True, kw_only=True):
    """A match as a site shows it: the id that the API must give it, and its teams; those of football home first."""

    match_id: str
    sport: str
    #: The match in the truth log.
    key: str
    teams: tuple[ServedTeam, ServedTeam]


def served_match(site: str, status: Mapping[str, Any]) -> ServedMatch | None:
    """Return a match of the simulator's status at a site; `None` if the site shows another sport."""
    if status["sport"] != sport_at(site):
        return None
    is_numbered = site == ESPNCRICINFO
    one, two = (
        ServedTeam(key=str(team_number(team["key"])) if is_numbered else team["key"], name=team["name"])
        for team in status["teams"]
    )
    name = match_number(status["key"]) if is_numbered else status["key"]
    return ServedMatch(match_id=f"{site}_{name}", sport=status["sport"], key=status["key"], teams=(one, two))


class PublishedValues:
    """Every score and result that the matches have had, and until when."""

    def __init__(self) -> None:
        # By match and what they are of, in the order of time.
        self._held: dict[tuple[str, str], list[_Held]] = {}
        self._live: dict[str, dict[str, TruthLine]] = defaultdict(dict)

    def take(self, line: TruthLine) -> None:
        live = self._live[line.match]
        changed = live.pop(line.id, None) if line.op == "void" else line
        if line.op != "void":
            live[line.id] = line
        match changed:
            case TruthLine(kind="delivery", content={"innings": int(number)}):
                self._hold(line, f"innings {number}", _innings_values(live.values(), number))
            case TruthLine(kind="goal"):
                self._hold(line, "score", {_goals(live.values(), "goal")})
            case TruthLine(kind="kick"):
                self._hold(line, "penalties", {_goals(live.values(), "kick")})
            case TruthLine(kind="result", content={"outcome": str(outcome)}):
                self._hold(line, "result", {outcome})

    def has_had(self, match: str, what: str, value: _Value, since: datetime = EVER) -> bool:
        """Return whether a value held at some time since a moment."""
        held = self._held.get((match, what), [_BEFORE_THE_START])
        ends = [*(at for at, _ in held[1:]), None]
        return any(value in values for (_, values), end in zip(held, ends, strict=True) if end is None or end > since)

    def innings_of(self, match: str) -> list[str]:
        """Return the innings that have begun, or the first one."""
        return [what for about, what in self._held if about == match and what.startswith("innings ")] or ["innings 1"]

    def _hold(self, line: TruthLine, what: str, values: set[_Value]) -> None:
        self._held.setdefault((line.match, what), [_BEFORE_THE_START]).append((line.at, frozenset(values)))


def _innings_values(live: Any, number: int) -> set[_Value]:
    balls = [line.content for line in live if line.kind == "delivery" and line.content["innings"] == number]
    runs = sum(sum(ball["runs"].values()) for ball in balls)
    outs = Counter(out["kind"] == RETIRED for ball in balls for out in ball["wickets"])
    return {(runs, outs[False] + counted) for counted in range(outs[True] + 1)}


def _goals(live: Any, kind: str) -> tuple[int, int]:
    sides = [line.content["side"] for line in live if line.kind == kind and line.content.get("is_scored", True)]
    return sides.count("home"), sides.count("away")


class TruthTail:
    """Reads a growing truth log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read_new(self) -> list[TruthLine]:
        """Return the lines that were written since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, _, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + bool(whole)
        return [decode_line(raw) for raw in whole.splitlines()]


def wrong_values(
    match: ServedMatch, payload: Mapping[str, Any], published: PublishedValues, since: datetime = EVER
) -> list[str]:
    """Return what a payload shows that the match has not had since a moment."""
    check = _wrong_football if match.sport == "football" else _wrong_cricket
    return [*check(match, payload, published, since), *_wrong_result(match, payload, published, since)]


def wrong_title(match: ServedMatch, title: str) -> bool:
    """Return whether a title names another team; a team without a name is called by its key."""
    teams = title.split(" - ")[0].split(" vs ")
    if teams == [match.match_id]:  # the teams are not known yet
        return False
    one, two = ({team.key, team.name} for team in match.teams)
    if match.sport == "football":
        return len(teams) != 2 or teams[0] not in one or teams[1] not in two
    return any(team not in one | two for team in teams)


def _wrong_cricket(
    match: ServedMatch, payload: Mapping[str, Any], published: PublishedValues, since: datetime
) -> Iterator[str]:
    teams = payload.get("teams")
    if teams and {_team(teams[side]) for side in ("team_a", "team_b")} - _allowed(match):
        yield f"teams {teams}"
    for innings in payload["innings"]:
        value = (innings["runs"], innings["wickets"])
        if not published.has_had(match.key, f"innings {innings['number']}", value, since):
            yield f"{value[0]}/{value[1]} in innings {innings['number']}"
    for score in payload["score"].values():
        value = (score["runs"], score["wickets"])
        if not any(published.has_had(match.key, what, value, since) for what in published.innings_of(match.key)):
            yield f"the score {value[0]}/{value[1]}"


def _team(team: Mapping[str, str]) -> tuple[str, str | None]:
    return team["key"], team.get("name")


def _allowed(match: ServedMatch) -> set[tuple[str, str | None]]:
    """Return keys with and without names: a name may follow later."""
    return {(team.key, name) for team in match.teams for name in (team.name, None)}


def _wrong_football(
    match: ServedMatch, payload: Mapping[str, Any], published: PublishedValues, since: datetime
) -> Iterator[str]:
    for side, team in zip(("home", "away"), match.teams, strict=True):
        shown = payload["teams"][side]
        if shown["key"] != team.key or shown.get("name") not in (team.name, None):
            yield f"{shown.get('name')} ({shown['key']}) as the {side} team"
    score = payload.get("score") or {}
    for what, goals in (("score", score), ("penalties", score.get("penalties"))):
        if goals and not published.has_had(match.key, what, (goals["home"], goals["away"]), since):
            yield f"the {what} {goals['home']}-{goals['away']}"


def _wrong_result(
    match: ServedMatch, payload: Mapping[str, Any], published: PublishedValues, since: datetime
) -> Iterator[str]:
    result = payload.get("result")
    if result and not published.has_had(match.key, "result", result["outcome"], since):
        yield f"the result {result['outcome']}"
