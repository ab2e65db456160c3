"""The payload that is served."""

from typing import Any

import msgspec
import pytest
from msgspec import ValidationError

from longstop.errors import ImpossibleObservation
from longstop.model.event import Op
from longstop.model.match import MatchStatus
from longstop.model.snapshot import canonical
from longstop.sports.cricket.model import (
    Batter,
    Board,
    Bowler,
    CricketState,
    InningsScore,
    InningsSummary,
    Overs,
    Result,
    ResultKind,
    RunTarget,
)
from longstop.sports.cricket.payload import CricketMatchV1, normalise, status_of, title_of
from tests.builders import board, delivery, event, fold, match_state, over_summary, score, wicket

RESULT = Result(outcome=ResultKind.WON, text="Reds won by 3 runs")
BALL = event("delivery:1:0:1", "10", delivery("0.1", 4))


def payload(state: CricketState, shown: Board) -> dict[str, Any]:
    shown_now: dict[str, Any] = msgspec.json.decode(canonical(normalise(state, shown)))
    return shown_now


@pytest.mark.req("FLD-3")
def test_what_no_one_said_is_absent() -> None:
    found = payload(match_state(), board(batting="", bowling="", match_format=None))

    assert found == {
        "schema_version": "cricket.match.v1",
        "matchId": 1,
        "match_id": "crex_M1",
        "domain_id": "crex",
        "title": "crex_M1",
        "status": "live",
        "score": {},
        "innings": [],
        "players": {},
        "metadata": {},
    }


@pytest.mark.req("MON-5", "FLD-2")
def test_a_match_in_play_is_reported_whole() -> None:
    state = match_state(fold(BALL), teams={"T1": "Reds"}, players={"B1": "Bea", "A1": "Ann"}, sides={1: "T1"})
    shown = board(
        first=score("4/0 0.1"),
        batters=(Batter(key="A1", runs=4, balls=1, on_strike=True), Batter(key="A2", runs=0, balls=0, on_strike=False)),
        bowler=Bowler(key="B1", runs=4, balls=1, wickets=0),
        target=RunTarget(runs=151, overs=Overs(17, 3)),
    )

    found = payload(state, shown)

    assert found["title"] == "Reds vs T2 - T20"
    assert found["teams"] == {"team_a": {"key": "T1", "name": "Reds"}, "team_b": {"key": "T2"}}
    assert found["score"] == {"team_a": {"runs": 4, "wickets": 0, "overs": {"over": 0, "ball": 1}}}
    assert found["innings"] == [
        {
            "runs": 4,
            "wickets": 0,
            "overs": {"over": 0, "ball": 1},
            "number": 1,
            "team": "T1",
            "is_closed": False,
        }
    ]
    assert found["batters"] == [
        {"key": "A1", "name": "Ann", "runs": 4, "balls": 1, "on_strike": True},
        {"key": "A2", "runs": 0, "balls": 0, "on_strike": False},
    ]
    assert found["bowler"] == {"key": "B1", "name": "Bea", "runs": 4, "balls": 1, "wickets": 0}
    assert found["target"] == {"runs": 151, "overs": {"over": 17, "ball": 3}}
    assert list(found["players"]) == ["A1", "B1"]
    assert found["current_innings"] == 1


def test_the_sides_do_not_turn_with_the_innings() -> None:
    state = match_state(fold(BALL, event("delivery:2:0:1", "20")), sides={1: "T1", 2: "T2"})

    found = payload(state, board(batting="T2", bowling="T1", first=score("9/0 1.0"), second=score("1/0 0.1")))

    assert [side["key"] for side in found["teams"].values()] == ["T1", "T2"]
    assert [found["score"][side]["runs"] for side in ("team_a", "team_b")] == [9, 1]


def test_an_innings_that_has_ended_stays_closed_when_the_text_is_cleared() -> None:
    closed = event("innings:1", "innings-1", InningsSummary(team="T1", runs=4, wickets=0, overs=Overs(0, 1)))

    state = match_state(fold(BALL, closed), sides={1: "T1"})
    found = payload(state, board(batting="T2", bowling="T1", first=score("4/0 0.1")))

    assert (found["innings"][0]["is_closed"], found["innings"][0]["team"]) == (True, "T1")


def test_without_a_scoreboard_the_events_are_added_up() -> None:
    found = payload(match_state(fold(BALL)), board())

    assert (found["innings"][0]["runs"], found["innings"][0]["overs"]) == (4, {"over": 0, "ball": 1})


