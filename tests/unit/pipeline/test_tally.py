"""Adding up an innings, and comparing it with a scoreboard."""

import pytest

from longstop.model.cricket import Dismissal, Overs
from longstop.pipeline.tally import Difference, compare, tally
from tests.builders import delivery, score, wicket

RETIRED = wicket(Dismissal.RETIRED)


def test_every_kind_of_run_counts_and_only_legal_balls_move_the_over() -> None:
    found = tally(
        [
            delivery("2.1", 4),
            delivery("2.2", wides=5),
            delivery("2.2", 1, noballs=1),
            delivery("2.2", legbyes=2),
            delivery("2.3", byes=1, penalty=5),
        ],
        (),
    )

    assert (found.runs, found.overs) == (19, Overs(2, 3))


def test_no_ball_bowled_is_no_over() -> None:
    assert tally([], ()).overs == Overs(0, 0)


@pytest.mark.parametrize("balls", [5, 6, 7])
def test_an_over_that_was_summed_up_has_ended_however_many_balls_it_had(balls: int) -> None:
    deliveries = [delivery(f"3.{ball}") for ball in range(1, balls + 1)]

    assert tally(deliveries, {3}).overs == Overs(4, 0)
    assert tally(deliveries, ()).overs == Overs(3, balls)


def test_equal_totals_make_no_difference() -> None:
    assert not compare(tally([delivery("0.1", 4)], ()), score("4/0 0.1"))


def test_the_sixth_ball_and_the_next_over_are_one_moment() -> None:
    six = tally([delivery(f"9.{ball}", 1) for ball in range(1, 7)], ())

    assert compare(six, score("6/0 10.0")) == Difference()


def test_a_difference_says_what_the_scoreboard_shows_beyond_the_events() -> None:
    found = compare(tally([delivery("0.1", 4, wicket())], ()), score("7/0 0.3"))

    assert found == Difference(3, -1, 2)
    assert str(found) == "the scoreboard shows +3 runs, -1 wickets, +2 balls"


@pytest.mark.parametrize(("wickets", "difference"), [(1, 0), (2, 0), (3, 1), (0, -1)])
def test_a_scoreboard_may_or_may_not_count_a_batter_who_retired(wickets: int, difference: int) -> None:
    ours = tally([delivery("0.1", 0, wicket(), RETIRED)], ())

    assert compare(ours, score(f"0/{wickets} 0.1")).wickets == difference
