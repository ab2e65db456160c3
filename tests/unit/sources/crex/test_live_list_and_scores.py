"""crex: what its list, its live state and its scorecard say, and what they must never be taken to say."""

from datetime import UTC, datetime

import pytest

from longstop.errors import LayoutChanged, ParseError
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import Listing
from longstop.sources.bodies_and_urls import read_body
from longstop.sports.cricket.model import Batter, Board, Bowler, InningsScore, Overs, ResultKind, RunTarget, Scorecard
from tests.builders import body, score
from tests.unit.sources.crex.reading import LIST, LIVE, SCORECARD, SOURCE, STATE, board, listing, page


def test_a_live_state_in_play_is_read_whole() -> None:
    found = read_body(SOURCE, LIVE, page("live_in_play.json"))

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
    found = read_body(SOURCE, LIVE, page("live_innings_break.json"))

    assert isinstance(found, Board)
    assert (found.status, found.headline, found.is_innings_over) == (MatchStatus.BREAK, "Innings Break", True)
    assert (found.batters, found.bowler, found.result, found.second) == ((), None, None, None)


@pytest.mark.req("FLD-2")
def test_a_scorecard_counts_balls_where_the_live_state_counts_overs() -> None:
    found = read_body(SOURCE, SCORECARD, page("scorecard.json"))

    assert isinstance(found, Scorecard)
    assert [(each.number, each.team, each.score) for each in found.innings] == [
        (1, "T2", score("211/9 50.0")),
        (2, "T1", score("88/3 20.3")),
    ]


def test_a_list_gives_a_board_for_each_match() -> None:
    found = read_body(SOURCE, LIST, page("live_list.json"))

    assert isinstance(found, Listing)
    assert {each.source_id: each.status for each in found.boards} == {
        "M1": MatchStatus.LIVE,
        "M2": MatchStatus.BREAK,
        "M3": MatchStatus.UPCOMING,
    }


def test_a_list_entry_and_the_live_state_of_the_same_moment_have_the_same_fingerprint() -> None:
    found = read_body(SOURCE, LIST, page("live_list.json"))
    live = read_body(SOURCE, LIVE, page("live_in_play.json"))

    assert isinstance(found, Listing)
    assert isinstance(live, Board)
    assert found.boards[0].fingerprint == live.fingerprint


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
    assert board(tg="151(17.3").target == RunTarget(runs=151, overs=Overs(17, 3))
    assert board().target is None


def test_a_match_that_has_not_begun_is_upcoming() -> None:
    found = board(B="", j="0/0(0.0", k="")

    assert (found.status, found.start_at) == (MatchStatus.UPCOMING, datetime(2026, 3, 7, 14, tzinfo=UTC))


def rb(*sides: str, innings: int = 0) -> list[dict[str, object]]:
    return [{"b": [], "bt": side, "i": innings, "o": nth} for nth, side in enumerate(sides, start=1)]


@pytest.mark.parametrize(("bats", "bowls"), [("T1", "T2"), ("T2", "T1")])
def test_who_bats_is_what_play_shows_not_the_order_of_the_fixture(bats: str, bowls: str) -> None:
    found = board(a="T1.T2", rb=rb(bowls, bats))

    assert (found.batting, found.bowling, found.is_batting_known) == (bats, bowls, True)


@pytest.mark.parametrize("shown", [[], None, "", [{"o": 1}], rb("T9"), rb("")])
def test_without_play_both_sides_are_known_but_not_who_bats(shown: object) -> None:
    found = board(a="T1.T2", rb=shown)

    assert found.team_keys == {"T1", "T2"}
    assert not found.is_batting_known


@pytest.mark.parametrize(("second", "innings"), [("0/0(0.0", 0), ("1/0(0.1", 1), ("0/0(0.0", 2), ("1/0(0.1", 3)])
def test_the_last_overs_say_who_bats_only_in_their_own_innings(second: str, innings: int) -> None:
    """With the first ball of an innings they may still be those of the last one."""
    assert board(k=second, rb=rb("T2", innings=innings)).is_batting_known
    assert not board(k=second, rb=rb("T2", innings=innings + 1)).is_batting_known


def test_a_state_may_show_its_format_where_the_start_is_expected() -> None:
    found = read_body(SOURCE, LIVE, body({"a": "T1.T2", "B": "1", "j": "40/2(6.3", "mt": "T20"}))

    assert isinstance(found, Board)
    assert (found.match_format, found.start_at) == ("T20", None)
    assert board(mt="T20", fo="ODI").match_format == "ODI"


@pytest.mark.parametrize("code", ["1lb", "lb1", "b4", "4b"])
def test_byes_are_play_however_they_are_written(code: str) -> None:
    assert (board(B=code).status, board(B=code).headline) == (MatchStatus.LIVE, "")


@pytest.mark.req("FLD-5")
def test_an_empty_list_is_an_answer() -> None:
    assert listing({}) == Listing(boards=())


@pytest.mark.req("FLD-5")
@pytest.mark.parametrize("bad", [{"a": "T1.T2"}, {**STATE, "j": "rain"}, {**STATE, "mt": []}, [], None, "M9"])
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
