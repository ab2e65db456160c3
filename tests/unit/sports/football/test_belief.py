"""Whether a list of incidents is this match's own: who vouches for it, and how long it is doubted."""

import pytest

from longstop.errors import SourceFailed, WrongMatch
from longstop.model.polling_status import SyncState
from longstop.sports.football.page_validation import POLLS_AGAINST, POLLS_UNKNOWN
from tests.football_site import LookingAtFootball, card, event, goal, lineups, period


async def test_incidents_of_players_of_other_matches_are_refused(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [card(101)]
    await polling.poll()
    polling.pages.incidents = [card(900 + nth, who=5000 + nth) for nth in range(3)]

    for _ in range(3):
        with pytest.raises(WrongMatch):
            await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert"]


async def test_a_list_of_which_nothing_is_known_is_believed_when_it_has_the_goals_of_the_board(
    polling: LookingAtFootball,
) -> None:
    polling.pages.lineups, polling.pages.event = None, event("1st half", 1, 0)
    polling.pages.incidents = [goal(900, 1, 0, scorer=5000)]

    outcome = await polling.poll()
    assert (polling.versions(), outcome.state.sync) == ([], SyncState.RECOVERING)
    await polling.poll(times=POLLS_UNKNOWN - 1)

    assert polling.versions() == ["goal:home:1 1 insert"]


async def test_a_list_of_which_nothing_is_known_needs_more_polls_while_there_is_no_goal(
    polling: LookingAtFootball,
) -> None:
    polling.pages.lineups = None
    polling.pages.incidents = [card(900, who=5000), period("HT", 0, 0, 45)]

    await polling.poll(times=POLLS_AGAINST - 1)
    assert polling.versions() == []
    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert", "period:1 1 insert"]


async def test_a_list_that_grows_between_two_polls_is_shown_again(polling: LookingAtFootball) -> None:
    polling.pages.lineups = None
    polling.pages.incidents = [card(101)]
    await polling.poll(times=POLLS_AGAINST - 1)
    polling.pages.incidents = [card(101), card(102, who=14)]

    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert", "card:home:2 1 insert"]


async def test_two_lists_that_differ_do_not_vouch_for_each_other(polling: LookingAtFootball) -> None:
    polling.pages.lineups = None

    for nth in range(6):
        polling.pages.incidents = [card(101, who=5000 + nth)]
        await polling.poll()

    assert polling.versions() == []


@pytest.mark.parametrize("shown", [lineups(), None], ids=["line-ups", "the board"])
async def test_a_list_that_something_speaks_against_is_believed_only_when_it_stays(
    polling: LookingAtFootball, shown: dict[str, object] | None
) -> None:
    polling.pages.lineups = shown
    polling.pages.event = event("1st half", 0 if shown else 2, 0)
    polling.pages.incidents = [card(900, who=5000)]

    outcome = await polling.poll(times=POLLS_AGAINST - 1)
    assert (polling.versions(), outcome.state.sync) == ([], SyncState.RECOVERING)
    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert"]


async def test_the_same_number_does_not_make_another_match_s_event_ours(polling: LookingAtFootball) -> None:
    polling.pages.lineups = None
    polling.pages.incidents = [card(101)]
    await polling.poll(times=POLLS_AGAINST)
    polling.pages.incidents = [card(101, who=5000, time=33), card(102, who=5001)]
    await polling.poll(times=POLLS_AGAINST - 1)
    polling.pages.incidents = [card(101)]

    await polling.poll(times=2)

    assert polling.versions() == ["card:home:1 1 insert"]
    assert not polling.state.suspects


async def test_line_ups_are_asked_for_at_once_when_only_they_can_vouch_for_a_list(polling: LookingAtFootball) -> None:
    polling.pages.lineups = SourceFailed("502")
    await polling.poll()
    polling.pages.lineups, polling.pages.incidents = lineups(), [card(101)]
    polling.pages.asked.clear()

    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert"]
    assert polling.pages.asked == ["incidents", "77", "lineups", "lineups"]


async def test_line_ups_of_another_match_vouch_for_no_one(polling: LookingAtFootball) -> None:
    polling.pages.lineups_before = [lineups(home=6000, away=7000)]
    polling.pages.incidents = [card(101, who=6001)]

    await polling.poll(times=POLLS_AGAINST - 1)

    assert polling.versions() == []
    assert "6000" not in polling.state.squad_keys
    assert polling.sink.named("resource.failed")


async def test_line_ups_that_a_list_contradicts_are_asked_for_again_before_the_list_is_doubted(
    polling: LookingAtFootball,
) -> None:
    polling.pages.lineups = lineups(home=6000, away=7000)
    await polling.poll()
    polling.pages.lineups, polling.pages.incidents = lineups(), [card(101)]

    await polling.poll(times=POLLS_AGAINST)

    assert polling.versions() == ["card:home:1 1 insert"]
    assert polling.payload()["lineups"]["home"]["starters"][0]["key"] == "11"


async def test_a_list_with_an_event_that_we_hold_is_believed_at_once(polling: LookingAtFootball) -> None:
    polling.pages.lineups = None
    polling.pages.incidents = [card(101)]
    await polling.poll(times=POLLS_AGAINST)
    polling.pages.incidents = [card(101), card(102, who=14)]

    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert", "card:home:2 1 insert"]


@pytest.mark.req("NFR-009")
@pytest.mark.parametrize("shown", [lineups(), None], ids=["line-ups", "no line-ups"])
async def test_one_list_of_the_other_leg_changes_nothing_though_the_same_people_play(
    polling: LookingAtFootball, shown: dict[str, object] | None
) -> None:
    polling.pages.lineups = shown
    polling.pages.incidents = [card(101, who=12)]
    await polling.poll(times=POLLS_AGAINST)
    polling.pages.incidents = [goal(900, 1, 0, scorer=12), card(901, who=13, time=70)]
    await polling.poll()
    polling.pages.incidents = [card(101, who=12)]

    await polling.poll(times=2)

    assert polling.versions() == ["card:home:1 1 insert"]
    assert not polling.state.suspects


async def test_a_first_list_that_is_ahead_of_the_board_is_stored_one_poll_late(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [goal(100, 1, 0)]

    outcome = await polling.poll()
    assert (polling.versions(), outcome.state.sync) == ([], SyncState.RECOVERING)
    await polling.poll()

    assert polling.versions() == ["goal:home:1 1 insert"]


async def test_a_list_that_is_ahead_of_the_board_waits_no_longer_than_the_board_lags(
    polling: LookingAtFootball,
) -> None:
    polling.pages.incidents = [goal(100, 1, 0)]
    await polling.poll()
    # Meanwhile the scorer is another one: the list has not just grown.
    polling.pages.event, polling.pages.incidents = event("1st half", 1, 0), [goal(100, 1, 0, scorer=12)]

    await polling.poll()

    assert polling.versions() == ["goal:home:1 1 insert"]


async def test_a_goal_that_is_ahead_of_the_board_is_stored_at_once_beside_an_event_that_we_hold(
    polling: LookingAtFootball,
) -> None:
    polling.pages.incidents = [card(101)]
    await polling.poll()
    polling.pages.incidents = [card(101), goal(102, 1, 0, time=30)]

    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert", "goal:home:1 1 insert"]


async def test_a_doubted_list_that_is_gone_is_doubted_again_when_it_comes_back(polling: LookingAtFootball) -> None:
    polling.pages.lineups = None
    polling.pages.incidents = [card(900, who=5000)]
    await polling.poll()
    polling.pages.incidents = None

    outcome = await polling.poll(times=20)
    assert (outcome.state.sync, outcome.state.suspects) == (SyncState.IN_SYNC, frozenset())
    polling.pages.incidents = [card(900, who=5000)]
    await polling.poll()

    assert polling.versions() == []


async def test_one_list_of_another_match_changes_nothing(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [card(101), period("HT", 0, 0, 45)]
    await polling.poll()
    polling.pages.incidents = [card(900, who=5000), period("HT", 3, 3, 45)]
    await polling.poll()
    polling.pages.incidents = [card(101), period("HT", 0, 0, 45)]

    await polling.poll(times=2)

    assert polling.versions() == ["card:home:1 1 insert", "period:1 1 insert"]
    assert not polling.state.suspects


async def test_after_a_restart_the_stored_line_ups_speak_for_a_list(polling: LookingAtFootball) -> None:
    await polling.poll()
    polling.pages.lineups = None
    await polling.restart()
    polling.pages.incidents = [card(101, who=12)]

    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert"]
