"""How far a poll reads back, and what it does when scoreboard and event list disagree."""

from typing import cast

import pytest

from longstop.errors import ImpossibleObservation, LimitExceeded, SourceFailed, StorageError, WrongMatch
from longstop.matches.source_client_and_poll_attempt import PollAttempt, PollClient
from longstop.model.match import Phase
from longstop.model.polling_status import SyncState
from longstop.sports.cricket.model import (
    Board,
    CricketKind,
    CricketState,
    Delivery,
    Difference,
    Dismissal,
    InningsSummary,
    Overs,
    SeenEvent,
)
from longstop.sports.cricket.poll_requests import BEGINNING, assemble, read_back_to, walk
from tests.builders import (
    ball_item,
    board,
    body,
    event,
    fold,
    match_row,
    match_state,
    over_item,
    score,
    wicket,
    wicket_item,
)
from tests.crex_site import OUT_OF_ORDER, RETIRED
from tests.live import CONFIRMED, finished
from tests.unit.sports.cricket.polling import Polling

FEED = "getBallFeeds"
BOARD = "getSV3"


async def watching(*values: str) -> Polling:
    """Return a match that is in sync after these balls, with the count of requests at zero."""
    polling = Polling()
    polling.match.bowl(*values)
    await polling.start()
    await polling.poll()
    assert polling.state.sync is SyncState.IN_SYNC
    polling.site.asked.clear()
    return polling


# --- how far ---


def test_the_first_poll_is_whole() -> None:
    assert read_back_to(match_state(), board()) == BEGINNING


def test_a_state_that_is_recovering_is_read_whole() -> None:
    assert read_back_to(match_state(board=board(), sync=SyncState.RECOVERING), board()) == BEGINNING


@pytest.mark.parametrize(
    "now",
    [
        board(first=score("9/0 1.1"), is_innings_over=True),
        board(first=score("9/0 1.1"), batting="T2", bowling="T1"),
        board(first=score("9/0 1.1"), result=object()),
    ],
    ids=["innings over", "sides turned", "result"],
)
def test_an_end_is_read_whole(now: Board) -> None:
    state = match_state(sync=SyncState.IN_SYNC, board=board(first=score("9/0 1.1")))

    assert read_back_to(state, now) == BEGINNING


def test_a_finished_match_is_not_read_whole_for_ever() -> None:
    over = board(first=score("9/0 1.1"), result=object())
    state = match_state(sync=SyncState.IN_SYNC, board=over, row=match_row(phase=Phase.COMPLETED))

    assert read_back_to(state, over) is None


def test_an_over_that_ended_is_read_again() -> None:
    events = fold(event("delivery:1:3:1", "10"))
    state = match_state(events, sync=SyncState.IN_SYNC, board=board(first=score("20/0 3.5")))

    assert read_back_to(state, board(first=score("21/0 4.0"))) == (1, 3)
    assert read_back_to(state, board(first=score("21/0 3.5"))) is None


def test_a_step_back_is_looked_for_where_it_was_seen() -> None:
    suspects = frozenset({"delivery:1:2:4 void", "over:1:1 void", "result abc", "finding gap 1:0 x"})
    state = match_state(sync=SyncState.IN_SYNC, board=board(), suspects=suspects)

    assert read_back_to(state, board()) == (1, 1)


# --- walking ---


async def test_a_new_ball_costs_one_page_and_one_scoreboard() -> None:
    polling = await watching(*["1"] * 31)
    polling.match.bowl("4")

    await walk(PollClient(polling.client), polling.state)

    assert (polling.site.count(FEED), polling.site.count(BOARD)) == (1, 1)


async def test_thirty_balls_between_two_polls_are_all_there_in_order() -> None:
    polling = await watching(*["1"] * 31)
    polling.match.bowl(*["2"] * 30)

    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()
    assert polling.site.count(FEED) == 4


