"""crex's fixture list: start times, results and both scores of matches, also of those that are not live."""

from datetime import UTC, datetime
from typing import Any

import pytest

from longstop.errors import LayoutChanged
from longstop.model.match import MatchStatus
from longstop.sports.cricket.model import Board, ResultKind
from tests.builders import body, score
from tests.unit.sources.crex.reading import LIST, SOURCE, listing

FIXTURE: dict[str, Any] = {
    "mf": "M1",
    "t1f": "T1",
    "t2f": "T2",
    "t": 1_772_892_000_000,
    "formats": "T20",
    "mt": 5,
    "a": "^3",
    "status": 0,
    "statusText": "",
    "team1": "Reds",
    "team2": "Blues",
}
LIVE = {"status": 1, "statusText": "Live", "bf": "T2", "s1": "", "o1": "", "s2": "163/5", "o2": "19.1"}
DONE = {
    "status": 2,
    "bf": "T2",
    "s1": "128/4",
    "o1": "11.0",
    "s2": "127/8",
    "o2": "20.0",
    "result": "RED Won by 6 wickets",
}


def fixture(**changes: Any) -> Board:
    [found] = listing([{**FIXTURE, **changes}]).boards
    assert isinstance(found, Board)
    return found


def test_a_fixture_has_its_sides_start_and_format_and_nothing_has_begun() -> None:
    found = fixture()

    assert (found.source_id, found.status, found.match_format) == ("M1", MatchStatus.UPCOMING, "T20")
    assert found.start_at == datetime(2026, 3, 7, 14, tzinfo=UTC)
    assert (found.team_keys, found.is_batting_known) == ({"T1", "T2"}, False)
    assert (found.first, found.second, found.result) == (None, None, None)


def test_scores_are_in_the_order_of_play_not_of_the_fixture() -> None:
    found = fixture(**DONE)

    assert (found.first, found.second) == (score("127/8 20.0"), score("128/4 11.0"))
    assert found.status is MatchStatus.COMPLETED
    assert found.result is not None
    assert (found.result.outcome, found.result.text) == (ResultKind.WON, "RED Won by 6 wickets")


def test_a_match_in_play_shows_the_innings_that_has_begun() -> None:
    found = fixture(**LIVE)

    assert (found.status, found.headline) == (MatchStatus.LIVE, "")
    assert (found.first, found.second) == (score("163/5 19.1"), None)


def test_a_match_whose_toss_is_delayed_has_not_begun() -> None:
    found = fixture(status=1, statusText="Toss Delayed", s1=None, s2=None)

    assert (found.status, found.headline) == (MatchStatus.UPCOMING, "Toss Delayed")


def test_a_match_that_rain_interrupts_has_begun() -> None:
    assert fixture(**{**LIVE, "statusText": "Rain"}).status is MatchStatus.BREAK


def test_a_fixture_without_a_key_cannot_be_asked_for_and_is_left_out() -> None:
    found = listing([{**FIXTURE, "mf": None}, {key: value for key, value in FIXTURE.items() if key != "mf"}, FIXTURE])

    assert [each.source_id for each in found.boards] == ["M1"]
    assert found.unreadable == ()


def test_one_unreadable_fixture_does_not_spoil_the_others() -> None:
    found = listing([FIXTURE, {**FIXTURE, "mf": "M2", "status": 7}, {**DONE, **FIXTURE, "mf": "M3", "s1": "rain"}])

    assert [each.source_id for each in found.boards] == ["M1"]
    assert found.unreadable == ("M2", "M3")


@pytest.mark.parametrize("bad", [[1], ["M1"], [{"mf": 5}], [{"mf": "M1"}]])
def test_a_list_of_which_nothing_can_be_read_has_changed(bad: object) -> None:
    with pytest.raises(LayoutChanged):
        listing(bad)


def test_a_digest_follows_what_is_read() -> None:
    plain = SOURCE.digest(LIST, body([FIXTURE]))

    assert SOURCE.digest(LIST, body([{**FIXTURE, "timeDifference": 3, "odds": "{}"}])) == plain
    assert SOURCE.digest(LIST, body([{**FIXTURE, **LIVE}])) != plain
