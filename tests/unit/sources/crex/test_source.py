"""crex: what its pages say, and what they must never be taken to say."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import LayoutChanged, MalformedBody, ObservationError, ParseError, SourceError, WrongMatch
from longstop.model.cricket import Dismissal, InningsScore, Overs, ResultKind, Runs, Target
from longstop.model.match import MatchStatus
from longstop.sources.base import (
    Ask,
    BallItem,
    Batter,
    Board,
    Bowler,
    FeedPage,
    Listing,
    Names,
    OverItem,
    Reading,
    Resource,
    Scorecard,
    WicketItem,
)
from longstop.sources.crex.feed import read_ball_value
from longstop.sources.crex.source import CrexSource
from tests.builders import CREX_CONFIG, body, score

PAGES = Path(__file__).parents[3] / "pages" / "crex"
SOURCE = CrexSource(CREX_CONFIG)

LIST = Ask(resource=Resource.LIST)
LIVE = Ask(resource=Resource.LIVE, source_id="M1")
BALLS = Ask(resource=Resource.BALLS, source_id="M1")
SCORECARD = Ask(resource=Resource.SCORECARD, source_id="M1")
NAMES = Ask(resource=Resource.NAMES, players=("A1",))
EVERY_ASK = (LIST, LIVE, BALLS, SCORECARD, NAMES)
PAGE_OF = {
    Resource.LIST: "live_list.json",
    Resource.LIVE: "live_in_play.json",
    Resource.BALLS: "ball_feed.json",
    Resource.SCORECARD: "scorecard.json",
    Resource.NAMES: "names.json",
}

STATE: dict[str, Any] = {"a": "T1.T2", "B": "1", "j": "40/2(6.3", "k": "0/0(0.0", "fo": "T20", "mt": 1_772_892_000_000}
BALL: dict[str, Any] = {
    "type": "b",
    "id": 100,
    "mfkey": "M1",
    "inning": 0,
    "on": 6,
    "o": "6.3",
    "b": "1",
    "fv": 2,
    "bf": "B1",
    "pf": "A1",
}
WICKET: dict[str, Any] = {
    "type": "w",
    "id": 101,
    "mfkey": "M1",
    "inning": 0,
    "on": 6,
    "o": "6.3",
    "fv": 64,
    "player": "Ann One",
    "pf_out": "A1",
    "dismissal": 1,
}
OVER: dict[str, Any] = {
    "type": "o",
    "id": 110,
    "mfkey": "M1",
    "inning": 0,
    "on": 5,
    "o": 6,
    "runs": 7,
    "s": "40/2",
    "bf": "B1",
}


def page(name: str) -> bytes:
    return (PAGES / name).read_bytes()


def board(**changes: object) -> Board:
    found = SOURCE.parse(LIVE, body({**STATE, **changes}))
    assert isinstance(found, Board)
    return found


def feed(*items: dict[str, Any]) -> FeedPage:
    found = SOURCE.parse(BALLS, body(items))
    assert isinstance(found, FeedPage)
    return found


def listing(entries: object) -> Listing:
    found = SOURCE.parse(LIST, body(entries))
    assert isinstance(found, Listing)
    return found


# --- requests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "asked"),
    [
        (LIST, "GET https://api.test/api/v3/getLiveMatches"),
        (LIVE, "GET https://api.test/api/v3/getSV3?key=M1"),
        (SCORECARD, "GET https://api.test/api/v3/getSC4?key=M1"),
        (BALLS, "POST https://content.test/commentary/v1/getBallFeeds"),
        (NAMES, "POST https://names.test/mapping/getHomeMapData"),
    ],
)
def test_each_resource_has_its_address(ask: Ask, asked: str) -> None:
    request = SOURCE.request(ask)

    assert (request.source, f"{request.method} {request.url}") == ("crex", asked)


def test_the_feed_is_asked_for_the_items_before_the_oldest_we_have() -> None:
    request = SOURCE.request(Ask(resource=Resource.BALLS, source_id="M1", before="1772899002000"))

    assert msgspec.json.decode(request.body or b"") == {
        "matchKey": "M1",
        "lastDocId": "1772899002000",
        "filters": {},
        "lang": "en",
    }


def test_names_are_asked_for_players_and_teams_apart() -> None:
    request = SOURCE.request(Ask(resource=Resource.NAMES, players=("A1", "B1"), teams=("T1",)))

    asked = msgspec.json.decode(request.body or b"")
    assert (asked["p"], asked["t"]) == (["A1", "B1"], ["T1"])


# --- whole pages ----------------------------------------------------------------------------------------------------


def test_a_live_state_in_play_is_read_whole() -> None:
    found = SOURCE.parse(LIVE, page("live_in_play.json"))

    assert found == Board(
        source_id="M1",
        status=MatchStatus.LIVE,
        headline="",
        batting="T1",
        bowling="T2",
        first=score("211/9 50.0"),
        second=score("88/3 20.3"),
        match_format="ODI",
        start_at=datetime(2026, 3, 7, 14, tzinfo=UTC),
        batters=(
            Batter(key="A2", runs=6, balls=9, on_strike=True),
            Batter(key="A1", runs=41, balls=60, on_strike=False),
        ),
        bowler=Bowler(key="B3", runs=31, balls=40, wickets=2),
        fingerprint="T1.T2||211/9(50.0|88/3(20.3|1772892000000|UNSET",
    )


@pytest.mark.req("FLD-1")
def test_an_innings_break_blanks_the_players_and_ends_nothing() -> None:
    found = SOURCE.parse(LIVE, page("live_innings_break.json"))

    assert isinstance(found, Board)
    assert (found.status, found.headline, found.is_innings_over) == (MatchStatus.BREAK, "Innings Break", True)
    assert (found.batters, found.bowler, found.result, found.second) == ((), None, None, None)


def test_a_feed_page_gives_balls_wickets_and_over_ends_and_skips_texts() -> None:
    found = SOURCE.parse(BALLS, page("ball_feed.json"))

    assert isinstance(found, FeedPage)
    kinds = [type(item) for item in found.items]
    assert kinds == [BallItem, BallItem, BallItem, OverItem, BallItem, WicketItem, BallItem, BallItem, BallItem]
    assert {item.innings for item in found.items} == {2}
    assert found.next_before == "1772899002000"


@pytest.mark.req("FLD-2")
def test_a_scorecard_counts_balls_where_the_live_state_counts_overs() -> None:
    found = SOURCE.parse(SCORECARD, page("scorecard.json"))

    assert isinstance(found, Scorecard)
    assert [(each.number, each.team, each.score) for each in found.innings] == [
        (1, "T2", score("211/9 50.0")),
        (2, "T1", score("88/3 20.3")),
    ]


def test_a_list_gives_a_board_for_each_match() -> None:
    found = SOURCE.parse(LIST, page("live_list.json"))

    assert isinstance(found, Listing)
    assert {each.source_id: each.status for each in found.boards} == {
        "M1": MatchStatus.LIVE,
        "M2": MatchStatus.BREAK,
        "M3": MatchStatus.UPCOMING,
    }


def test_a_list_entry_and_the_live_state_of_the_same_moment_have_the_same_fingerprint() -> None:
    found = SOURCE.parse(LIST, page("live_list.json"))
    live = SOURCE.parse(LIVE, page("live_in_play.json"))

    assert isinstance(found, Listing)
    assert isinstance(live, Board)
    assert found.boards[0].fingerprint == live.fingerprint


def test_a_key_without_a_name_stays_unresolved() -> None:
    found = SOURCE.parse(NAMES, page("names.json"))

    assert found == Names(players={"A1": "Ann One", "A2": "Amélie Two"}, teams={"T1": "Reds", "T2": "Blues"})


def test_a_name_in_pieces_is_put_together() -> None:
    found = SOURCE.parse(NAMES, body({"p": [{"f_key": "A1", "n": "Ame\u0301lie"}], "t": []}))

    assert found == Names(players={"A1": "Am\u00e9lie"}, teams={})


# --- the scoreboard's traps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["305/8(50.0", "305/8(50.0)"])
def test_a_score_is_read_with_its_parenthesis_open_or_closed(text: str) -> None:
    assert board(j=text).first == score("305/8 50.0")


@pytest.mark.parametrize(
    "text", ["305", "305/8", "305-8(50.0", "305/8(50.0))", "-1/0(0.1", "1e3/0(0.1", "١/0(0.1", " 5/0(1.0"]
)
def test_a_score_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(LayoutChanged, match="field 'j'"):
        board(j=text)


@pytest.mark.req("FLD-3")
def test_an_innings_filled_with_zeros_has_not_begun() -> None:
    assert board(k="0/0(0.0").second is None
    assert board(k="0/0(0.1").second == InningsScore(runs=0, wickets=0, overs=Overs(0, 1))
    assert board(j="0/0(0.0").first == InningsScore(runs=0, wickets=0, overs=Overs(0, 0))


@pytest.mark.parametrize(
    "code", ["", "0", "4", "w", "wd", "nb", "2lb", "o", "B", "^1", "^2", "^8", "e", "bc", "no", "ruka"]
)
def test_a_code_is_no_headline(code: str) -> None:
    found = board(B=code)

    assert (found.headline, found.status) == ("", MatchStatus.LIVE)


def test_a_caught_code_changes_nothing_but_the_code() -> None:
    assert board(B="^2") == board(B="0")


@pytest.mark.req("FLD-1")
@pytest.mark.parametrize(
    "text",
    [
        "Stumps",
        "Stumps - Day 3",
        "Lunch",
        "Tea",
        "Drinks",
        "Rain",
        "Rain stopped play",
        "Innings Break",
        "Super Over",
        "Match delayed due to wet outfield",
        "Match postponed",
        "Play abandoned for the day",
        "Reds won the toss and chose to bat",
        "Toss won by Reds, who bowl first",
        "Strategic timeout",
    ],
)
def test_a_break_is_no_end(text: str) -> None:
    found = board(B=text)

    assert (found.status, found.result, found.headline) == (MatchStatus.BREAK, None, text)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Reds won by 8 wickets", ResultKind.WON),
        ("Reds won by an innings and 20 runs", ResultKind.WON),
        ("Reds won by 5 runs (DLS method)", ResultKind.WON),
        ("Match tied", ResultKind.TIE),
        ("Match tied (Reds won by super over)", ResultKind.TIE),
        ("Match drawn", ResultKind.DRAW),
        ("Draw", ResultKind.DRAW),
        ("No result", ResultKind.NO_RESULT),
        ("Match abandoned due to rain", ResultKind.ABANDONED),
        ("Abandoned without a ball bowled", ResultKind.ABANDONED),
        ("Match cancelled", ResultKind.CANCELLED),
        ("Canceled", ResultKind.CANCELLED),
        ("Reds won by walkover", ResultKind.WALKOVER),
        ("Blues conceded the match", ResultKind.WALKOVER),
    ],
)
def test_a_result_ends_the_match(text: str, outcome: ResultKind) -> None:
    found = board(B=text)

    assert found.result is not None
    assert (found.status, found.result.outcome, found.result.text) == (MatchStatus.COMPLETED, outcome, text)
    assert found.is_innings_over


@pytest.mark.parametrize(
    ("text", "is_over"), [("Innings Break", True), ("Super Over", True), ("Lunch", False), ("1", False)]
)
def test_only_some_texts_end_the_innings(text: str, is_over: bool) -> None:
    assert board(B=text).is_innings_over is is_over


def test_the_bowler_has_runs_before_balls_whatever_y_and_z_say() -> None:
    found = board(b="B3", c="31.40.2.19", y="B2.48.30.1", z="B3.40.31.2")

    assert found.bowler == Bowler(key="B3", runs=31, balls=40, wickets=2)


def test_overs_of_the_bowler_and_rotating_slots_make_nothing() -> None:
    plain = board()

    assert board(d="1.0.0|6.6", l="31:1.1", m="32:0.0", n="30:W.W", rb=[{"o": 1}], A="1.1") == plain


def test_odds_and_codes_leave_the_fingerprint_alone() -> None:
    plain = board(R="1+1", B="0").fingerprint

    assert board(R="99+2", B="4", ca=7, wp="T1,1,2,3", F="^T2").fingerprint == plain


@pytest.mark.parametrize(
    "change",
    [{"j": "41/2(6.3"}, {"k": "1/0(0.1"}, {"B": "Rain"}, {"a": "T2.T1"}, {"mt": 1_772_892_060_000}, {"tg": "180(20.0"}],
)
def test_what_we_keep_changes_the_fingerprint(change: dict[str, object]) -> None:
    assert board(**change).fingerprint != board().fingerprint


def test_a_batter_without_a_key_does_not_lend_his_figures_to_the_other() -> None:
    found = board(p=".A2", q="7.9", s="1.2*")

    assert found.batters == (Batter(key="A2", runs=1, balls=2, on_strike=True),)


def test_a_revised_target_is_read_and_none_is_absent() -> None:
    assert board(tg="151(17.3").target == Target(runs=151, overs=Overs(17, 3))
    assert board().target is None


def test_a_match_that_has_not_begun_is_upcoming() -> None:
    found = board(B="", j="0/0(0.0", k="")

    assert (found.status, found.start_at) == (MatchStatus.UPCOMING, datetime(2026, 3, 7, 14, tzinfo=UTC))


# --- the listing ----------------------------------------------------------------------------------------------------


@pytest.mark.req("FLD-5")
def test_an_empty_list_is_an_answer() -> None:
    assert listing({}) == Listing(boards=())


@pytest.mark.req("FLD-5")
@pytest.mark.parametrize("bad", [{"a": "T1.T2"}, {**STATE, "j": "rain"}, {**STATE, "mt": "soon"}, [], None, "M9"])
def test_one_unreadable_entry_does_not_spoil_the_others(bad: object) -> None:
    found = listing({"M1": STATE, "M9": bad, "M2": STATE})

    assert [each.source_id for each in found.boards] == ["M1", "M2"]
    assert found.unreadable == ("M9",)


def test_a_key_that_could_leave_its_path_is_not_followed() -> None:
    found = listing({"M1": STATE, "../M2": STATE})

    assert ([each.source_id for each in found.boards], found.unreadable) == (["M1"], ("../M2",))


@pytest.mark.req("FLD-5")
@pytest.mark.parametrize("bad", [{"M1": {}, "M2": 7}, {"error": "Invalid Host header"}])
def test_a_list_of_which_nothing_can_be_read_is_no_empty_list(bad: object) -> None:
    with pytest.raises(LayoutChanged, match="none of the"):
        listing(bad)


# --- the feed's traps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("0", Runs()),
        ("1", Runs(batter=1)),
        ("6", Runs(batter=6)),
        ("wd", Runs(wides=1)),
        ("5wd", Runs(wides=5)),
        ("nb", Runs(noballs=1)),
        ("4nb", Runs(batter=4, noballs=1)),
        ("nb2", Runs(noballs=2)),
        ("b", Runs(byes=1)),
        ("2b", Runs(byes=2)),
        ("lb", Runs(legbyes=1)),
        ("2lb", Runs(legbyes=2)),
        ("5p", Runs(penalty=5)),
        ("1+5p", Runs(batter=1, penalty=5)),
        ("nb+2lb", Runs(noballs=1, legbyes=2)),
    ],
)
def test_a_ball_value_says_its_runs_by_kind(text: str, runs: Runs) -> None:
    assert read_ball_value(text) == runs


@pytest.mark.parametrize(
    "text", ["", "w", "W", "-1", "1.5", "four", "+", "4+", "wd2", "lb3", "^2", "1 ", "100", "٤", "nan"]
)
def test_a_value_outside_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(LayoutChanged, match="no ball value"):
        read_ball_value(text)


@pytest.mark.parametrize(("flag", "boundary"), [(2, None), (4, 6), (8, 4), (4096, None)])
def test_the_flag_says_whether_it_reached_the_rope(flag: int, boundary: int | None) -> None:
    [ball] = feed({**BALL, "b": "4", "fv": flag}).items

    assert isinstance(ball, BallItem)
    assert ball.delivery.boundary == boundary


@pytest.mark.req("FLD-2")
def test_the_feed_counts_innings_from_zero_and_labels_are_two_integers() -> None:
    [ball] = feed({**BALL, "inning": 1, "on": 9, "o": "9.10"}).items

    assert isinstance(ball, BallItem)
    assert (ball.innings, ball.over, ball.delivery.label) == (2, 9, Overs(9, 10))


def test_the_same_field_is_a_label_in_a_ball_and_a_number_in_an_over_end() -> None:
    over, ball = feed(OVER, BALL).items

    assert isinstance(over, OverItem)
    assert isinstance(ball, BallItem)
    assert (over.over, over.summary.runs, over.summary.score.runs) == (5, 7, 40)


@pytest.mark.parametrize(
    "change", [{"o": 6}, {"o": "6"}, {"o": "7.3"}, {"on": "6"}, {"b": 1}, {"b": None}, {"inning": -1}]
)
def test_a_ball_of_another_shape_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(LayoutChanged):
        feed({**BALL, **change})


@pytest.mark.parametrize("missing", ["o", "on", "b", "inning", "bf", "pf", "fv"])
def test_a_ball_without_a_field_of_the_contract_is_refused(missing: str) -> None:
    with pytest.raises(LayoutChanged):
        feed({name: value for name, value in BALL.items() if name != missing})


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (1, Dismissal.BOWLED),
        (2, Dismissal.CAUGHT),
        (3, Dismissal.LBW),
        (4, Dismissal.RUN_OUT),
        (5, Dismissal.STUMPED),
        (6, Dismissal.HIT_WICKET),
        (7, Dismissal.RETIRED),
        (8, Dismissal.OBSTRUCTING),
        (9, Dismissal.OTHER),
        (77, Dismissal.OTHER),
    ],
)
def test_a_dismissal_is_a_number_and_an_unknown_one_is_other(number: int, kind: Dismissal) -> None:
    [found] = feed({**WICKET, "dismissal": number}).items

    assert isinstance(found, WicketItem)
    assert (found.wicket.kind, found.wicket.player_out, found.wicket.player_key) == (kind, "Ann One", "A1")


def test_a_text_item_is_skipped_whatever_its_other_fields_hold() -> None:
    text = {"type": "tc", "id": 105, "inning": None, "on": "", "o": 6.3, "b": {}, "mfkey": "M1"}

    found = feed({**BALL, "id": 120}, text)

    assert [item.id for item in found.items] == [120]
    assert found.next_before == "105"


def test_an_empty_feed_page_is_the_end() -> None:
    assert feed() == FeedPage(items=(), next_before=None)


def test_a_feed_of_another_match_is_not_believed() -> None:
    with pytest.raises(WrongMatch, match="M2") as caught:
        feed(BALL, {**BALL, "id": 90, "mfkey": "M2"})

    assert (caught.value.source, caught.value.request) == ("crex", "balls M1")


# --- bad input ------------------------------------------------------------------------------------------------------


def spoilt_bodies(good: bytes) -> dict[str, bytes]:
    text = good.decode()
    return {
        "empty": b"",
        "blank": b"  \n",
        "truncated": good[: len(good) // 2],
        "html": b"<!doctype html><title>Welcome</title>",
        "utf-16": text.encode("utf-16"),
        "nul": b"\0" * 16,
        "byte order mark": b"\xef\xbb\xbf" + good,
        "nan": b"NaN",
        "nan inside": b'{"M1": NaN}',
        "infinity inside": b"[Infinity]",
        "huge exponent": b"1e400",
        "huge integer": b"[" + b"9" * 5000 + b"]",
        "deep list": b"[" * 100_000,
        "deep list closed": b"[" * 100_000 + b"]" * 100_000,
        "deep object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "lone surrogate": b'"\\ud800"',
        "wrong type": b"7",
        "null": b"null",
        "two bodies": good + good,
    }


CASES = [(ask, name) for ask in EVERY_ASK for name in spoilt_bodies(b"{}")]


@pytest.mark.parametrize(("ask", "name"), CASES, ids=[f"{ask.resource}-{name}" for ask, name in CASES])
def test_a_spoilt_body_is_a_typed_error_that_names_source_and_request(ask: Ask, name: str) -> None:
    spoilt = spoilt_bodies(page(PAGE_OF[ask.resource]))[name]

    with pytest.raises(ParseError) as caught:
        SOURCE.parse(ask, spoilt)

    assert caught.value.source == "crex"
    assert caught.value.request.startswith(ask.resource)
    assert caught.value.reason
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("spoilt", [b'{"a": "\xe9", "B": "", "j": ""}', b'{"a": "\\udfff", "B": "", "j": ""}'])
def test_text_in_another_encoding_is_malformed(spoilt: bytes) -> None:
    with pytest.raises(MalformedBody):
        SOURCE.parse(LIVE, spoilt)


@pytest.mark.parametrize(
    "change",
    [
        {"a": None},
        {"B": 4},
        {"j": 305},
        {"mt": -1},
        {"mt": 10**18},
        {"mt": 10.5},
        {"p": "A1.A2", "q": "9" * 5000 + ".1"},
        {"p": "A1.A2", "q": "x.1"},
        {"p": "A1.A2", "q": "5"},
        {"p": "A1.A2", "q": "5.", "s": "1.1"},
        {"b": "B1", "c": "1." + "7" * 5000 + ".2"},
        {"b": "B1", "c": "1.2"},
        {"tg": "soon"},
    ],
    ids=lambda change: ",".join(change),
)
def test_a_field_of_another_type_or_size_is_a_changed_layout(change: dict[str, object]) -> None:
    with pytest.raises(ParseError):
        board(**change)


@pytest.mark.parametrize("change", [{"id": "100"}, {"id": 2**60}, {"id": -1}, {"fv": "2"}, {"on": 10**6}, {"bf": 3}])
def test_a_feed_number_of_another_type_or_size_is_a_changed_layout(change: dict[str, object]) -> None:
    with pytest.raises(LayoutChanged):
        feed({**BALL, **change})


def test_an_empty_key_is_nobody() -> None:
    [ball] = feed({**BALL, "bf": "", "pf": None}).items

    assert isinstance(ball, BallItem)
    assert (ball.delivery.bowler, ball.delivery.batter) == (None, None)


def test_a_page_says_which_name_it_writes_beside_which_team_key() -> None:
    assert feed(BALL, {**OVER, "tfkey": "T1", "team": " Reds "}).teams == {"T1": "Reds"}
    assert feed(BALL).teams == {}


def test_one_spoilt_item_does_not_let_half_a_page_through() -> None:
    with pytest.raises(LayoutChanged):
        feed(BALL, {**BALL, "id": 90, "b": "?"})


READINGS = (Listing, Board, FeedPage, Scorecard, Names)


def reading_or_error(ask: Ask, spoilt: bytes) -> Reading | SourceError:
    try:
        return SOURCE.parse(ask, spoilt)
    except (ParseError, ObservationError) as error:
        return error


@given(
    ask=st.sampled_from(EVERY_ASK),
    place=st.integers(min_value=0, max_value=5000),
    junk=st.binary(max_size=4),
    width=st.integers(min_value=0, max_value=40),
)
def test_any_mutation_is_a_reading_or_a_typed_error(ask: Ask, place: int, junk: bytes, width: int) -> None:
    good = page(PAGE_OF[ask.resource])
    start = place % len(good)

    found = reading_or_error(ask, good[:start] + junk + good[start + width :])

    assert isinstance(found, READINGS) or (isinstance(found, SourceError) and found.source == "crex")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(ask=st.sampled_from((LIVE, BALLS)), name=st.sampled_from(sorted({*STATE, *BALL, *OVER})), value=_VALUES)
def test_any_value_in_any_field_is_a_reading_or_a_typed_error(ask: Ask, name: str, value: object) -> None:
    good: object = {**STATE, name: value} if ask is LIVE else [{**OVER, name: value}, {**BALL, name: value}]
    try:
        spoilt = body(good)
    except OverflowError:  # beyond 64 bits: no JSON of ours can say it
        return

    found = reading_or_error(ask, spoilt)

    assert isinstance(found, READINGS) or (isinstance(found, SourceError) and found.source == "crex")
