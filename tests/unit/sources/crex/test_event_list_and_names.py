"""crex: its event list and its table of names."""

import pytest

from longstop.errors import LayoutChanged, WrongMatch
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.crex.event_list_and_names import read_ball_value
from longstop.sports.cricket.model import (
    Delivery,
    Dismissal,
    EventListPage,
    Names,
    Overs,
    OverSummary,
    Runs,
    SeenEvent,
    SeenWicket,
    Wicket,
)
from tests.builders import body
from tests.unit.sources.crex.reading import BALL, BALLS, NAMES, OVER, SOURCE, WICKET, feed, page


def test_a_feed_page_gives_balls_wickets_and_over_ends_and_skips_texts() -> None:
    found = read_body(SOURCE, BALLS, page("ball_feed.json"))

    assert isinstance(found, EventListPage)
    kinds = [type(item.content if isinstance(item, SeenEvent) else item.wicket) for item in found.items]
    assert kinds == [Delivery, Delivery, Delivery, OverSummary, Delivery, Wicket, Delivery, Delivery, Delivery]
    assert {item.innings for item in found.items} == {2}
    assert found.next_before == "1772899002000"


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
        ("lb1", Runs(legbyes=1)),
        ("lb4", Runs(legbyes=4)),
        ("b2", Runs(byes=2)),
        ("nb+lb2", Runs(noballs=1, legbyes=2)),
        ("5p", Runs(penalty=5)),
        ("1+5p", Runs(batter=1, penalty=5)),
        ("nb+2lb", Runs(noballs=1, legbyes=2)),
    ],
)
def test_a_ball_value_says_its_runs_by_kind(text: str, runs: Runs) -> None:
    assert read_ball_value(text) == runs


@pytest.mark.parametrize(
    "text", ["", "w", "W", "-1", "1.5", "four", "+", "4+", "wd2", "2lb3", "^2", "1 ", "100", "٤", "nan"]
)
def test_a_value_outside_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(LayoutChanged, match="cannot parse the ball value"):
        read_ball_value(text)


@pytest.mark.parametrize(("flag", "boundary"), [(2, None), (4, 6), (8, 4), (4096, None)])
def test_the_flag_says_whether_it_reached_the_rope(flag: int, boundary: int | None) -> None:
    [ball] = feed({**BALL, "b": "4", "fv": flag}).items

    assert isinstance(ball, SeenEvent)
    assert isinstance(ball.content, Delivery)
    assert ball.content.boundary == boundary


@pytest.mark.req("FLD-2")
def test_the_feed_counts_innings_from_zero_and_labels_are_two_integers() -> None:
    [ball] = feed({**BALL, "inning": 1, "on": 9, "o": "9.10"}).items

    assert isinstance(ball, SeenEvent)
    assert isinstance(ball.content, Delivery)
    assert (ball.innings, ball.over, ball.content.label) == (2, 9, Overs(9, 10))


def test_the_same_field_is_a_label_in_a_ball_and_a_number_in_an_over_end() -> None:
    over, ball = feed(OVER, BALL).items

    assert isinstance(over, SeenEvent)
    assert isinstance(over.content, OverSummary)
    assert isinstance(ball, SeenEvent)
    assert isinstance(ball.content, Delivery)
    assert (over.over, over.content.runs, over.content.score.runs) == (5, 7, 40)


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

    assert isinstance(found, SeenWicket)
    assert (found.wicket.kind, found.wicket.player_out, found.wicket.player_key) == (kind, "Ann One", "A1")


def test_a_text_item_is_skipped_whatever_its_other_fields_hold() -> None:
    text = {"type": "tc", "id": 105, "inning": None, "on": "", "o": 6.3, "b": {}, "mfkey": "M1"}

    found = feed({**BALL, "id": 120}, text)

    assert [item.source_event_id for item in found.items] == ["120"]
    assert found.next_before == "105"


def test_an_empty_feed_page_is_the_end() -> None:
    assert feed() == EventListPage(items=(), next_before=None)


def test_a_feed_of_another_match_is_not_believed() -> None:
    with pytest.raises(WrongMatch, match="M2") as caught:
        feed(BALL, {**BALL, "id": 90, "mfkey": "M2"})

    assert (caught.value.source, caught.value.request) == ("crex", "balls M1")


@pytest.mark.parametrize("change", [{"id": "100"}, {"id": 2**60}, {"id": -1}, {"fv": "2"}, {"on": 10**6}, {"bf": 3}])
def test_a_feed_number_of_another_type_or_size_is_a_changed_layout(change: dict[str, object]) -> None:
    with pytest.raises(LayoutChanged):
        feed({**BALL, **change})


def test_an_empty_key_is_no_one() -> None:
    [ball] = feed({**BALL, "bf": "", "pf": None}).items

    assert isinstance(ball, SeenEvent)
    assert isinstance(ball.content, Delivery)
    assert (ball.content.bowler, ball.content.batter) == (None, None)


def test_a_page_says_which_name_it_writes_beside_which_team_key() -> None:
    assert feed(BALL, {**OVER, "tfkey": "T1", "team": " Reds "}).teams == {"T1": "Reds"}
    assert feed(BALL).teams == {}


def test_one_spoilt_item_does_not_let_half_a_page_through() -> None:
    with pytest.raises(LayoutChanged):
        feed(BALL, {**BALL, "id": 90, "b": "?"})


def test_a_key_without_a_name_stays_unresolved() -> None:
    found = read_body(SOURCE, NAMES, page("names.json"))

    assert found == Names(players={"A1": "Ann One", "A2": "Amélie Two"}, teams={"T1": "Reds", "T2": "Blues"})


def test_a_name_in_pieces_is_put_together() -> None:
    found = read_body(SOURCE, NAMES, body({"p": [{"f_key": "A1", "n": "Ame\u0301lie"}], "t": []}))

    assert found == Names(players={"A1": "Am\u00e9lie"}, teams={})
