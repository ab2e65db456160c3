"""The payload's optional fields: served as far as the source shows them, absent otherwise."""

from typing import Any

import pytest

from longstop.model.match import MatchStatus
from tests.builders import NOW
from tests.football_site import LookingAtFootball, card, event, goal

ENOUGH = 6
OPTIONAL = ("status_detail", "clock", "added_time", "var_in_progress", "tie")
SHOWN: dict[str, Any] = {
    "tournament": {"name": "Premier League", "category": {"name": "Ruritania", "country": {"name": "Ruritania"}}},
    "roundInfo": {"round": 27, "name": "Quarterfinals"},
    "venue": {"name": "The Quay", "city": {"name": "Port Élan"}},
    "referee": {"name": "A. Whistle"},
    "statusTime": {"initial": 2700, "max": 5400, "timestamp": int(NOW.timestamp())},
    "time": {"injuryTime1": 4},
    "previousLegEventId": 70,
    "varInProgress": {"homeTeam": False, "awayTeam": True},
}


async def served(*events: dict[str, Any], incidents: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the payload after one poll of each event, and enough of the last to confirm it."""
    polling = LookingAtFootball()
    await polling.start()
    polling.pages.incidents = incidents or []
    for shown in events:
        polling.pages.event = shown
        await polling.poll()
    await polling.poll(ENOUGH)
    payload: dict[str, Any] = polling.payload()
    return payload


async def test_what_the_source_shows_is_served() -> None:
    payload = await served(event("2nd half", **SHOWN))

    assert payload["clock"] == {
        "period_started_at": NOW.isoformat().replace("+00:00", "Z"),
        "initial_seconds": 2700,
        "max_seconds": 5400,
    }
    assert (payload["added_time"], payload["var_in_progress"]) == ({"period1": 4}, ["away"])
    assert payload["tie"] == {"previous_leg": "70"}
    assert payload["metadata"] == {
        "tournament": "Premier League",
        "season": "26/27",
        "round": 27,
        "round_name": "Quarterfinals",
        "category": "Ruritania",
        "country": "Ruritania",
        "venue": "The Quay",
        "city": "Port Élan",
        "referee": "A. Whistle",
    }


@pytest.mark.req("FLD-3")
async def test_what_the_source_does_not_show_is_absent() -> None:
    payload = await served(event("2nd half"))

    assert not [name for name in OPTIONAL if name in payload]
    assert payload["metadata"] == {"tournament": "Harbour League", "season": "26/27", "round": 14}


async def test_the_payload_does_not_change_while_the_clock_runs() -> None:
    polling = LookingAtFootball()
    await polling.start()
    polling.pages.event = event("2nd half", **SHOWN)
    await polling.poll(ENOUGH)
    before = polling.payload()

    polling.pages.event = event("2nd half", **SHOWN, changes={"changeTimestamp": 5})
    await polling.poll()

    assert polling.payload() == before


async def test_a_suspension_is_a_break_that_says_what_it_is() -> None:
    payload = await served(event("Suspended", 1, 0))

    assert (payload["status"], payload["status_detail"]) == (MatchStatus.BREAK, "suspended")


async def test_an_awarded_match_is_served_with_both_scores_and_its_goals_add_up() -> None:
    scores: list[dict[str, int]] = [{"current": 1, "display": 0}, {"current": 0, "display": 3}]

    payload = await served(
        event("2nd half", 1, 0), event("Ended", *scores, winnerCode=2, isAwarded=True), incidents=[goal(1, 1, 0)]
    )

    assert (payload["status"], payload["score"]["home"], payload["score"]["away"]) == (MatchStatus.COMPLETED, 1, 0)
    assert payload["result"] == {
        "outcome": "away",
        "after": "FT",
        "text": "away won 0-3 (awarded, played 1-0) FT",
        "awarded": {"home": 0, "away": 3},
    }


async def test_a_postponed_match_that_is_awarded_is_over() -> None:
    payload = await served(event("Postponed", 0, 3, winnerCode=2, isAwarded=True))

    assert (payload["status"], payload["status_detail"]) == (MatchStatus.COMPLETED, "postponed")
    assert "score" not in payload
    assert payload["result"]["text"] == "away won 0-3 (awarded)"


async def test_a_match_that_ends_without_score_and_winner_ends() -> None:
    payload = await served(event("Ended", {}, {}))

    assert (payload["status"], payload["result"]["outcome"]) == (MatchStatus.COMPLETED, "unknown")


async def test_why_a_card_was_shown_is_served_with_it() -> None:
    payload = await served(event("1st half"), incidents=[{**card(1), "rescinded": True}])

    [shown] = payload["incidents"]
    assert (shown["reason"], shown["is_rescinded"]) == ("Foul", True)
