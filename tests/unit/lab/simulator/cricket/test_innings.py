from random import Random

from longstop.sports.cricket.model import Runs
from longstop_lab.simulator.cricket.game import Player, Side
from longstop_lab.simulator.cricket.innings import Conditions, Given, InningsInPlay, Squad
from tests.unit.lab.simulator.games import HERONS, ROVERS

ONES = Conditions(given=(Given(1, Runs(batter=1)),), wicket_share=0.0, overs_per_bowler=4)
WICKETS = Conditions(given=(Given(1, Runs()),), wicket_share=1.0, overs_per_bowler=4)
BENCH = Side(key="R", name="Rovers", players=ROVERS.players, substitutes=(Player(key="RS", name="Rover S"),))


def crease(
    conditions: Conditions = ONES, *, overs: int = 20, needed: int | None = None, seed: int = 1
) -> InningsInPlay:
    return InningsInPlay(Squad(ROVERS), Squad(HERONS), conditions, Random(seed), overs=overs, needed=needed)


def play(one: InningsInPlay) -> InningsInPlay:
    while one.is_open:
        one.play_over()
    return one


def test_an_innings_without_wickets_ends_with_its_overs() -> None:
    played = play(crease(overs=3))

    assert (len(played.overs), played.runs, played.wickets) == (3, 18, 0)
    assert not played.is_finished


def test_a_chase_ends_with_the_winning_run() -> None:
    played = play(crease(needed=20))

    assert (played.runs, played.needed, played.is_finished) == (20, 0, True)


def test_a_side_that_loses_a_wicket_a_ball_is_all_out_in_two_overs() -> None:
    played = play(crease(WICKETS))

    assert played.is_finished
    assert len(played.overs) <= 3
    assert played.wickets == sum(ball.wickets for over in played.overs for ball in over.balls)


def test_rain_takes_overs_while_the_innings_runs() -> None:
    one = crease()
    one.play_over()
    one.limit = 2

    play(one)

    assert len(one.overs) == 2


def test_an_over_that_is_cut_short_counts_only_what_was_bowled() -> None:
    one = crease()
    one.play_over()
    one.play_over()

    one.cut_short(2)

    assert (one.balls, one.runs, one.is_open) == (8, 8, False)


def test_a_substitute_takes_the_place_of_the_player_he_comes_for() -> None:
    squad = Squad(BENCH)

    came = squad.bring_on("R2")

    assert (came, squad.eleven[2], len(squad.eleven)) == ("RS", "RS", 11)


def test_an_impact_player_may_stand_elsewhere_in_the_order() -> None:
    squad = Squad(BENCH)

    squad.bring_on("R2", place=10)

    assert squad.eleven == ["R0", "R1", *(f"R{nth}" for nth in range(3, 11)), "RS"]


def test_without_a_bench_the_player_stays() -> None:
    squad = Squad(ROVERS)

    assert squad.bring_on("R2") == "R2"
    assert squad.eleven == [player.key for player in ROVERS.players]