async def test_an_innings_that_begins_unannounced_is_read_whole_with_the_one_before_it() -> None:
    """The side that follows on bats twice running: when the break was missed, nothing else on the board has turned."""
    polling = await watching(*["1"] * 61)
    polling.match.bowl(*["1"] * 61, innings=2)
    await polling.poll(2)
    polling.match.bowl("4", innings=2)
    polling.match.bowl("2", innings=3)
    polling.match.sides = polling.match.sides[::-1]

    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()
    closed = {each.key.numbers[0]: each.content for each in polling.stored(CricketKind.INNINGS)}
    assert isinstance(closed[2], InningsSummary)
    assert (closed[2].runs, closed[2].overs) == (65, Overs(10, 2))


async def test_a_mismatch_walks_on_until_the_totals_agree() -> None:
    polling = await watching(*["1"] * 61)
    polling.match.balls[40].value = "3"

    seen = await walk(PollClient(polling.client), polling.state)

    assert seen.differences[1] == Difference()
    assert not seen.listed.is_whole
    assert {each.source_event_id for each in seen.listed.events} >= {str(polling.match.balls[40].id)}


async def test_a_ball_between_feed_and_scoreboard_is_asked_for_once_more() -> None:
    polling = await watching(*["1"] * 31)
    moments = iter(range(10))

    def bowl_before_the_first_board(resource: str) -> None:
        if resource == BOARD and next(moments) == 0:
            polling.match.bowl("4")

    polling.site.before_answer = bowl_before_the_first_board
    seen = await walk(PollClient(polling.client), polling.state)

    assert (polling.site.count(FEED), polling.site.count(BOARD)) == (2, 2)
    assert seen.differences[1] == Difference()


async def test_many_balls_between_two_questions_of_one_poll_are_all_seen() -> None:
    polling = await watching(*["1"] * 31)
    moments = iter(range(10))

    def bowl_before_the_first_board(resource: str) -> None:
        if resource == BOARD and next(moments) == 0:
            polling.match.bowl(*["4"] * 25)

    polling.site.before_answer = bowl_before_the_first_board
    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()


async def test_an_over_end_reads_that_over_from_its_first_ball() -> None:
    polling = await watching(*["1"] * 29)
    polling.match.bowl("1")

    seen = await walk(PollClient(polling.client), polling.state)

    assert seen.listed.events[0].over < 4


async def test_a_known_difference_is_not_walked_for_again() -> None:
    polling = await watching(*["1"] * 61)
    polling.match.extra_runs = 2
    await polling.poll(2)
    assert [finding.place for finding in polling.state.findings] == ["1"]
    polling.site.asked.clear()
    polling.match.bowl("1")

    await polling.poll()

    assert polling.site.count(FEED) == 1


async def test_a_difference_that_is_gone_is_no_reason_to_walk() -> None:
    polling = await watching(*["1"] * 61)
    polling.match.extra_runs = 2
    await polling.poll(2)
    polling.match.extra_runs = 0
    polling.site.asked.clear()

    await polling.poll()

    assert polling.site.count(FEED) == 1
    assert polling.state.findings == ()


async def test_a_wicket_split_from_its_ball_by_a_page_border_is_joined() -> None:
    polling = await watching("1", "1", "1")
    balls = polling.match.bowl("1", *["wd"] * 9)
    balls[0].outs = [(2, "Cat Out", "C1")]
    first_page = polling.match.feed(None)
    assert first_page[-1]["type"] == "w"

    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()
    assert (Dismissal.CAUGHT, "Cat Out") in polling.stored_balls()[3][3]


async def test_a_wicket_beyond_whose_ball_nothing_calls_for_a_walk_is_joined_too() -> None:
    polling = await watching("1", "1", *["wd"] * 9)
    polling.match.balls[1].outs = [(RETIRED, "Cat Out", "C1")]
    assert polling.match.feed(None)[-1]["type"] == "w"

    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()


async def test_a_renumbered_ball_at_the_page_border_is_not_taken_for_a_new_one() -> None:
    polling = await watching(*["0"] * 31)
    border = int(polling.match.feed(None)[-1]["id"])
    next(ball for ball in polling.match.balls if ball.id == border).id += 7

    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()


