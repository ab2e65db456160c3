from typing import Any

import pytest

from longstop.sports.cricket.model import Overs
from longstop_lab.simulator.cricket.script import PublishBall
from longstop_lab.simulator.cricket.world import play, script_for
from tests.unit.lab.simulator.espn_pages import END, page_at, steady, super_over_game
from tests.unit.lab.simulator.games import small_game, small_script


def innings_at(seconds: float) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = page_at(seconds)["content"]["innings"]
    return shown


def test_an_innings_is_there_once_it_has_begun() -> None:
    assert [len(innings_at(seconds)) for seconds in (5, 55, END)] == [0, 1, 2]


def test_totals_and_extras_are_those_of_the_balls() -> None:
    first, second = innings_at(END)

    assert [(each["runs"], each["wickets"], each["overs"], each["balls"]) for each in (first, second)] == [
        (20, 1, 2, 12),
        (10, 0, 0.2, 2),
    ]
    assert (first["extras"], first["wides"], first["legbyes"]) == (3, 1, 2)
    assert (second["extras"], second["noballs"]) == (1, 1)
    assert [(each["lead"], each["target"], each["totalOvers"]) for each in (first, second)] == [
        (20, 0, 20),
        (-10, 21, 2),
    ]


def test_the_last_innings_is_the_current_one_and_says_when_it_has_ended() -> None:
    (under_way,) = innings_at(55)
    first, second = innings_at(END)

    assert (under_way["isCurrent"], under_way["event"]) == (True, 0)
    assert [(each["isCurrent"], each["event"]) for each in (first, second)] == [(False, 5), (True, 5)]


def test_only_the_first_over_shows_its_balls() -> None:
    first, _ = innings_at(END)

    assert [len(over["balls"]) for over in first["inningOvers"]] == [7, 0]
    assert [over["overNumber"] for over in first["inningOvers"]] == [1, 2]


def test_an_over_is_complete_when_the_site_says_so() -> None:
    (before,) = innings_at(73)
    (after,) = innings_at(75)

    assert [over["isComplete"] for over in before["inningOvers"]] == [False]
    (over,) = after["inningOvers"]
    assert over["isComplete"] is True
    assert (over["overRuns"], over["overWickets"], over["totalBalls"], over["totalRuns"]) == (14, 1, 6, 14)
    assert over["bowlers"][0]["longName"] == "Heron 9"


def test_balls_are_counted_by_their_labels_so_that_a_missing_one_shows() -> None:
    script = tuple(step for step in small_script() if not (isinstance(step, PublishBall) and step.label == Overs(0, 3)))

    first, _ = page_at(END, small_game(), script)["content"]["innings"]

    assert [over["totalBalls"] for over in first["inningOvers"]] == [6, 12]
    assert len(first["inningOvers"][0]["balls"]) == 6


def test_batters_are_out_not_out_or_yet_to_bat() -> None:
    (shown,) = innings_at(65)
    gone, other, *rest = shown["inningBatsmen"]

    assert (gone["isOut"], gone["dismissalType"], gone["dismissalText"]["short"]) == (True, 1, "caught")
    assert (other["isOut"], other["dismissalType"], other["currentType"]) == (False, 12, 2)
    assert {(batter["battedType"], batter["runs"], batter["dismissalType"]) for batter in rest} == {("DNB", None, None)}
    assert len(rest) == 9
    (fall,) = shown["inningFallOfWickets"]
    assert (fall["fowOrder"], fall["fowRuns"], fall["fowOvers"]) == (0, 8, 0.5)


def test_bowlers_have_their_figures() -> None:
    first, _ = innings_at(END)

    figures = {
        bowler["player"]["longName"]: (bowler["overs"], bowler["conceded"], bowler["wickets"])
        for bowler in first["inningBowlers"]
    }

    assert figures == {"Heron 9": (1, 12, 1), "Heron 8": (1, 6, 0)}


def test_super_overs_stand_apart_under_their_running_numbers() -> None:
    game = super_over_game()

    content = page_at(END, game, steady(game))["content"]

    assert [innings["inningNumber"] for innings in content["innings"]] == [1, 2]
    assert [innings["inningNumber"] for innings in content["superOverInnings"]] == [3, 4]
    assert [(innings["totalOvers"], innings["lead"]) for innings in content["superOverInnings"]] == [(1, 4), (1, 0)]


@pytest.mark.parametrize("kind", ["t20", "t20-rain", "odi", "test"])
def test_sums_agree_at_the_end_of_every_kind_of_match(kind: str) -> None:
    game = play(kind, 3, 1)

    content = page_at(10_000_000, game, script_for(game, 3))["content"]

    shown = content["innings"] + content["superOverInnings"]
    assert [innings["runs"] for innings in shown] == [innings.runs for innings in game.innings]
    for innings in shown:
        assert sum(over["overRuns"] for over in innings["inningOvers"]) == innings["runs"]
        assert len(innings["inningFallOfWickets"]) == innings["wickets"]
        batted = sum(batter["runs"] or 0 for batter in innings["inningBatsmen"])
        assert batted + innings["extras"] == innings["runs"]
