"""crex as its page draws it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import ParseError
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIVE, RENDERED, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.crex.dom import read_rendered
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.model import DomBoard
from longstop_lab.simulator.pages.hostile import redesigned
from tests.builders import CREX_CONFIG, score
from tests.rendered_pages import crex_page
from tests.unit.sources.pruning import each_without_two, pruned


def shown(board: DomBoard) -> tuple[object, ...]:
    return board.first, board.second, board.status, board.headline


def read_if_readable(page: bytes) -> DomBoard | None:
    try:
        return read_rendered("M1", page)
    except ParseError:
        return None


def test_the_rendered_page_is_asked_for_as_it_is_rendered_and_read_as_a_board() -> None:
    source, ask = CrexSource(CREX_CONFIG), Query(resource=RENDERED, source_id="M1")

    request = source.request(ask)

    assert request.is_rendered
    assert request.url == source.request(Query(resource=LIVE, source_id="M1")).page
    assert read_body(source, ask, crex_page()) == read_rendered("M1", crex_page())


def test_the_first_innings_is_the_score_of_who_bats() -> None:
    board = read_rendered("M1", crex_page("29/1(3.4)", "0/0(0.0)", "4"))

    assert (board.first, board.second) == (score("29/1 3.4"), None)
    assert (board.status, board.headline, board.names) == (MatchStatus.LIVE, "", ("Reds", "Blues"))
    assert not any(board.selectors.values())


@pytest.mark.parametrize("overs", ["(20.0)", "(20)"])
def test_once_both_have_batted_the_other_sides_score_is_the_first_innings(overs: str) -> None:
    board = read_rendered("M1", crex_page("12/0(1.2)", f"181/7{overs}"))

    assert (board.first, board.second) == (score("181/7 20.0"), score("12/0 1.2"))


@pytest.mark.req("FLD-3")
def test_a_side_that_has_yet_to_bat_has_no_innings_and_an_unknown_name_stays_empty() -> None:
    board = read_rendered("M1", crex_page("29/1(3.4)", "Yet to bat", batting="", bowling="Blues"))

    assert (board.first, board.second, board.names) == (score("29/1 3.4"), None, ("", "Blues"))
    assert (board.target, board.start_at, board.match_format, board.batters) == (None, None, None, ())


@pytest.mark.parametrize(
    ("said", "status", "is_over"),
    [
        ("Innings Break", MatchStatus.BREAK, True),
        ("Rain stops play", MatchStatus.BREAK, False),
        ("Reds won by 4 runs", MatchStatus.COMPLETED, True),
        ("wd", MatchStatus.LIVE, False),
    ],
)
@pytest.mark.parametrize("design", [bytes, redesigned])
def test_what_is_said_of_the_moment_is_understood_in_either_design(
    said: str, status: MatchStatus, is_over: bool, design: type[bytes]
) -> None:
    board = read_rendered("M1", design(crex_page(said=said)))

    assert (board.status, board.is_innings_over) == (status, is_over)


@pytest.mark.req("FR-019")
def test_a_redesigned_page_is_read_by_later_selectors() -> None:
    before, after = (read_rendered("M1", page) for page in (crex_page(), redesigned(crex_page())))

    assert (after.first, after.status, after.names) == (before.first, before.status, before.names)
    assert after.selectors == {"sides": 1, "score": 2, "team": 2, "headline": 2}


@pytest.mark.parametrize(
    "page",
    [
        crex_page("", "", "", batting="", bowling=""),
        crex_page(now="-"),
        crex_page(other=""),
        crex_page(now="29/1(3.4)", other="181/7"),
        crex_page(now="29/1(3.4) 30/1(3.5)"),
        redesigned(crex_page(said="An unknown word")),
        b"<html></html>",
    ],
    ids=["undrawn", "no score", "no other score", "no overs", "two scores", "unknown word", "another page"],
)
def test_a_page_without_a_score_or_a_word_for_the_moment_is_another_layout(page: bytes) -> None:
    with pytest.raises(ParseError):
        read_rendered("M1", page)


@pytest.mark.req("FR-019")
@pytest.mark.parametrize("design", [bytes, redesigned])
@pytest.mark.parametrize(
    "page",
    [crex_page("12/0(1.2)", "181/7(20.0)"), crex_page(said="Innings Break"), crex_page(said="Reds won by 4 runs")],
)
def test_whichever_two_elements_are_missing_no_number_is_wrong(page: bytes, design: type[bytes]) -> None:
    whole = design(page)
    expected = shown(read_rendered("M1", whole))

    read = [shown(board) for each in each_without_two(whole) if (board := read_if_readable(each))]

    assert {*read} == {expected}


@pytest.mark.req("FR-019")
@given(st.data())
def test_whatever_is_missing_from_a_page_no_number_is_wrong(data: st.DataObject) -> None:
    is_second, is_redesigned = data.draw(st.booleans()), data.draw(st.booleans())
    page = crex_page("12/0(1.2)", "181/7(20.0)") if is_second else crex_page(said="Innings Break")
    whole = redesigned(page) if is_redesigned else page
    truth = read_rendered("M1", whole)

    try:
        board = read_rendered("M1", pruned(whole, data))
    except ParseError:
        return

    assert (board.first, board.second) == (truth.first, truth.second)
    assert (board.status, board.headline) == (truth.status, truth.headline)
    assert all(shown in ("", name) for shown, name in zip(board.names, truth.names, strict=True))
