"""espncricinfo: one page, everything inside it, and only the last twenty balls."""

import msgspec
import pytest

from longstop.errors import LayoutChanged, MalformedBody, SourceError, WrongMatch
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, Query
from longstop.sources.base import SourceConfig
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.espncricinfo.source import EspncricinfoSource
from longstop.sports.cricket.model import (
    BALLS,
    NAMES,
    SCORECARD,
    Batter,
    Board,
    Bowler,
    Delivery,
    Dismissal,
    EventListPage,
    InningsScore,
    Names,
    Overs,
    OverSummary,
    ResultKind,
    Runs,
    Scorecard,
    SeenEvent,
)
from tests.builders import CREX_CONFIG
from tests.espn_page import (
    HOME,
    ball,
    innings,
    list_page,
    match,
    match_page,
    older_list_page,
    over,
    page,
    page_in_play,
)

CONFIG: SourceConfig = msgspec.structs.replace(
    CREX_CONFIG, domain_id="espncricinfo", metadata={"site_url": "https://site.test"}
)
SOURCE = EspncricinfoSource(CONFIG)


def read(resource: str, body: bytes, source_id: str = "77") -> object:
    return read_body(SOURCE, Query(resource=resource, source_id=source_id), body)


def board_of(body: bytes) -> Board:
    board = read(LIVE, body)
    assert isinstance(board, Board)
    return board


def feed_of(body: bytes) -> EventListPage:
    feed = read(BALLS, body)
    assert isinstance(feed, EventListPage)
    return feed


def test_all_that_is_asked_of_a_match_is_one_page() -> None:
    asks = [Query(resource=resource, source_id="77") for resource in (LIVE, BALLS, SCORECARD, NAMES)]

    urls = {SOURCE.request(ask).url for ask in asks}

    assert urls == {"https://site.test/series/series-0/match-77/full-scorecard"}


def test_a_board_has_the_scores_of_the_pair_that_is_played() -> None:
    body = match_page([innings(1, 176, 6, 20), innings(2, 43, 1, 4.3, target=177)], [])

    board = board_of(body)

    assert board.first == InningsScore(runs=176, wickets=6, overs=Overs(20, 0))
    assert board.second == InningsScore(runs=43, wickets=1, overs=Overs(4, 3))
    assert (board.batting, board.bowling) == ("502", "501")
    assert board.target is not None
    assert board.target.runs == 177


@pytest.mark.req("FLD-1")
@pytest.mark.parametrize("status", ["Stumps", "Lunch", "Tea", "Drinks", "Rain", "Innings break", "Bad light"])
def test_a_break_is_no_end(status: str) -> None:
    board = board_of(match_page([innings(1, 9, 0, 1.2)], [], status=status))

    assert board.status is MatchStatus.BREAK
    assert board.headline == status
    assert board.result is None


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"status": "RESULT", "statusText": "Ashford won by 17 runs"}, ResultKind.WON),
        ({"status": "RESULT", "statusText": "Match tied (Bexley won the Super Over)"}, ResultKind.TIE),
        ({"status": "RESULT", "statusText": "Match drawn"}, ResultKind.DRAW),
        ({"status": "No result", "statusText": "No result"}, ResultKind.NO_RESULT),
        ({"status": "Abandoned", "statusText": "Match abandoned without a ball bowled"}, ResultKind.ABANDONED),
    ],
)
def test_a_result_is_read_from_its_words(changes: dict[str, str], outcome: ResultKind) -> None:
    board = board_of(match_page([innings(1, 9, 0, 1.2)], [], state="POST", stage="FINISHED", **changes))

    assert board.status is MatchStatus.COMPLETED
    assert board.result is not None
    assert board.result.outcome is outcome


@pytest.mark.req("FLD-2")
def test_over_and_ball_are_read_from_digits_and_the_number_of_the_delivery_is_its_own() -> None:
    """16.08 is the eighth delivery of over 16, whose label 16.6 says that six of them were legal."""
    body = match_page([innings(1, 9, 0, 16.6)], [ball(8, "16.6", 8), ball(7, "16.5", 7, wides=1)])

    eighth, seventh = feed_of(body).items

    assert isinstance(eighth, SeenEvent)
    assert isinstance(seventh, SeenEvent)
    assert isinstance(eighth.content, Delivery)
    assert isinstance(seventh.content, Delivery)
    assert (eighth.over, eighth.nth, eighth.content.label) == (16, 8, Overs(16, 6))
    assert (seventh.nth, seventh.content.runs) == (7, Runs(wides=1))


