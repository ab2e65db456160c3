"""What was published, and what a payload shows that was not."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.chaos.published_values import (
    PublishedValues,
    ServedMatch,
    ServedTeam,
    TruthTail,
    served_match,
    wrong_title,
    wrong_values,
)
from longstop_lab.simulator.truth import TruthLine
from tests.builders import NOW

CRICKET = ServedMatch(
    match_id="crex_11AB",
    sport="cricket",
    key="11AB",
    teams=(ServedTeam(key="R", name="Rovers"), ServedTeam(key="H", name="Herons")),
)
FOOTBALL = ServedMatch(
    match_id="sofascore_7",
    sport="football",
    key="7",
    teams=(ServedTeam(key="1", name="Foxes"), ServedTeam(key="2", name="Rooks")),
)


def line(second: float, kind: str, id_: str, op: str = "insert", *, match: str = "11AB", **content: Any) -> TruthLine:
    return TruthLine(at=NOW + timedelta(seconds=second), match=match, op=op, kind=kind, id=id_, content=content)


def ball(second: float, id_: str, runs: int, *outs: str, op: str = "insert") -> TruthLine:
    wickets = [{"kind": out} for out in outs]
    return line(second, "delivery", id_, op, innings=1, runs={"batter": runs, "wides": 0}, wickets=wickets)


def goal(second: float, id_: str, side: str, op: str = "insert") -> TruthLine:
    return line(second, "goal", id_, op, match="7", **({"side": side} if op != "void" else {}))


def published(*lines: TruthLine) -> PublishedValues:
    values = PublishedValues()
    for each in lines:
        values.take(each)
    return values


def cricket(runs: int, wickets: int, **more: Any) -> dict[str, Any]:
    return {"innings": [{"number": 1, "runs": runs, "wickets": wickets}], "score": {}, **more}


def football(home: int, away: int, **more: Any) -> dict[str, Any]:
    teams = {"home": {"key": "1", "name": "Foxes"}, "away": {"key": "2", "name": "Rooks"}}
    return {"teams": teams, "score": {"home": home, "away": away}, **more}


def test_a_total_that_an_innings_has_had_is_right_and_any_other_is_not() -> None:
    values = published(ball(1, "1", 4), ball(2, "2", 0, "bowled"), ball(3, "1", 1, op="update"))

    right = [(0, 0), (4, 0), (4, 1), (1, 1)]
    assert [wrong_values(CRICKET, cricket(*total), values) for total in right] == [[]] * 4
    assert wrong_values(CRICKET, cricket(27, 2), values) == ["27/2 in innings 1"]
    assert wrong_values(CRICKET, cricket(1, 0), values) == ["1/0 in innings 1"]


def test_a_ball_that_is_taken_back_no_longer_counts() -> None:
    values = published(ball(1, "1", 4), ball(2, "2", 2), line(3, "delivery", "1", "void"))

    assert wrong_values(CRICKET, cricket(2, 0), values) == []


def test_a_batter_who_retired_may_count_as_a_wicket() -> None:
    values = published(ball(1, "1", 4, "retired"))

    assert [wrong_values(CRICKET, cricket(4, wickets), values) for wickets in (0, 1)] == [[], []]
    assert wrong_values(CRICKET, cricket(4, 2), values)


def test_since_a_moment_only_what_held_then_or_later_is_right() -> None:
    values = published(ball(1, "1", 4), ball(5, "2", 2), ball(9, "3", 1))
    since = NOW + timedelta(seconds=6)

    found = [wrong_values(CRICKET, cricket(runs, 0), values, since) for runs in (4, 6, 7)]

    assert found == [["4/0 in innings 1"], [], []]


def test_the_teams_of_cricket_are_a_pair_and_may_have_no_names_yet() -> None:
    values = published()

    for teams in (("R", "H"), ("H", "R")):
        shown = {side: {"key": key} for side, key in zip(("team_a", "team_b"), teams, strict=True)}
        assert wrong_values(CRICKET, cricket(0, 0, teams=shown), values) == []
    other = {"team_a": {"key": "R", "name": "Rovers"}, "team_b": {"key": "X"}}
    swapped = {"team_a": {"key": "R", "name": "Herons"}, "team_b": {"key": "H", "name": "Rovers"}}
    assert len(wrong_values(CRICKET, cricket(0, 0, teams=other), values)) == 1
    assert len(wrong_values(CRICKET, cricket(0, 0, teams=swapped), values)) == 1


def test_a_score_of_football_that_was_never_published_is_wrong() -> None:
    values = published(goal(1, "1", "home"), goal(2, "2", "away"), goal(3, "2", "away", "void"))

    assert [wrong_values(FOOTBALL, football(*score), values) for score in ((0, 0), (1, 0), (1, 1))] == [[]] * 3
    assert wrong_values(FOOTBALL, football(2, 0), values) == ["the score 2-0"]


def test_the_teams_of_football_have_sides() -> None:
    swapped = {"home": {"key": "2", "name": "Foxes"}, "away": {"key": "1", "name": "Rooks"}}

    found = wrong_values(FOOTBALL, football(0, 0, teams=swapped), published())

    assert found == ["Foxes (2) as the home team", "Rooks (1) as the away team"]


def test_kicks_of_a_shoot_out_count_by_themselves() -> None:
    values = published(
        line(1, "kick", "1", match="7", side="home", is_scored=True),
        line(2, "kick", "2", match="7", side="away", is_scored=False),
    )

    def shown(home: int, away: int) -> dict[str, Any]:
        return football(0, 0, score={"home": 0, "away": 0, "penalties": {"home": home, "away": away}})

    assert wrong_values(FOOTBALL, shown(1, 0), values) == []
    assert wrong_values(FOOTBALL, shown(1, 1), values) == ["the penalties 1-1"]


def test_a_result_before_there_was_one_is_wrong() -> None:
    values = published()

    assert wrong_values(FOOTBALL, football(0, 0, result={"outcome": "draw"}), values) == ["the result draw"]
    values.take(line(1, "result", "result", match="7", outcome="draw"))
    assert wrong_values(FOOTBALL, football(0, 0, result={"outcome": "draw"}), values) == []


@pytest.mark.parametrize(
    ("match", "title", "is_wrong"),
    [
        (CRICKET, "Rovers vs Herons - T20", False),
        (CRICKET, "H vs Rovers", False),
        (CRICKET, "crex_11AB", False),
        (CRICKET, "Rovers vs Otters - T20", True),
        (FOOTBALL, "Foxes vs Rooks", False),
        (FOOTBALL, "sofascore_7", False),
        (FOOTBALL, "Rooks vs Foxes", True),
        (FOOTBALL, "Foxes", True),
    ],
)
def test_a_title_names_the_teams_of_its_match(match: ServedMatch, title: str, is_wrong: bool) -> None:
    assert wrong_title(match, title) is is_wrong


def test_a_site_has_its_own_names_for_match_and_teams() -> None:
    status = {
        "sport": "cricket",
        "key": "1000",
        "teams": [{"key": "R", "name": "Rovers"}, {"key": "H", "name": "Herons"}],
    }

    espn, crex = served_match("espncricinfo", status), served_match("crex", status)

    assert espn is not None
    assert crex is not None
    assert (crex.match_id, [team.key for team in crex.teams]) == ("crex_1000", ["R", "H"])
    assert (espn.match_id, [team.key for team in espn.teams]) == ("espncricinfo_1446656", ["1027", "1017"])
    assert served_match("sofascore", status) is None


def test_a_growing_log_is_read_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "truth.jsonl"
    one, two = ball(1, "1", 4), ball(2, "2", 0)
    log.write_bytes(one.encode() + two.encode()[:20])
    tail = TruthTail(log)

    first, nothing = tail.read_new(), tail.read_new()
    with log.open("ab") as file:
        file.write(two.encode()[20:])

    assert [[each.id for each in read] for read in (first, nothing, tail.read_new())] == [["1"], [], ["2"]]
