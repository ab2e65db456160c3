"""A football site that answers with other teams, players and lists for a while: what is served then and after."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from longstop.model.polling_status import SyncState, Unreliability
from tests.football_site import card, event, goal, lineups, substitution
from tests.unit.watching.test_football import Running

FIRST_HALF = event("1st half", 0, 0)
SWAPPED = FIRST_HALF | {"homeTeam": FIRST_HALF["awayTeam"], "awayTeam": FIRST_HALF["homeTeam"]}
OTHER_TEAMS = {"homeTeam": {"id": 8, "name": "Eight"}, "awayTeam": {"id": 9, "name": "Nine"}}
FOREIGN = [goal(5001, 0, 1, is_home=False, scorer=241), card(5002, who=212), substitution(5003, came=225, out=213)]
OTHER_SQUADS = lineups(home=211, away=241)
ENDED_ELSEWHERE: dict[str, Any] = {
    "event": event("Ended", 0, 1, winnerCode=2, **OTHER_TEAMS),
    "incidents": FOREIGN,
    "lineups": OTHER_SQUADS,
}
IN_PLAY: dict[str, Any] = {
    "event": event("1st half", 1, 0),
    "incidents": [goal(100, 1, 0)],
    "lineups": lineups(),
}


def show(running: Running, **pages: Any) -> Callable[[], None]:
    def change() -> None:
        for name, page in pages.items():
            setattr(running.pages, name, page)

    return change


def served(running: Running) -> dict[str, Any]:
    payload: dict[str, Any] = msgspec.json.decode(running.store.snapshots[1].payload)
    return payload


def reasons(running: Running) -> tuple[Unreliability, ...]:
    return running.hot.rows[1].record.unreliability


def home(running: Running) -> str:
    key: str = served(running)["teams"]["home"]["key"]
    return key


def live_events(running: Running) -> list[str]:
    return [str(key) for key, stored in running.store.current(1).items() if stored.event.is_live]


@pytest.mark.req("JOB-6")
@pytest.mark.parametrize("wrong", [SWAPPED, FIRST_HALF | OTHER_TEAMS], ids=["swapped", "other teams"])
def test_one_poll_does_not_replace_known_teams_though_the_listing_shows_the_same(wrong: dict[str, Any]) -> None:
    running, seen = Running(), []

    running.play((60, show(running, event=wrong)), (64, lambda: seen.append(home(running))), until=65)

    assert seen == ["1"]


@pytest.mark.req("JOB-6")
def test_a_few_seconds_of_another_match_at_nil_nil_are_over_with_the_first_right_answer() -> None:
    running = Running()

    running.play(
        (60, show(running, event=event("1st half", 0, 2, **OTHER_TEAMS))),
        (65, show(running, event=FIRST_HALF)),
        until=100,
    )

    assert (home(running), reasons(running)) == ("1", ())


@pytest.mark.parametrize("wrong", [SWAPPED, FIRST_HALF | OTHER_TEAMS], ids=["swapped", "other teams"])
def test_a_page_that_contradicted_the_listing_for_a_minute_is_reliable_soon_after(wrong: dict[str, Any]) -> None:
    running = Running()
    running.pages.listed, running.pages.event = [FIRST_HALF], wrong

    running.play((60, show(running, event=FIRST_HALF)), until=150)

    assert (home(running), reasons(running)) == ("1", ())


def test_a_restart_does_not_forget_that_the_listing_contradicts_the_page() -> None:
    running = Running()
    running.pages.listed, running.pages.event = [FIRST_HALF], FIRST_HALF | OTHER_TEAMS
    running.play(until=60)

    running.play(until=30)

    assert Unreliability.CONTRADICTED in reasons(running)


@pytest.mark.req("JOB-6")
@pytest.mark.parametrize("wrong", [SWAPPED, OTHER_TEAMS], ids=["swapped", "other teams"])
def test_wrong_teams_of_an_upcoming_match_do_not_stay_until_the_kick_off(wrong: dict[str, Any]) -> None:
    running, upcoming = Running(), event("Not started", {}, {})
    running.pages.event = upcoming | {name: wrong[name] for name in OTHER_TEAMS}

    running.play((5, show(running, event=upcoming)), until=65)

    assert home(running) == "1"


@pytest.mark.parametrize("after", [None, []], ids=["no list", "an empty list"])
def test_a_match_that_has_not_begun_has_no_incidents(after: list[dict[str, Any]] | None) -> None:
    running = Running()
    running.pages.event, running.pages.incidents = event("Not started", {}, {}), FOREIGN

    running.play((20, show(running, incidents=after)), until=80)

    assert live_events(running) == []


def test_players_of_another_match_are_not_served_once_its_line_ups_are_gone() -> None:
    running = Running()
    running.pages.event, running.pages.incidents = event("1st half", 1, 0), [goal(100, 1, 0)]
    running.pages.lineups = OTHER_SQUADS

    running.play((5, show(running, lineups=lineups())), until=120)

    assert not [key for key in served(running)["players"] if int(key) > 200]


def test_line_ups_of_another_match_do_not_replace_known_ones_at_once() -> None:
    running = Running()

    running.play((60, show(running, lineups=OTHER_SQUADS)), (66, show(running, lineups=lineups())), until=71)

    assert served(running)["lineups"]["home"]["starters"][0]["key"] == "11"


@pytest.mark.req("JOB-6")
@pytest.mark.parametrize(("seconds", "listed"), [(15, []), (62, None)], ids=["not listed afterwards", "listed"])
def test_a_match_that_was_answered_as_a_finished_one_is_right_within_a_minute(
    seconds: float, listed: list[dict[str, Any]] | None
) -> None:
    running = Running()
    show(running, **ENDED_ELSEWHERE)()

    running.play((seconds, show(running, **IN_PLAY, listed=listed)), until=seconds + 60)

    assert home(running) == "1"
    assert running.hot.rows[1].record.sync is SyncState.IN_SYNC


def test_a_match_that_is_set_back_to_not_started_is_not_locked_out() -> None:
    running = Running()
    show(running, **IN_PLAY)()

    running.play((60, show(running, event=event("Not started", {}, {}))), until=120)

    assert running.hot.rows[1].record.consecutive_failures == 0
    assert running.hot.rows[1].record.sync is SyncState.IN_SYNC