def test_a_wicket_names_the_player_and_how() -> None:
    fallen = {"isWicket": True, "outPlayerId": 11, "dismissalType": 3, "dismissalText": {"short": "lbw"}}
    body = match_page([innings(1, 0, 1, 0.1)], [ball(1, "0.1", 1) | fallen])

    [item] = feed_of(body).items

    assert isinstance(item, SeenEvent)
    assert isinstance(item.content, Delivery)
    [wicket] = item.content.wickets
    assert (wicket.kind, wicket.player_out, wicket.player_key) == (Dismissal.LBW, "A Batter", "11")


def test_the_list_is_a_window_and_overs_and_first_balls_are_shown_apart() -> None:
    first = over(1, 4, 4) | {"balls": [ball(1, "0.1", 1, 4)]}
    body = match_page([innings(1, 9, 0, 2.1, first, over(2, 5, 9))], [ball(13, "2.1", 1)])

    feed = feed_of(body)

    assert feed.is_window
    assert feed.next_before is None
    assert [item.source_event_id for item in feed.items] == ["13"]
    ends = [(item.over, item.content) for item in feed.detached if isinstance(item.content, OverSummary)]
    assert [(nth, summary.runs, summary.balls) for nth, summary in ends] == [(0, 4, 6), (1, 5, 6)]
    assert [item.source_event_id for item in feed.detached if isinstance(item.content, Delivery)] == ["1"]


def test_without_commentary_the_balls_are_those_of_the_summary() -> None:
    fallen = {"isWicket": True, "outPlayerId": 11, "dismissalType": 3}
    shown = [ball(14, "2.2", 2) | fallen, ball(13, "2.1", 1, 4)]

    found = feed_of(page_in_play([innings(1, 9, 1, 2.2, over(1, 4, 4), over(2, 1, 5))], shown))

    assert [item.source_event_id for item in found.items] == ["14", "13"]
    assert found.is_window
    newest = found.items[0]
    assert isinstance(newest, SeenEvent)
    assert isinstance(newest.content, Delivery)
    assert [wicket.kind for wicket in newest.content.wickets] == [Dismissal.LBW]


def test_a_ball_in_commentary_and_summary_is_shown_once_and_the_commentary_counts() -> None:
    """Only the commentary says in words how a batter was out."""
    fallen = {"isWicket": True, "outPlayerId": 11, "dismissalType": 99}
    data = {
        "innings": [innings(1, 4, 1, 0.2)],
        "recentBallCommentary": {
            "ballComments": [ball(2, "0.2", 2) | fallen | {"dismissalText": {"short": "stumped"}}]
        },
        "supportInfo": {"liveSummary": {"recentBalls": [ball(2, "0.2", 2) | fallen, ball(1, "0.1", 1, 4)]}},
    }

    found = feed_of(page({"data": {"match": match(), "content": data}}))

    assert [item.source_event_id for item in found.items] == ["2", "1"]
    newest = found.items[0]
    assert isinstance(newest, SeenEvent)
    assert isinstance(newest.content, Delivery)
    assert [wicket.kind for wicket in newest.content.wickets] == [Dismissal.STUMPED]


def test_who_bats_and_bowls_now_is_in_the_summary() -> None:
    board = board_of(page_in_play([innings(1, 68, 1, 8.4)], []))

    assert board.batters == (
        Batter(key="12", runs=22, balls=16, on_strike=False),
        Batter(key="11", runs=35, balls=32, on_strike=True),
    )
    assert board.bowler == Bowler(key="22", runs=16, balls=10, wickets=0)


def test_a_finished_match_has_nobody_at_the_crease() -> None:
    over_now = {"state": "POST", "status": "RESULT", "statusText": "Ashford won by 17 runs"}

    board = board_of(page_in_play([innings(1, 68, 1, 8.4)], [], **over_now))

    assert (board.batters, board.bowler) == ((), None)


