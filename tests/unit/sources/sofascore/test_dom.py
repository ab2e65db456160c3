"""sofascore as its page draws it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import ParseError
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIVE, RENDERED, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.sofascore.dom import read_rendered
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.football.model import FootballDomBoard, Goals
from longstop_lab.simulator.pages.hostile import redesigned
from tests.football_site import SOFASCORE_CONFIG
from tests.rendered_pages import sofascore_page, sofascore_site_page
from tests.unit.sources.pruning import each_without_two, pruned


def shown(board: FootballDomBoard) -> tuple[object, ...]:
    return board.score, board.status, board.headline, board.home, board.away


def read_if_readable(page: bytes) -> FootballDomBoard | None:
    try:
        return read_rendered("77", page)
    except ParseError:
        return None


def test_the_rendered_page_is_asked_for_as_it_is_rendered_and_read_as_a_board() -> None:
    source, ask = SofascoreSource(SOFASCORE_CONFIG), Query(resource=RENDERED, source_id="77")

    request = source.request(ask)

    assert request.is_rendered
    assert request.url == source.request(Query(resource=LIVE, source_id="77")).page
    assert read_body(source, ask, sofascore_page()) == read_rendered("77", sofascore_page())


def test_sides_score_and_status_are_read() -> None:
    board = read_rendered("77", sofascore_page("2 : 13", "2nd half"))

    assert board.score == Goals(home=2, away=13)
    assert (board.home.name, board.away.name) == ("Fennick FC", "Port Élan United")
    assert (board.status, board.headline, board.shows_every_change) == (MatchStatus.LIVE, "2nd half", False)
    assert not any(board.selectors.values())


@pytest.mark.req("FLD-3")
def test_before_the_kick_off_there_is_no_score() -> None:
    board = read_rendered("77", sofascore_page("- : -", "Not started"))

    assert (board.score, board.status) == (None, MatchStatus.UPCOMING)
    assert (board.start_at, board.penalties, board.periods, board.result) == (None, None, (), None)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("67'", MatchStatus.LIVE),
        ("45+2'", MatchStatus.LIVE),
        ("Started", MatchStatus.LIVE),
        ("Halftime", MatchStatus.BREAK),
        ("Interrupted", MatchStatus.BREAK),
        ("Ended", MatchStatus.COMPLETED),
        ("AP", MatchStatus.COMPLETED),
    ],
)
@pytest.mark.parametrize("design", [bytes, redesigned])
def test_the_words_for_where_a_match_stands_are_understood_in_either_design(
    said: str, status: MatchStatus, design: type[bytes]
) -> None:
    assert read_rendered("77", design(sofascore_page(status=said))).status is status


def test_the_marks_of_the_real_site_are_read_first() -> None:
    board = read_rendered("77", sofascore_site_page(2, 13, "Finished"))

    assert board.score == Goals(home=2, away=13)
    assert (board.home.name, board.away.name) == ("Fennick FC", "Port Élan United")
    assert (board.status, board.headline) == (MatchStatus.COMPLETED, "Finished")
    assert not any(board.selectors.values())


@pytest.mark.req("FR-019")
def test_a_redesigned_page_is_read_by_later_selectors() -> None:
    before, after = (read_rendered("77", page) for page in (sofascore_page(), redesigned(sofascore_page())))

    assert (after.score, after.status, after.home) == (before.score, before.status, before.home)
    assert after.selectors == {"score": 2, "status": 2, "home team": 1, "away team": 1}


@pytest.mark.parametrize(
    "page",
    [
        sofascore_page("- : -", ""),
        sofascore_page("- : -", "1st half"),
        sofascore_page("1 : 0", "An unknown word"),
        sofascore_page("undefined : 0"),
        sofascore_page("1 : 0 : 2"),
        b"<html></html>",
    ],
    ids=["undrawn", "play without a score", "unknown word", "no number", "three numbers", "another page"],
)
def test_a_page_without_a_score_or_status_is_another_layout(page: bytes) -> None:
    with pytest.raises(ParseError):
        read_rendered("77", page)


@pytest.mark.req("FR-019")
@pytest.mark.parametrize("design", [bytes, redesigned])
@pytest.mark.parametrize(
    "page",
    [
        sofascore_page("3 : 1", "Halftime"),
        sofascore_page("- : -", "Not started"),
        sofascore_site_page(3, 1, "Halftime"),
    ],
)
def test_whichever_two_elements_are_missing_no_number_is_wrong(page: bytes, design: type[bytes]) -> None:
    whole = design(page)
    expected = shown(read_rendered("77", whole))

    read = [shown(board) for each in each_without_two(whole) if (board := read_if_readable(each))]

    assert {*read} == {expected}


@pytest.mark.req("FR-019")
@given(st.data())
def test_whatever_is_missing_from_a_page_no_number_is_wrong(data: st.DataObject) -> None:
    page = sofascore_page("3 : 1", "Halftime")
    whole = redesigned(page) if data.draw(st.booleans()) else page
    truth = read_rendered("77", whole)

    try:
        board = read_rendered("77", pruned(whole, data))
    except ParseError:
        return

    assert (board.score, board.status, board.headline) == (truth.score, truth.status, truth.headline)
    assert (board.home, board.away) == (truth.home, truth.away)
