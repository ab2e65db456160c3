import itertools
from random import Random

from msgspec.structs import replace

from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.script import (
    LIVE_PACE,
    EndInnings,
    EndMatch,
    EndOver,
    PublishBall,
    narrate,
)
from tests.unit.lab.simulator.games import small_game, small_script


def test_a_wide_carries_the_label_of_the_ball_to_come() -> None:
    balls = [step for step in small_script() if isinstance(step, PublishBall) and step.innings == 1]
    labels = list({step.id: str(step.label) for step in balls}.values())

    assert labels[:7] == ["0.1", "0.2", "0.2", "0.3", "0.4", "0.5", "0.6"]


def test_a_wicket_comes_after_its_ball_under_the_same_id() -> None:
    wicket = next(step for step in small_script() if isinstance(step, PublishBall) and step.ball.outs)
    ball = next(step for step in small_script() if isinstance(step, PublishBall) and step.id == wicket.id)

    assert ball.ball == replace(wicket.ball, outs=())
    assert wicket.at - ball.at == 2.5


def test_ids_follow_the_place_in_the_match_and_leave_room() -> None:
    ids = [step.id for step in small_script() if isinstance(step, PublishBall | EndOver)]

    assert ids == sorted(ids)
    gaps = {later - earlier for earlier, later in itertools.pairwise(ids)} - {0}
    assert min(gaps) >= 8_000


def test_only_a_whole_over_has_an_end() -> None:
    ends = [(step.innings, step.over) for step in small_script() if isinstance(step, EndOver)]

    assert ends == [(1, 0), (1, 1)]


def test_the_last_innings_is_left_to_the_result() -> None:
    script = small_script()

    assert [(step.innings, step.text) for step in script if isinstance(step, EndInnings)] == [(1, "Innings Break")]
    assert script[-1] == EndMatch(at=script[-1].at, result=small_game().result)


def test_a_super_over_is_announced() -> None:
    tied = next(game for game in (play_t20(1, index) for index in range(100)) if len(game.innings) == 4)

    texts = [step.text for step in narrate(tied, LIVE_PACE, Random(1)) if isinstance(step, EndInnings)]

    assert texts == ["Innings Break", "Super Over", "Innings Break"]


def test_gaps_are_those_of_real_matches() -> None:
    script = narrate(play_t20(1, 0), LIVE_PACE, Random(1))
    balls = {step.id: step for step in reversed(script) if isinstance(step, PublishBall)}
    ordered = sorted(balls.values(), key=lambda step: step.id)
    within = [
        later.at - earlier.at
        for earlier, later in itertools.pairwise(ordered)
        if (earlier.innings, earlier.label.over) == (later.innings, later.label.over)
    ]

    assert min(within) >= 14
    assert max(within) <= 60 + 9