def test_the_players_of_the_summary_have_names_although_the_squads_are_not_shown() -> None:
    names = read(NAMES, page_in_play([innings(1, 68, 1, 8.4)], []))

    assert isinstance(names, Names)
    assert names.players == {"11": "A Batter", "12": "C Partner", "22": "Bowler", "23": "Bowler"}


def test_the_older_layout_of_a_list_is_read_like_the_newer_one() -> None:
    matches = [match(), match(object_id=78, state="POST", status="ABANDONED", statusText="Match abandoned")]

    assert read(LIST, older_list_page(*matches), source_id="") == read(LIST, list_page(*matches), source_id="")


@pytest.mark.parametrize("props", [{}, {"pageProps": {}}, {"pageProps": {"data": {"content": {"matches": []}}}}])
def test_a_list_in_no_known_layout_has_changed(props: dict[str, object]) -> None:
    script = msgspec.json.encode({"props": props})

    with pytest.raises(LayoutChanged):
        read(LIST, b'<script id="__NEXT_DATA__" type="application/json">' + script + b"</script>", source_id="")


def test_a_list_entry_names_both_sides_but_not_who_bats() -> None:
    listing = read(LIST, list_page(match()), source_id="")

    assert isinstance(listing, Listing)
    [board] = listing.boards
    assert isinstance(board, Board)
    assert board.team_keys == {"501", "502"}
    assert not board.is_batting_known


def test_a_side_that_is_not_known_yet_is_left_out() -> None:
    """A final is announced before its sides are known."""
    listing = read(LIST, list_page(match(teams=[{"team": HOME}])), source_id="")

    assert isinstance(listing, Listing)
    [board] = listing.boards
    assert isinstance(board, Board)
    assert board.team_keys == {"501"}


def test_an_over_that_goes_on_is_not_summed_up() -> None:
    body = match_page([innings(1, 4, 0, 0.3, over(1, 4, 4, balls=3, isComplete=False))], [])

    assert feed_of(body).detached == ()


def test_listing_and_page_agree_on_what_has_changed() -> None:
    listing = read(LIST, list_page(match(), match(object_id=78, liveOvers=1.03)), source_id="")

    assert isinstance(listing, Listing)
    assert listing.boards[0].fingerprint == board_of(match_page([innings(1, 9, 0, 1.2)], [])).fingerprint
    assert listing.boards[1].fingerprint != listing.boards[0].fingerprint
    assert [board.source_id for board in listing.boards] == ["77", "78"]


def test_scorecard_and_names_come_from_the_same_page() -> None:
    body = match_page([innings(1, 9, 0, 1.2)], [])

    card, names = read(SCORECARD, body), read(NAMES, body)

    assert isinstance(card, Scorecard)
    assert [(item.number, item.team, item.score.runs) for item in card.innings] == [(1, "501", 9)]
    assert isinstance(names, Names)
    assert names.players == {"11": "A Batter", "22": "B Bowler"}
    assert names.teams == {"501": "Ashford", "502": "Bexley"}


def test_a_page_of_another_match_is_refused() -> None:
    with pytest.raises(WrongMatch, match="match 77"):
        read(LIVE, match_page([innings(1, 9, 0, 1.2)], []), source_id="99")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Welcome</html>",
        b'<script id="__NEXT_DATA__" type="application/json">{"props": </script>',
        b'<script id="__NEXT_DATA__" type="application/json">' + b"[" * 100_000 + b"</script>",
        b"\xff\xfe",
    ],
)
def test_a_page_without_readable_state_is_malformed_and_says_where(body: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        read(LIVE, body)

    assert isinstance(caught.value, MalformedBody | LayoutChanged)
    assert caught.value.source == "espncricinfo"
    assert caught.value.request == "live 77"


@pytest.mark.parametrize(
    "changes",
    [{"state": "BAFFLED"}, {"objectId": "77"}, {"teams": None}, {"liveOvers": -1}],
)
def test_a_changed_field_is_a_changed_layout(changes: dict[str, object]) -> None:
    body = match_page([innings(1, 9, 0, 1.2)], [], **changes)

    with pytest.raises(LayoutChanged):
        read(LIVE, body)
