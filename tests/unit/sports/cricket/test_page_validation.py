"""What is not believed."""

import pytest

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.sports.cricket.model import Scorecard, ScorecardInnings
from longstop.sports.cricket.page_validation import validate_board, validate_listed, validate_scorecard, validate_teams
from tests.builders import board, delivery, event, fold, listed, match_state, score, seen
from tests.readers import a_snapshot

FIRST_BALL = fold(event("delivery:1:0:1", "1"))
STATE = match_state(FIRST_BALL, board=board())


def test_the_sides_may_turn() -> None:
    validate_board(STATE, board(batting="T2", bowling="T1"))
    validate_board(STATE, board(batting="", bowling=""))
    validate_board(match_state(), board(batting="T8", bowling="T9"))


@pytest.mark.parametrize("sides", [("T1", "T9"), ("T8", "T9")])
def test_a_board_of_another_team_is_of_another_match(sides: tuple[str, str]) -> None:
    with pytest.raises(WrongMatch):
        validate_board(STATE, board(batting=sides[0], bowling=sides[1]))


def test_after_a_restart_the_stored_teams_are_known() -> None:
    """Names of another match that was stored by mistake may still be there."""
    served = b'{"teams": {"team_a": {"key": "T1"}, "team_b": {"key": "T2"}}}'
    names = {"T1": "Reds", "T2": "Blues", "T8": "Greens", "T9": "Greys"}
    state = match_state(FIRST_BALL, teams=names, snapshot=a_snapshot(payload=served))

    with pytest.raises(WrongMatch):
        validate_board(state, board(batting="T8", bowling="T9"))


def test_before_the_first_ball_the_sides_may_still_become_known() -> None:
    """A final is announced as "to be confirmed"."""
    announced = board(batting="TBC", bowling="TBD")
    state = match_state(board=announced, teams={"TBC": "To be confirmed", "TBD": "To be decided"})

    validate_board(state, board(batting="T1", bowling="T2"))


@pytest.mark.parametrize("teams", [{}, {"T1": "Reds"}, {"T1": "Reds Women"}, {"T9": "Greens"}])
def test_a_page_may_call_the_teams_by_their_names_and_by_unknown_ones(teams: dict[str, str]) -> None:
    validate_teams({"T1": "Reds", "T2": "Blues"}, teams)


def test_a_page_that_calls_a_team_by_the_name_of_the_other_has_their_keys_exchanged() -> None:
    with pytest.raises(
        WrongMatch, match=r"swapped the teams, .* team 'T2' the name 'Reds', which belongs to team 'T1'"
    ):
        validate_teams({"T1": "Reds", "T2": "Blues"}, {"T2": "Reds"})


@pytest.mark.req("JOB-6")
@pytest.mark.parametrize("innings", ["first", "second"])
def test_eleven_wickets_cannot_fall(innings: str) -> None:
    validate_board(STATE, board(**{innings: score("9/10 5.0")}))

    with pytest.raises(ImpossibleObservation, match="11 wickets"):
        validate_board(STATE, board(**{innings: score("9/11 5.0")}))


@pytest.mark.req("JOB-6")
@pytest.mark.parametrize(("name", "overs"), [("T10", 10), ("T20", 20), ("T20I", 20), ("ODI", 50)])
def test_a_format_has_its_overs_and_no_more(name: str, overs: int) -> None:
    last, beyond = seen("1", delivery(f"{overs - 1}.6")), seen("1", delivery(f"{overs}.1"))
    shown = board(match_format=name, first=score(f"9/0 {overs}.0"))
    validate_board(STATE, shown)
    validate_listed(listed(last), shown)

    with pytest.raises(ImpossibleObservation):
        validate_board(STATE, board(match_format=name, first=score(f"9/0 {overs + 1}.0")))
    with pytest.raises(ImpossibleObservation):
        validate_listed(listed(beyond), shown)


def test_a_test_match_has_no_last_over() -> None:
    validate_board(STATE, board(match_format="TEST", first=score("600/9 180.0")))
    validate_listed(listed(seen("1", delivery("180.1"))), board(match_format=None))


def test_a_scorecard_must_be_of_these_sides_and_possible() -> None:
    good = ScorecardInnings(number=1, team="T1", score=score("9/10 5.0"))
    validate_scorecard(Scorecard(innings=(good,)), board())

    with pytest.raises(WrongMatch):
        validate_scorecard(Scorecard(innings=(ScorecardInnings(number=1, team="T9", score=good.score),)), board())
    with pytest.raises(ImpossibleObservation):
        validate_scorecard(
            Scorecard(innings=(ScorecardInnings(number=1, team="T1", score=score("9/11 5.0")),)), board()
        )