async def test_a_feed_that_does_not_move_on_is_refused() -> None:
    polling = await watching(*["1"] * 31)
    page = polling.match.feed(None)
    polling.match.feed = lambda before: page  # type: ignore[method-assign]
    await polling.restart()

    with pytest.raises(ImpossibleObservation, match="returns the same page again"):
        await polling.poll()


async def test_an_endless_feed_is_refused() -> None:
    polling = await watching("1")
    turn = iter(range(10_000))
    item = polling.match.feed(None)[0]
    polling.match.feed = lambda before: [{**item, "id": 10**6 - next(turn)}]  # type: ignore[method-assign]
    await polling.restart()

    with pytest.raises(LimitExceeded, match="SCRAPER_MAX_POLL_PAGES"):
        await polling.poll()


async def test_a_page_of_other_teams_is_not_believed_and_says_whose_it_was() -> None:
    polling = await watching("1")
    polling.match.sides = ("T8", "T9")

    with pytest.raises(WrongMatch, match="T8") as caught:
        await polling.poll()

    assert caught.value.source == "crex"
    assert "M1" in caught.value.request


async def test_an_error_in_the_middle_of_a_walk_is_the_error_of_the_poll() -> None:
    polling = await watching("1")
    polling.site.faults[BOARD] = OUT_OF_ORDER

    with pytest.raises(SourceFailed):
        await walk(PollClient(polling.client), polling.state)


# --- unchanged is free -----------------------------------------------------------------------------------------


async def shows_news(polling: Polling, *, is_full: bool = False) -> bool:
    """Return whether a poll has read what the site shows, rather than found it unchanged; go on from there."""
    attempt = PollAttempt()
    observation = await polling.pipeline.observe(polling.state, is_full=is_full, attempt=attempt)
    polling.state = cast(
        CricketState, (await polling.pipeline.apply(polling.state, observation, attempt, trust=CONFIRMED)).state
    )
    return observation.view is not None


async def polled_twice(*values: str) -> Polling:
    """Return a match in sync whose pages the last poll has remembered."""
    polling = await watching(*values)
    await polling.poll()
    polling.site.asked.clear()
    return polling


async def test_a_poll_of_unchanged_pages_ends_after_two_requests_and_changes_nothing() -> None:
    polling = await polled_twice("1", "4")
    polling.match.odds += 1
    before = polling.state

    assert not await shows_news(polling)

    assert polling.site.asked == [FEED, BOARD]
    assert polling.state is before


@pytest.mark.parametrize("change", ["ball", "headline", "score"])
async def test_a_change_of_either_page_is_read(change: str) -> None:
    polling = await polled_twice("1", "4")
    match change:
        case "ball":
            polling.match.balls[0].value = "2"
        case "headline":
            polling.match.headline = "Drinks"
        case "score":
            polling.match.j = "9/0(0.2"

    assert await shows_news(polling)


async def test_a_full_poll_reads_unchanged_pages() -> None:
    assert await shows_news(await polled_twice("1", "4"), is_full=True)


async def test_a_restart_reads_unchanged_pages() -> None:
    polling = await polled_twice("1", "4")
    await polling.restart()

    assert await shows_news(polling)


async def test_the_same_pages_again_confirm_a_step_back() -> None:
    polling = await polled_twice("1", "4")
    polling.match.balls[1].value = "0"

    assert [await shows_news(polling) for _ in range(2)] == [True, True]
    assert polling.stored_balls() == polling.true_balls()


async def test_a_failed_commit_is_made_good_though_the_pages_stay_the_same() -> None:
    polling = await polled_twice("1", "4")
    polling.match.bowl("6")
    polling.store.next_failure = StorageError("the disk is full")
    with pytest.raises(StorageError):
        await polling.poll()

    assert await shows_news(polling)
    assert polling.stored_balls() == polling.true_balls()


