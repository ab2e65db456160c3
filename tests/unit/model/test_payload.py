"""The normalised payload: absent, null and zero stay apart, and nothing else comes in."""

from typing import Any

import pytest
from pydantic import ValidationError

from longstop.model.payload import CricketMatchV1, OversV1, ScoreV1

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
    return CricketMatchV1.model_validate({**LEAST, **changes}).model_dump(mode="json", exclude_unset=True)


@pytest.mark.req("FLD-3")
def test_absent_null_and_zero_are_written_as_they_were_said() -> None:
    zero = {"team_a": {"runs": 0, "wickets": 0, "overs": {"over": 0, "ball": 0}}}

    assert "headline" not in dumped()
    assert dumped(headline=None)["headline"] is None
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
def test_overs_are_two_integers() -> None:
    with pytest.raises(ValidationError):
        OversV1.model_validate(9.3)
    with pytest.raises(ValidationError):
        OversV1.model_validate({"over": 9.5, "ball": 0})


@pytest.mark.req("JOB-6")
def test_an_innings_has_at_most_ten_wickets() -> None:
    with pytest.raises(ValidationError):
        ScoreV1(runs=0, wickets=11, overs=OversV1(over=0, ball=0))