def test_a_result_counts_once_it_is_stored() -> None:
    shown = board(status=MatchStatus.COMPLETED, headline=RESULT.text, result=RESULT, is_innings_over=True)
    stored = match_state(fold(BALL, event("result", "result", RESULT)))

    assert status_of(match_state(fold(BALL)), shown) is MatchStatus.LIVE
    assert status_of(stored, shown) is MatchStatus.COMPLETED
    assert "result" not in payload(match_state(fold(BALL)), shown)
    assert payload(stored, shown)["result"] == {"outcome": "won", "text": "Reds won by 3 runs"}


def test_a_result_taken_back_is_no_result() -> None:
    void = event("result", "result", RESULT, rev=2, op=Op.VOID)

    assert status_of(match_state(fold(void)), board(status=MatchStatus.BREAK)) is MatchStatus.BREAK


def test_a_title_uses_keys_until_names_are_known() -> None:
    assert title_of(match_state(), board()) == "T1 vs T2 - T20"
    assert title_of(match_state(teams={"T1": "Reds", "T2": "Blues"}), board(match_format=None)) == "Reds vs Blues"


@pytest.mark.parametrize(
    ("last", "reported"),
    [
        (BALL, ("runs", "delivery:1:0:1", "4")),
        (event("delivery:1:0:2", "20", delivery("0.2", 0, wicket())), ("wicket", "delivery:1:0:2", "A Batter bowled")),
        (event("over:1:0", "30", over_summary(4, 4, 1)), ("over_complete", "over:1:0", "4 runs, 4/1")),
        (
            event("innings:1", "i", InningsSummary(team="T1", runs=4, wickets=1, overs=Overs(1, 0))),
            ("innings_complete", "innings:1", "4/1 in 1.0 overs"),
        ),
        (event("result", "result", RESULT), ("result", "result", "Reds won by 3 runs")),
    ],
    ids=["runs", "wicket", "over", "innings", "result"],
)
def test_the_last_event_is_the_latest_milestone(last: Any, reported: tuple[str, str, str]) -> None:
    found = payload(match_state(fold(BALL, last)), board(first=score("4/1 0.2")))["last_event"]

    assert (found["type"], found["key"], found["description"]) == reported


# --- the schema ------------------------------------------------------------------------------------------------------


LEAST: dict[str, Any] = {
    "schema_version": "cricket.match.v1",
    "matchId": 7,
    "match_id": "crex_M1",
    "domain_id": "crex",
    "title": "Reds vs Blues",
    "status": "live",
    "score": {},
    "innings": [],
    "players": {},
    "metadata": {},
}


def dumped(**changes: Any) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(msgspec.convert({**LEAST, **changes}, CricketMatchV1))
    return shown


@pytest.mark.req("FLD-3")
def test_absent_and_zero_are_written_as_they_were_said() -> None:
    zero = {"team_a": {"runs": 0, "wickets": 0, "overs": {"over": 0, "ball": 0}}}

    assert dumped() == LEAST | {"innings": ()}
    assert dumped(score=zero)["score"] == zero


@pytest.mark.req("MON-5")
@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": "cricket.match.v2"},
        {"status": "finished"},
        {"matchId": "seven"},
        {"odds": 3},
        {"current_innings": 0},
        {"innings": [{"number": 1, "runs": -1, "wickets": 0, "overs": {"over": 0, "ball": 0}, "is_closed": False}]},
        {"last_event": {"type": "goal", "key": "x", "description": "x"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_the_schema_does_not_know_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        dumped(**change)


@pytest.mark.req("FLD-2")
@pytest.mark.parametrize("overs", [9.3, {"over": 9.5, "ball": 0}])
def test_overs_are_two_integers(overs: object) -> None:
    with pytest.raises(ValidationError):
        dumped(score={"team_a": {"runs": 0, "wickets": 0, "overs": overs}})


@pytest.mark.req("JOB-6")
def test_an_innings_has_at_most_ten_wickets() -> None:
    with pytest.raises(ValidationError):
        dumped(score={"team_a": {"runs": 0, "wickets": 11, "overs": {"over": 0, "ball": 0}}})


@pytest.mark.req("MON-5")
def test_a_payload_that_does_not_fit_its_schema_is_not_stored() -> None:
    with pytest.raises(ImpossibleObservation, match=r"does not fit its schema.*innings"):
        payload(match_state(), board(first=InningsScore(runs=-1, wickets=0, overs=Overs(0, 1))))
