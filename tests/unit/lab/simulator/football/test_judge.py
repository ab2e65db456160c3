from typing import Any

import pytest
from msgspec.structs import replace

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.judge import JUDGED
from longstop_lab.simulator.judge import TruthComparison, judge
from longstop_lab.simulator.truth import TruthLine
from tests.unit.lab.simulator.football.games import reversed_entries, scripts
from tests.unit.lab.simulator.games import lines_of

MATCH, SCRIPT = next(pair for pair in scripts() if reversed_entries(pair[0]) and "result" in pair[0].truth)


def published() -> list[TruthLine]:
    board = FootballBoard(MATCH)
    return lines_of([change for step in SCRIPT for change in board.apply(step)], MATCH.key)


def stored(lines: list[TruthLine]) -> list[dict[str, Any]]:
    """Return what a product without fault serves of these lines."""
    keys: dict[tuple[str, str], str] = {}
    given: dict[str, int] = {}
    contents: dict[str, dict[str, Any]] = {}
    versions: list[dict[str, Any]] = []
    for line in lines:
        if line.kind not in JUDGED:
            continue
        if (line.kind, line.id) not in keys:
            side = line.content.get("side")
            family = f"{line.kind}:{side}" if side else line.kind
            given[family] = given.get(family, 0) + 1
            keys[line.kind, line.id] = family if family == "result" else f"{family}:{given[family]}"
        key = keys[line.kind, line.id]
        contents[key] = line.content or contents[key]
        version = {"seq": len(versions) + 1, "key": key, "kind": line.kind, "op": line.op, "data": contents[key]}
        versions.append({**version, "source_event_id": line.id, "source": "sofascore"})
    return versions


def verdict(versions: list[dict[str, Any]]) -> TruthComparison:
    return judge(published(), {MATCH.key: versions}, sites=["sofascore"])


def counts(found: TruthComparison) -> tuple[int, int, int]:
    return found.lost, found.duplicated, found.ghost


def first(versions: list[dict[str, Any]], kind: str) -> int:
    return next(nth for nth, each in enumerate(versions) if each["kind"] == kind)


def test_a_product_without_fault_is_found_without_fault() -> None:
    versions = stored(published())

    found = verdict(versions)

    assert counts(found) == (0, 0, 0), found.details
    assert found.matches == 1
    assert found.events_truth == found.events_stored > 5
    assert {each["op"] for each in versions} >= {"insert", "void"}


def test_an_event_that_is_not_stored_is_lost() -> None:
    versions = [each for each in stored(published()) if each["kind"] != "result"]

    assert counts(verdict(versions)) == (1, 0, 0)


def test_a_content_that_was_never_shown_is_lost_and_a_ghost() -> None:
    versions = stored(published())
    nth = first(versions, "result")
    versions[nth] = {**versions[nth], "data": {**versions[nth]["data"], "home": 99}}

    assert counts(verdict(versions)) == (1, 0, 1)


def test_no_added_time_and_an_added_time_of_zero_read_the_same() -> None:
    versions = stored(published())
    for each in versions:
        each["data"] = {**each["data"], "added": each["data"].get("added") or None}

    assert counts(verdict(versions)) == (0, 0, 0)


def test_a_goal_that_was_taken_back_and_still_stands_is_a_ghost() -> None:
    versions = [each for each in stored(published()) if not (each["kind"] == "goal" and each["op"] == "void")]

    lost, duplicated, ghost = counts(verdict(versions))

    assert (lost, duplicated) == (0, 0)
    assert ghost >= 1


def test_an_event_under_two_keys_is_duplicated() -> None:
    versions = stored(published())
    one = versions[first(versions, "period")]
    again = {**one, "key": "period:99", "seq": 10_000}

    assert counts(verdict([*versions, again]))[1] == 1


def test_a_key_that_is_given_twice_is_duplicated() -> None:
    versions = stored(published())
    cards = [each for each in versions if each["kind"] == "card"]
    for each in versions:
        if each["key"] == cards[-1]["key"]:
            each["key"] = cards[0]["key"]

    assert verdict(versions).duplicated >= 1


def test_a_goal_under_the_other_side_is_lost() -> None:
    versions = stored(published())
    for each in versions:
        if each["kind"] == "goal":
            each["key"] = each["key"].replace("home", "x").replace("away", "home").replace("x", "away")

    assert verdict(versions).lost >= 1


@pytest.mark.parametrize("kind", ["status", "lineup"])
def test_states_are_no_events(kind: str) -> None:
    lines = published()
    stranger = replace(next(line for line in lines if line.kind == kind), id="other")

    found = judge([*lines, stranger], {MATCH.key: stored(lines)}, sites=["sofascore"])

    assert counts(found) == (0, 0, 0)
