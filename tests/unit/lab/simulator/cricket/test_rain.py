"""Matches in the rain: shortened, re-targeted, washed out."""

from functools import cache
from random import Random

import pytest

from longstop.sports.cricket.model import ResultKind
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Game, Innings
from longstop_lab.simulator.cricket.rain import forecast, had, par, resources
from longstop_lab.simulator.cricket.script import Announce, Retarget
from longstop_lab.simulator.cricket.world import play, script_for

SEED = 11
METHOD = " (D/L method)"
KINDS = {"t20-rain": (20, 150), "odi": (50, 60)}


@cache
def games(kind: str) -> list[Game]:
    return [play(kind, SEED, index) for index in range(KINDS[kind][1])]


def needed(innings: Innings) -> int:
    assert innings.final_target is not None
    return innings.final_target.runs


def is_washed_out(game: Game) -> bool:
    """Return whether rain ended the match: its last innings has no natural end."""
    last = game.innings[-1]
    return bool(last.pauses) and last.pauses[-1].after == sum(1 for _ in last.balls)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_match_and_script(kind: str) -> None:
    game, again = play(kind, 3, 5), play(kind, 3, 5)

    assert game == again
    assert script_for(game, 3) == script_for(again, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_no_innings_is_longer_than_its_target_allows(kind: str) -> None:
    overs, _ = KINDS[kind]
    for game in games(kind):
        for innings in game.innings:
            limit = innings.final_target.overs.over if innings.final_target else overs
            assert len(innings.overs) <= limit <= overs


@pytest.mark.parametrize("kind", KINDS)
def test_results_say_what_the_innings_and_the_target_say(kind: str) -> None:
    for game in games(kind):
        if game.result.outcome is not ResultKind.WON or is_washed_out(game):
            continue
        opened, chased = game.innings
        method = METHOD if needed(chased) != opened.runs + 1 else ""
        if chased.runs >= needed(chased):
            left = 10 - chased.wickets
            margin = f"{chased.batting.name} won by {left} wicket{'' if left == 1 else 's'}"
        else:
            by = needed(chased) - 1 - chased.runs
            margin = f"{opened.batting.name} won by {by} run{'' if by == 1 else 's'}"
        assert game.result.text == margin + method


@pytest.mark.parametrize("kind", KINDS)
def test_a_tie_is_one_run_short_of_the_target_and_goes_to_a_super_over(kind: str) -> None:
    tied = [game for game in games(kind) if game.result.outcome is ResultKind.TIE and not is_washed_out(game)]

    assert tied
    for game in tied:
        assert game.innings[1].runs == needed(game.innings[1]) - 1
        assert [innings.is_super_over for innings in game.innings[2:4]] == [True, True]


def test_too_little_play_is_no_result() -> None:
    outcomes = {game.result.outcome for game in games("t20-rain")}

    assert ResultKind.NO_RESULT in outcomes
    for game in games("t20-rain"):
        if game.result.outcome is ResultKind.NO_RESULT:
            assert len(game.innings) == 1 or len(game.innings[1].overs) < 5
            assert game.result.text == "No result"


def test_who_is_ahead_of_the_par_score_when_it_pours_has_won() -> None:
    decided = [game for game in games("t20-rain") if len(game.innings) == 2 and is_washed_out(game)]
    winners = {game.result.text.partition(" won by ")[0] for game in decided if game.result.outcome is ResultKind.WON}

    assert winners & {game.innings[0].batting.name for game in decided}
    assert winners & {game.innings[1].batting.name for game in decided}
    assert all(METHOD in game.result.text for game in decided if game.result.outcome is ResultKind.WON)


def test_a_target_revised_in_the_chase_is_shown_after_the_rain_and_not_before() -> None:
    game = next(game for game in games("t20-rain") if any(pause.target for pause in game.innings[-1].pauses))
    board, targets = Board(game), []
    for step in script_for(game, SEED):
        board.apply(step)
        targets.append((type(step), board.target(2)))

    revised = game.innings[1].final_target
    assert targets[0][1] == game.innings[1].target != revised
    assert next(kind for kind, target in targets if target == revised) is Retarget
    assert targets[-1][1] == revised


def test_rain_may_come_before_the_first_ball() -> None:
    game = next(game for game in games("t20-rain") if game.innings[0].pauses and game.innings[0].pauses[0].after == 0)

    first = script_for(game, SEED)[0]

    assert isinstance(first, Announce)
    assert first.text == "Rain"


def test_every_kind_of_weather_comes() -> None:
    weathers = [forecast(20, 5, Random(seed)) for seed in range(200)]

    assert any(weather.delay_seconds for weather in weathers)
    assert any(weather.is_over_after_first for weather in weathers)
    for nth in ("first", "second"):
        showers = [shower for weather in weathers if (shower := getattr(weather, nth))]
        assert any(shower.limit > shower.after for shower in showers)
        assert any(shower.limit == shower.after for shower in showers)


def test_overs_are_worth_less_the_more_wickets_are_down() -> None:
    worth = [resources(20, wickets) for wickets in range(11)]

    assert worth == sorted(worth, reverse=True)
    assert worth[10] == 0
    assert resources(20, 3) > resources(10, 3) > resources(0, 3) == 0


def test_a_side_that_lost_nothing_had_everything() -> None:
    assert had(20, after=8, wickets=3, limit=20) == resources(20, 0)


def test_lost_overs_cost_more_with_wickets_in_hand() -> None:
    assert had(20, after=8, wickets=0, limit=12) < had(20, after=8, wickets=8, limit=12)


def test_with_equal_means_the_par_score_is_the_score() -> None:
    for runs in range(60, 260):
        assert par(runs, resources(20, 0), resources(20, 0), 160) == runs


def test_with_less_to_spend_less_is_asked_and_with_more_more() -> None:
    assert par(160, 0.6, 0.5, 160) == 133
    assert par(160, 0.5, 0.75, 160) == 200
