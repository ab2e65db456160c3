"""Line-ups and incidents of the same wrong match, read in the same moment, are not two witnesses."""

from datetime import timedelta

import pytest

from longstop.sports.football import sport
from longstop.sports.football.page_validation import POLLS_AGAINST
from tests.football_site import LookingAtFootball, card, lineups

KNOWN_AFTER = sport.SQUAD_KNOWN_AFTER


@pytest.fixture(autouse=True)
def squads_are_new(monkeypatch: pytest.MonkeyPatch, squads_are_known: None) -> None:
    monkeypatch.setattr(sport, "SQUAD_KNOWN_AFTER", KNOWN_AFTER)


@pytest.mark.req("JOB-6")
async def test_a_list_is_not_believed_at_once_because_line_ups_of_the_same_poll_name_its_players(
    polling: LookingAtFootball,
) -> None:
    polling.pages.incidents = [card(101)]
    polling.pages.lineups = lineups()

    for _ in range(POLLS_AGAINST - 1):
        await polling.poll()
        assert polling.versions() == []
    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert"]


async def test_line_ups_that_were_known_for_long_vouch_for_a_list_at_once(polling: LookingAtFootball) -> None:
    polling.pages.incidents = []
    await polling.poll()
    polling.clock.advance(KNOWN_AFTER / timedelta(seconds=1))
    polling.pages.incidents = [card(101)]

    await polling.poll()

    assert polling.versions() == ["card:home:1 1 insert"]
