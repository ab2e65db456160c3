from typing import Any

import pytest

from longstop.clock import from_iso
from longstop.sports.cricket.model import Dismissal, Overs, Result, ResultKind, Runs
from longstop_lab.simulator.cricket.game import Game, Innings, Out, Over
from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.script import PublishBall, WithdrawBall
from longstop_lab.simulator.cricket.world import script_for
from longstop_lab.simulator.sites.espncricinfo.balls import DISMISSAL_TYPES, WINDOW, overs_unique
from longstop_lab.simulator.sites.espncricinfo.ids import player_number
from tests.unit.lab.simulator.espn_pages import (
    END,
    TWO_GONE,
    one_over_game,
    page_at,
    page_of,
    steady,
    super_over_game,
    world_at,
)
from tests.unit.lab.simulator.games import HERONS, NOON, ROVERS, ball, small_game, small_script


def comments(page: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the balls of the window, newest first."""
    shown: list[dict[str, Any]] = page["content"]["recentBallCommentary"]["ballComments"]
    return shown


def wide_over() -> Game:
    """Return a match whose only over has ten deliveries."""
    balls = (*(ball(wides=1) for _ in range(4)), *(ball() for _ in range(6)))
    return Game(
        key="11EF",
        number=9,
        match_format="T20",
        sides=(ROVERS, HERONS),
        innings=(Innings(batting=ROVERS, bowling=HERONS, overs=(Over(number=0, balls=balls),)),),
        result=Result(outcome=ResultKind.NO_RESULT, text="No result"),
    )


def test_the_newest_ball_stands_first_and_ids_grow() -> None:
    shown = comments(page_at(55))

    assert [entry["oversActual"] for entry in shown] == [0.4, 0.3, 0.2, 0.2, 0.1]
    assert [entry["id"] for entry in shown] == sorted((entry["id"] for entry in shown), reverse=True)


def test_the_window_holds_the_last_twenty_balls_and_slides() -> None:
    game = play_t20(1, 0)
    script = script_for(game, 1)
    times = [step.at for step in script if isinstance(step, PublishBall)]

    early, late = (comments(page_at(times[nth], game, script)) for nth in (60, 75))

    assert len(early) == len(late) == WINDOW
    assert early[0]["id"] < late[0]["id"]
    assert early[-1]["id"] < late[-1]["id"]


def test_the_window_reaches_over_the_end_of_an_innings() -> None:
    shown = comments(page_at(END))

    assert [entry["inningNumber"] for entry in shown] == [2] * 3 + [1] * 13


def test_super_over_balls_have_a_list_of_their_own() -> None:
    game = super_over_game()
    commentary = page_at(END, game, steady(game))["content"]["recentBallCommentary"]

    assert {entry["inningNumber"] for entry in commentary["ballComments"]} == {1, 2}
    assert [entry["inningNumber"] for entry in commentary["superOverBallComments"]] == [4, 3]


def test_the_tenth_delivery_of_an_over_reads_as_the_first_ball_elsewhere() -> None:
    game = wide_over()
    shown = comments(page_at(END, game, steady(game)))[::-1]

    assert [entry["oversUnique"] for entry in shown] == [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
    assert [entry["oversActual"] for entry in shown] == [0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert [entry["ballNumber"] for entry in shown] == list(range(1, 11))


@pytest.mark.parametrize(
    ("over", "nth", "number"), [(16, 8, "16.08"), (19, 6, "19.06"), (0, 10, "0.1"), (7, 9, "7.09")]
)
def test_an_over_float_is_short_as_on_the_page(over: int, nth: int, number: str) -> None:
    assert repr(overs_unique(over, nth)) == number


def test_runs_are_given_by_kind_and_a_rope_by_its_flag() -> None:
    shown = comments(page_at(75))
    by_label = {(entry["oversActual"], entry["ballNumber"]): entry for entry in shown}
    wide, four, legbyes = by_label[0.2, 2], by_label[0.3, 4], by_label[0.4, 5]

    assert (wide["wides"], wide["totalRuns"], wide["batsmanRuns"]) == (1, 1, 0)
    assert (four["isFour"], four["isSix"], four["batsmanRuns"]) == (True, False, 4)
    assert (legbyes["legbyes"], legbyes["totalRuns"]) == (2, 2)


def test_only_the_first_wicket_of_a_ball_is_shown() -> None:
    game = one_over_game(*TWO_GONE)
    first = comments(page_at(END, game, steady(game)))[-1]

    assert (first["isWicket"], first["dismissalType"], first["outPlayerId"]) == (True, 4, player_number("R1"))
    assert first["dismissalText"]["short"] == "run out"
    assert "Rover 1" in first["dismissalText"]["commentary"]
    assert first["totalInningWickets"] == 1


@pytest.mark.parametrize(
    ("kind", "counts", "number", "short", "long"),
    [
        (Dismissal.CAUGHT, True, 1, "caught", "c sub b 9"),
        (Dismissal.BOWLED, True, 2, "bowled", " b 9"),
        (Dismissal.LBW, True, 3, "lbw", "lbw b 9"),
        (Dismissal.RUN_OUT, True, 4, "run out", "run out (sub)"),
        (Dismissal.HIT_WICKET, True, 6, "hit wicket", "hit wicket b 9"),
        (Dismissal.RETIRED, False, 11, "retired hurt", "retired hurt"),
        (Dismissal.RETIRED, True, 11, "retired out", "retired out"),
    ],
)
def test_a_dismissal_has_a_number_and_words(kind: Dismissal, counts: bool, number: int, short: str, long: str) -> None:
    game = one_over_game(Out(kind=kind, player="R0", counts=counts))
    first = comments(page_at(END, game, steady(game)))[-1]

    assert (first["dismissalType"], first["dismissalText"]["short"]) == (number, short)
    assert first["dismissalText"]["long"] == long


def test_every_dismissal_has_its_own_number() -> None:
    assert DISMISSAL_TYPES.keys() == set(Dismissal)
    assert len(set(DISMISSAL_TYPES.values())) == len(DISMISSAL_TYPES)


def test_the_last_ball_of_an_over_carries_the_over_once_it_has_ended() -> None:
    before, after = (comments(page_at(seconds)) for seconds in (73, 75))

    assert [entry["over"] for entry in before if entry["overNumber"] == 1] == [None] * 7
    (summary,) = (entry["over"] for entry in after if entry["over"])
    assert (summary["overNumber"], summary["overRuns"], summary["totalRuns"], summary["totalWickets"]) == (1, 14, 14, 1)


def test_a_correction_moves_the_second_moment_only() -> None:
    script = small_script()
    first = next(step for step in script if isinstance(step, PublishBall))
    wrong = PublishBall(at=30, id=first.id, innings=1, label=first.label, ball=ball(batter=2))
    before, after = (
        comments(page_at(seconds, small_game(), tuple(sorted((*script, wrong), key=lambda step: step.at))))[-1]
        for seconds in (29, 31)
    )

    assert (before["batsmanRuns"], after["batsmanRuns"]) == (1, 2)
    assert before["timestamp"] == after["timestamp"]
    assert from_iso(before["modified"]) < from_iso(after["modified"]) == NOON.replace(second=30)


def test_moments_are_whole_seconds_and_never_ahead_of_the_page() -> None:
    page = page_at(55)

    for entry in comments(page):
        assert entry["timestamp"].endswith(".000Z")
        assert 2 <= (from_iso(entry["modified"]) - from_iso(entry["timestamp"])).total_seconds() <= 3
        assert entry["modified"] <= page["match"]["generatedAt"]


def test_a_ball_published_late_moves_those_after_it_but_not_their_ids() -> None:
    game, script = small_game(), small_script()
    late = next(step for step in script if isinstance(step, PublishBall) and step.label == Overs(0, 2))
    others = [step for step in script if step is not late]
    world, _ = world_at(55, game, tuple(sorted((*others, PublishBall(at=60, **_fields(late))), key=lambda x: x.at)))
    before = {entry["id"]: entry["ballNumber"] for entry in comments(page_of(world))}
    world.advance_to(61)

    after = {entry["id"]: entry["ballNumber"] for entry in comments(page_of(world))}

    assert before.keys() < after.keys()
    assert [after[id_] - number for id_, number in before.items()] == [1, 1, 1, 0]


def _fields(step: PublishBall) -> dict[str, Any]:
    return {"id": step.id, "innings": step.innings, "label": step.label, "ball": step.ball}


def test_a_ball_that_was_taken_back_leaves_the_window() -> None:
    script = small_script()
    first = next(step for step in script if isinstance(step, PublishBall))
    world, _ = world_at(55, small_game(), (*script[:3], WithdrawBall(at=50, id=first.id)))

    shown = comments(page_of(world))

    assert len(shown) == 2
    assert shown[-1]["wides"] == Runs(wides=1).wides
