"""When a poll of a football match ends after its first two answers: unchanged is free."""

from typing import cast

import pytest

from longstop.matches.source_client_and_poll_attempt import PollAttempt
from longstop.sports.football.model import FootballState
from longstop.sports.football.poll_requests import PARTS_INTERVAL_SECONDS
from tests.football_site import LookingAtFootball, card, event, goal
from tests.live import CONFIRMED


async def shows_news(polling: LookingAtFootball, *, is_full: bool = False) -> bool:
    """Return whether a poll has read what the site shows, rather than found it unchanged; go on from there."""
    attempt = PollAttempt()
    polling.clock.advance(2.5)
    observation = await polling.pipeline.observe(polling.state, is_full=is_full, attempt=attempt)
    polling.state = cast(
        FootballState, (await polling.pipeline.apply(polling.state, observation, attempt, trust=CONFIRMED)).state
    )
    return observation.view is not None


@pytest.fixture
async def known(polling: LookingAtFootball) -> LookingAtFootball:
    """A match in sync whose pages the last poll has remembered."""
    polling.pages.event, polling.pages.incidents = event("1st half", 1, 0), [goal(1, 1, 0)]
    await polling.poll(2)
    polling.pages.asked.clear()
    return polling


async def test_a_poll_of_unchanged_pages_ends_after_two_requests_and_changes_nothing(known: LookingAtFootball) -> None:
    known.pages.event = event("1st half", 1, 0, userCount=3, changes={"changeTimestamp": 7})
    before = known.state

    assert not await shows_news(known)

    assert known.pages.asked == ["incidents", "77"]
    assert known.state is before


async def test_a_list_that_is_still_not_there_is_unchanged(polling: LookingAtFootball) -> None:
    polling.pages.event, polling.pages.incidents = event("Not started", {}, {}), None
    await polling.poll(2)

    assert not await shows_news(polling)
    polling.pages.incidents = []
    assert await shows_news(polling)


async def test_a_change_of_either_page_is_read(known: LookingAtFootball) -> None:
    known.pages.incidents = [goal(1, 1, 0), card(2)]
    assert await shows_news(known)
    known.pages.event = event("Halftime", 1, 0)
    assert await shows_news(known)


async def test_a_full_poll_reads_unchanged_pages(known: LookingAtFootball) -> None:
    assert await shows_news(known, is_full=True)


async def test_line_ups_are_read_when_they_are_due_though_nothing_else_has_changed(known: LookingAtFootball) -> None:
    known.clock.advance(PARTS_INTERVAL_SECONDS)

    assert await shows_news(known)

    assert "lineups" in known.pages.asked


async def test_the_same_pages_again_confirm_a_step_back(known: LookingAtFootball) -> None:
    known.pages.event, known.pages.incidents = event("1st half", 0, 0), []

    assert [await shows_news(known) for _ in range(2)] == [True, True]
    assert known.versions()[-1] == "goal:home:1 2 void"