async def test_answers_that_a_poll_asked_for_again_are_not_remembered() -> None:
    """It did not go by them: when they come again, they are read."""
    polling = await polled_twice(*["1"] * 8)
    polling.match.bowl("4")
    polling.match.feed_lag = 1

    def catch_up(resource: str) -> None:
        if resource == BOARD:
            polling.match.feed_lag = 0

    polling.site.before_answer = catch_up
    await polling.poll()
    assert polling.site.count(FEED) == 2
    polling.match.feed_lag = 1

    assert await shows_news(polling)


# --- from items to events --------------------------------------------------------------------------------------------


def outs(event: SeenEvent) -> list[str]:
    assert isinstance(event.content, Delivery)
    return [each.player_out for each in event.content.wickets]


def test_items_become_events_oldest_first() -> None:
    found = assemble([over_item(30), ball_item(20, "0.2"), ball_item(10, "0.1")], is_whole=True)

    assert [(event.kind, event.source_event_id) for event in found.events] == [
        (CricketKind.DELIVERY, "10"),
        (CricketKind.DELIVERY, "20"),
        (CricketKind.OVER, "30"),
    ]
    assert found.is_whole


def test_an_item_on_two_pages_counts_once() -> None:
    found = assemble([ball_item(10), ball_item(10)], is_whole=False)

    assert len(found.events) == 1


def test_a_wicket_is_inside_its_ball_and_no_event_of_its_own() -> None:
    [event] = assemble([wicket_item(11), ball_item(10)], is_whole=True).events

    assert outs(event) == ["A Batter"]


def test_two_wickets_of_one_ball_are_both_kept() -> None:
    other = wicket_item(12, fallen=wicket(player_out="B Batter"))

    [event] = assemble([ball_item(10), wicket_item(11), other], is_whole=True).events

    assert outs(event) == ["A Batter", "B Batter"]


def test_a_wicket_belongs_to_the_latest_ball_with_its_label() -> None:
    wide, ball = ball_item(10, "0.3", wides=1), ball_item(20, "0.3")

    on_the_wide = assemble([wide, wicket_item(11, "0.3"), ball], is_whole=True).events
    on_the_ball = assemble([wide, ball, wicket_item(21, "0.3")], is_whole=True).events

    assert [outs(event) for event in on_the_wide] == [["A Batter"], []]
    assert [outs(event) for event in on_the_ball] == [[], ["A Batter"]]


def test_the_same_label_in_another_innings_is_another_ball() -> None:
    found = assemble([ball_item(10, "0.1", innings=1), wicket_item(21, "0.1", innings=2)], is_whole=False)

    assert (found.orphans, outs(found.events[0])) == (1, [])


def test_a_wicket_without_its_ball_is_an_orphan() -> None:
    assert assemble([wicket_item(11, "0.1"), ball_item(20, "0.2")], is_whole=False).orphans == 1


# --- wrong answers ---


async def test_a_scorecard_of_the_wrong_batting_side_does_not_outlive_its_answer() -> None:
    polling = Polling()
    polling.match.bowl("1", "4")
    polling.site.faults["getSC4"] = body([{"c": "T2", "d": "5/0(2"}])
    await polling.start()
    await polling.poll()
    del polling.site.faults["getSC4"]

    polling.match.bowl("0")
    await polling.poll()

    assert polling.state.sides == {1: "T1"}


async def test_the_names_of_the_first_poll_show_that_its_event_list_has_swapped_the_teams() -> None:
    polling = Polling()
    polling.match.bowl("1", "4")
    polling.match.item_fields = {"tfkey": "T2", "team": "Reds"}
    await polling.start()

    with pytest.raises(WrongMatch, match="swapped the teams"):
        await polling.poll()


async def test_one_answer_before_the_page_was_removed_introduces_no_match() -> None:
    polling = Polling()
    polling.match.bowl("1", "4")
    await polling.start()

    state = await finished(polling.pipeline, polling.state)

    assert state.row.phase is Phase.COMPLETED
    assert not polling.stored_balls()
