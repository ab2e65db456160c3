"""Adding up an innings, and comparing it with a scoreboard."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from longstop.model.data_finding import FindingKind
from longstop.model.event import Event, EventKey
from longstop.sports.cricket.align import POLLS_AGAINST_EVENTS, is_step_back
from longstop.sports.cricket.model import (
    CricketKind,
    CricketState,
    Difference,
    Dismissal,
    InningsSummary,
    Overs,
    Result,
    ResultKind,
    Scorecard,
    ScorecardInnings,
)
from longstop.sports.cricket.totals_gaps_and_derived_events import (
    compare,
    find,
    gaps,
    milestones,
    pair_of,
    score_of,
    sides,
    tally,
)
from tests.builders import board, delivery, event, fold, match_state, score, seen, wicket

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


# --- innings and result ----------------------------------------------------------------------------------------------


CARD = Scorecard(
    innings=(
        ScorecardInnings(number=1, team="T1", score=score("50/3 10.0")),
        ScorecardInnings(number=2, team="T2", score=score("40/9 9.0")),
    )
)
CLOSED = InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0))
BATTED = {1: "T1"}
INNINGS_1 = EventKey(CricketKind.INNINGS, (1,))
RESULT = EventKey("result")
BREAK = board(headline="Innings Break", is_innings_over=True, first=score("50/3 10.0"))


@pytest.mark.parametrize(("newest", "pair"), [(0, (1, 2)), (1, (1, 2)), (2, (1, 2)), (3, (3, 4)), (4, (3, 4))])
def test_a_super_over_is_a_new_pair(newest: int, pair: tuple[int, int]) -> None:
    assert pair_of(newest) == pair


def test_a_score_comes_from_the_board_while_it_shows_it_and_then_from_the_card() -> None:
    shown = board(first=score("51/3 10.1"), second=score("0/0 0.0"))

    assert score_of(1, 1, shown, CARD) == score("51/3 10.1")
    assert score_of(2, 1, shown, CARD) == score("40/9 9.0")
    assert score_of(1, 3, shown, CARD) == score("50/3 10.0")
    assert score_of(1, 3, shown, None) is None


def test_a_zero_filled_innings_of_the_card_is_no_score_either() -> None:
    zeros = Scorecard(innings=(ScorecardInnings(number=1, team="T1", score=score("0/0 0.0")),))

    assert score_of(1, 3, board(), zeros) is None


def test_a_total_of_fewer_balls_than_the_list_has_ends_no_innings() -> None:
    older = board(batting="T2", bowling="T1", first=score("44/3 9.4"), second=score("1/0 0.1"))
    last = seen("9", delivery("9.6"), innings=1)
    stale = Scorecard(innings=(ScorecardInnings(number=1, team="T1", score=score("45/3 9.5")),))

    assert milestones({}, 2, older, None, [last]).reached == ()
    assert milestones({}, 2, older, stale, [last]).reached == ()
    assert milestones(fold(event("delivery:1:9:6", "9", delivery("9.6"))), 2, older, None).reached == ()
    assert [each.content for each in milestones({}, 2, older, CARD, [last], BATTED).reached] == [CLOSED]


@pytest.mark.parametrize("shown", ["9.6", "10.0"])
def test_a_closed_innings_stays_closed_however_its_last_over_is_written(shown: str) -> None:
    closed = fold(event("innings:1", "innings-1", replace(CLOSED, overs=Overs(9, 6))))

    reached = milestones(closed, 1, board(first=score(f"50/3 {shown}")), None)

    assert INNINGS_1 not in reached.withdrawn
    assert not is_step_back(replace(CLOSED, overs=Overs(10, 0)), replace(CLOSED, overs=Overs(9, 6)))


def test_a_wide_has_the_label_of_a_ball_that_was_not_bowled_yet() -> None:
    won_by_a_wide = board(batting="T2", bowling="T1", first=score("50/3 9.4"), second=score("1/0 0.1"))

    reached = milestones({}, 2, won_by_a_wide, None, [seen("9", delivery("9.5", wides=1), innings=1)]).reached

    assert len(reached) == 1


SWAPPED = Scorecard(
    innings=tuple(
        ScorecardInnings(number=each.number, team=other, score=each.score)
        for each, other in zip(CARD.innings, ("T2", "T1"), strict=True)
    )
)
CHASE = board(batting="T2", bowling="T1", first=score("50/3 10.0"), second=score("1/0 0.1"))


def known_sides(sides: dict[int, str] | None = None, *events: Event, suspects: Iterable[str] = ()) -> CricketState:
    return match_state(fold(*events), sides=sides or {}, suspects=frozenset(suspects))


def test_sides_are_known_from_play_and_not_from_a_break() -> None:
    assert sides(known_sides(), 1, board(), None)[0] == {1: "T1"}
    assert sides(known_sides(), 2, CHASE, None)[0] == {2: "T2", 1: "T1"}
    assert sides(known_sides(), 1, BREAK, None)[0] == {}
    assert sides(known_sides(), 1, BREAK, CARD)[0] == {1: "T1", 2: "T2"}


def test_a_card_with_swapped_sides_changes_nothing_that_is_known_and_hides_what_play_shows() -> None:
    assert sides(known_sides({1: "T1"}), 1, BREAK, SWAPPED) == ({1: "T1", 2: "T1"}, frozenset())
    assert sides(known_sides({1: "T1", 2: "T2"}), 2, CHASE, SWAPPED) == ({1: "T1", 2: "T2"}, frozenset())
    assert sides(known_sides(), 2, CHASE, SWAPPED) == ({}, frozenset())


def test_play_that_contradicts_what_is_known_counts_when_five_polls_agree() -> None:
    """Scoreboard and scorecard of one moment may be swapped alike."""
    wrong, suspects = {1: "T2", 2: "T1"}, frozenset[str]()

    for _ in range(POLLS_AGAINST_EVENTS - 1):
        batting, suspects = sides(known_sides(wrong, suspects=suspects), 2, CHASE, CARD)
        assert (batting, len(suspects)) == (wrong, 2)
    batting, suspects = sides(known_sides(wrong, suspects=suspects), 2, CHASE, CARD)

    assert (batting, suspects) == ({1: "T1", 2: "T2"}, frozenset())


def test_sides_that_turn_before_the_next_innings_has_a_ball_say_nothing() -> None:
    closed = InningsSummary(team="T2", runs=40, wickets=9, overs=Overs(9, 0))
    turned = board(batting="T1", bowling="T2", first=score("50/3 10.0"), second=score("40/9 9.0"))
    state = known_sides({1: "T1", 2: "T2"}, event("innings:2", "innings-2", closed))

    assert sides(state, 2, turned, None) == ({1: "T1", 2: "T2"}, frozenset())


def test_a_break_closes_the_innings_with_the_boards_total() -> None:
    [reached] = milestones({}, 1, BREAK, CARD, batting=BATTED).reached

    assert (reached.kind, reached.innings, reached.content) == (CricketKind.INNINGS, 1, CLOSED)


def test_play_closes_the_innings_before() -> None:
    playing = board(batting="T2", bowling="T1", first=score("50/3 10.0"), second=score("1/0 0.1"))

    assert [each.content for each in milestones({}, 2, playing, None, batting=BATTED).reached] == [CLOSED]


def test_an_innings_under_way_is_not_closed() -> None:
    assert milestones({}, 1, board(first=score("50/3 10.0")), CARD).reached == ()


def test_a_closed_innings_stays_closed_while_no_further_ball_of_it_is_shown() -> None:
    known = fold(event("innings:1", "innings-1", CLOSED))
    waiting = board(batting="T2", bowling="T1", first=score("50/3 10.0"), second=None)

    found = milestones(known, 1, waiting, None)

    assert (found.reached, INNINGS_1 in found.withdrawn) == ((), False)


def test_an_older_copy_from_before_its_end_does_not_change_a_closed_innings() -> None:
    known = fold(event("innings:1", "innings-1", CLOSED))

    found = milestones(known, 1, board(first=score("48/3 10.0")), None)

    assert (found.reached, INNINGS_1 in found.withdrawn) == ((), False)


def test_a_closed_innings_that_goes_on_is_withdrawn() -> None:
    known = fold(event("innings:1", "innings-1", CLOSED))

    found = milestones(known, 1, board(first=score("54/3 10.1")), None)

    assert (found.reached, INNINGS_1 in found.withdrawn) == ((), True)


def test_a_result_is_reached_and_its_absence_withdraws_it() -> None:
    result = Result(outcome=ResultKind.NO_RESULT, text="No result")

    with_result = milestones({}, 0, board(result=result, is_innings_over=True), None)
    without = milestones({}, 0, board(), None)

    assert [each.content for each in with_result.reached] == [result]
    assert (RESULT in with_result.withdrawn, RESULT in without.withdrawn) == (False, True)


# --- what is missing or does not add up ------------------------------------------------------------------------------


def places(*labels: str, **runs: int) -> list[tuple[str, str]]:
    return [(found.place, found.detail) for found in gaps(1, [delivery(label, **runs) for label in labels])]


def test_balls_in_a_row_leave_no_gap() -> None:
    assert places("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "1.1") == []


def test_a_ball_that_must_have_been_bowled_is_a_gap() -> None:
    assert places("0.1", "0.4") == [("1:0", "missing: ball 2, 3")]


def test_a_first_over_that_is_not_there_is_a_gap() -> None:
    assert places("1.1") == [("1:0", "the whole over is missing")]


def test_overs_that_are_not_there_are_gaps_one_by_one() -> None:
    assert [place for place, _ in places("0.1", "3.1")] == ["1:1", "1:2"]


def test_an_over_of_five_balls_is_no_gap() -> None:
    assert places("0.1", "0.2", "0.3", "0.4", "0.5", "1.1") == []


def test_a_wide_carries_the_label_of_the_ball_to_come_and_proves_nothing() -> None:
    assert places("0.4", wides=1) == []


def test_findings_are_those_of_all_innings_and_boards() -> None:
    events = fold(
        event("delivery:1:0:1", "1", delivery("0.2")),
        event("delivery:2:0:1", "2", delivery("0.1")),
        event("delivery:2:0:2", "3", delivery("0.2"), op="void", position=None),
    )

    found = find(match_state(events), {1: Difference(), 2: Difference(runs=2)})

    assert [(each.kind, each.place) for each in found] == [(FindingKind.MISMATCH, "2"), (FindingKind.GAP, "1:0")]
