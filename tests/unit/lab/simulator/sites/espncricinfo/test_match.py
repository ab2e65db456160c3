from datetime import timedelta
from typing import Any

import pytest

from longstop.clock import to_iso
from longstop.sports.cricket.model import Result, ResultKind
from longstop_lab.simulator.cricket.script import EndMatch
from longstop_lab.simulator.cricket.world import play, script_for
from longstop_lab.simulator.sites.espncricinfo.ids import team_number
from longstop_lab.simulator.sites.espncricinfo.match import stamped
from tests.unit.lab.simulator.espn_pages import END, one_over_game, page_at, steady, super_over_game
from tests.unit.lab.simulator.games import NOON

SOON, IN_PLAY, BETWEEN = 5, 55, 155


def match_at(seconds: float) -> dict[str, Any]:
    shown: dict[str, Any] = page_at(seconds)["match"]
    return shown


def finished(result: Result) -> dict[str, Any]:
    game = one_over_game(result=result)
    shown: dict[str, Any] = page_at(END, game, steady(game))["match"]
    return shown


@pytest.mark.parametrize(
    ("seconds", "stage", "state", "status"),
    [
        (SOON, "SCHEDULED", "PRE", "Not started"),
        (IN_PLAY, "RUNNING", "LIVE", "Live"),
        (BETWEEN, "RUNNING", "LIVE", "Innings break"),
        (END, "FINISHED", "POST", "No result"),
    ],
)
def test_stage_state_and_status_follow_the_match(seconds: float, stage: str, state: str, status: str) -> None:
    shown = match_at(seconds)

    assert (shown["stage"], shown["state"], shown["status"]) == (stage, state, status)


def test_the_start_is_a_moment_in_milliseconds() -> None:
    assert match_at(SOON)["startTime"] == to_iso(NOON)


def test_live_overs_count_deliveries_and_live_balls_do_not_quite_agree() -> None:
    before, shown = match_at(SOON), match_at(125)

    assert (before["liveOvers"], before["liveBalls"]) == (None, None)
    assert (shown["liveInning"], shown["liveOvers"]) == (1, 1.05)
    game = play("t20", 1, 0)
    ended = page_at(END, game, script_for(game, 1))["match"]
    assert ended["liveBalls"] == 115


def test_scores_are_texts_and_only_the_side_batting_says_its_overs() -> None:
    early, late = match_at(IN_PLAY)["teams"], match_at(END)["teams"]

    assert [(team["score"], team["scoreInfo"], team["isLive"]) for team in early] == [
        ("8/0", "0.4/20 ov", True),
        (None, None, False),
    ]
    assert [(team["score"], team["scoreInfo"], team["isLive"]) for team in late] == [
        ("20/1", None, False),
        ("10/0", "0.2/2 ov, T:21", False),
    ]
    assert [team["inningNumbers"] for team in late] == [[1], [2]]


def test_a_test_match_shows_both_innings_of_a_side_and_no_wickets_when_all_are_gone() -> None:
    game = next(
        game
        for game in (play("test", 1, index) for index in range(40))
        if len(game.innings) >= 3 and game.innings[0].wickets == 10
    )

    shown = page_at(10_000_000, game, script_for(game, 1))["match"]

    scores = {team["team"]["id"]: team["score"] for team in shown["teams"]}
    assert scores[team_number(game.innings[0].batting.key)].split(" & ")[0] == str(game.innings[0].runs)
    assert any(" & " in score for score in scores.values())
    assert (shown["format"], shown["scheduledOvers"], shown["dayType"]) == ("TEST", None, "MULTI")


def test_a_win_by_runs_leaves_junk_in_the_wickets() -> None:
    shown = finished(Result(outcome=ResultKind.WON, text="Rovers won by 17 runs"))
    data = shown["statusData"]["statusTextLangData"]

    assert shown["statusData"]["statusTextLangKey"] == "match_status_text_won_runs"
    assert (data["wonByRuns"], data["wonByWickets"]) == (17, 10)
    assert shown["winnerTeamId"] == data["winnerTeamId"] == team_number("R")
    assert (shown["status"], shown["statusText"]) == ("RESULT", "Rovers won by 17 runs")


def test_a_win_by_wickets_leaves_junk_in_the_runs() -> None:
    shown = finished(Result(outcome=ResultKind.WON, text="Herons won by 3 wickets"))
    data = shown["statusData"]["statusTextLangData"]

    assert shown["statusData"]["statusTextLangKey"] == "match_status_text_won_wickets"
    assert (data["wonByRuns"], data["wonByWickets"]) == (1, 3)
    assert shown["winnerTeamId"] == team_number("H")


@pytest.mark.parametrize(
    ("outcome", "text", "status", "key"),
    [
        (ResultKind.DRAW, "Match drawn", "RESULT", "match_status_text_drawn"),
        (ResultKind.ABANDONED, "Match abandoned", "Abandoned", "match_status_text_abandoned"),
        (ResultKind.NO_RESULT, "No result", "No result", "match_status_text_no_result"),
    ],
)
def test_other_ends_have_no_winner(outcome: ResultKind, text: str, status: str, key: str) -> None:
    shown = finished(Result(outcome=outcome, text=text))

    assert (shown["status"], shown["statusText"], shown["winnerTeamId"]) == (status, text, None)
    assert shown["statusData"]["statusTextLangKey"] == key


def test_a_super_over_decides_a_tie() -> None:
    game = super_over_game()
    script = steady(game)

    during = page_at(next(step.at for step in script if isinstance(step, EndMatch)) - 1, game, script)["match"]
    after = page_at(END, game, script)["match"]

    assert during["isSuperOver"] is True
    assert (after["winnerTeamId"], after["tiebreakerTeamId"]) == (None, team_number("H"))
    assert [team["inningNumbers"] for team in after["teams"]] == [[1], [2]]


def test_the_servers_clock_is_put_into_an_encoded_match() -> None:
    assert stamped(b'{"id":1}', NOON + timedelta(milliseconds=25)) == (
        b'{"id":1,"generatedAt":"2026-11-15T12:00:00.025Z"}'
    )
