from longstop_lab.simulator.resources import had, par, resources


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
