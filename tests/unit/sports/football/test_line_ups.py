"""Line-ups and statistics: asked for now and then, refused when they cannot be, and never replaced by less."""

import pytest

from longstop.errors import SourceFailed
from longstop.sports.football.page_validation import POLLS_AGAINST
from longstop.sports.football.poll_requests import PARTS_INTERVAL_SECONDS
from tests.football_site import LookingAtFootball, card, event, lineups, squad, statistics, substitution


async def test_line_ups_join_the_payload_when_they_are_there(polling: LookingAtFootball) -> None:
    polling.pages.event, polling.pages.lineups = event("Not started", {}, {}), None
    await polling.poll()
    polling.pages.lineups = lineups(confirmed=False)
    polling.clock.advance(PARTS_INTERVAL_SECONDS)

    await polling.poll()

    shown = polling.payload()["lineups"]
    assert (shown["confirmed"], shown["home"]["formation"], len(shown["away"]["bench"])) == (False, "4-4-2", 9)
    assert [each["key"] for each in shown["home"]["starters"]] == [str(key) for key in range(11, 22)]


async def test_line_ups_and_statistics_are_asked_for_now_and_then_only(polling: LookingAtFootball) -> None:
    polling.pages.lineups, polling.pages.statistics = lineups(), statistics()

    await polling.poll(times=10)
    assert (polling.pages.asked.count("lineups"), polling.pages.asked.count("statistics")) == (2, 1)
    await polling.poll(is_whole=True)

    # Only line-ups without any known player are requested twice.
    assert (polling.pages.asked.count("lineups"), polling.pages.asked.count("statistics")) == (3, 2)


@pytest.mark.req("FLD-7")
async def test_line_ups_without_anybody_do_not_take_the_place_of_those_we_have(polling: LookingAtFootball) -> None:
    polling.pages.lineups = lineups()
    await polling.poll()
    before = polling.payload()
    polling.pages.lineups = {"confirmed": False, "home": None, "away": None}
    polling.pages.incidents = [card(101)]
    await polling.restart()

    await polling.poll()

    assert polling.payload()["lineups"] == before["lineups"]


@pytest.mark.req("FLD-7")
async def test_what_was_read_before_a_restart_stays_when_it_cannot_be_read_again(polling: LookingAtFootball) -> None:
    polling.pages.lineups, polling.pages.statistics = lineups(), statistics()
    await polling.poll()
    before = polling.payload()
    polling.pages.lineups, polling.pages.statistics = SourceFailed("502"), None
    polling.pages.incidents = [card(101)]
    await polling.restart()

    await polling.poll()

    assert polling.payload()["lineups"] == before["lineups"]
    assert polling.payload()["statistics"] == before["statistics"]
    assert [each.name for each in polling.sink.named("resource.failed")] == ["resource.failed"]


@pytest.mark.req("JOB-6")
@pytest.mark.parametrize(
    "wrong",
    [
        {"confirmed": True, "home": squad(11), "away": squad(11)},
        {"confirmed": True, "home": {**squad(11), "players": squad(11)["players"][:10]}, "away": squad(41)},
    ],
    ids=["a player twice", "ten begin"],
)
async def test_line_ups_that_cannot_be_are_refused_and_the_poll_goes_on(
    polling: LookingAtFootball, wrong: dict[str, object]
) -> None:
    polling.pages.lineups = wrong

    await polling.poll()

    assert "lineups" not in polling.payload()
    assert polling.sink.named("resource.failed")


@pytest.mark.req("JOB-6")
async def test_a_possession_of_more_than_all_is_refused(polling: LookingAtFootball) -> None:
    polling.pages.statistics = statistics(52, 50)

    await polling.poll()

    assert "statistics" not in polling.payload()


async def test_empty_line_ups_do_not_confirm_those_of_another_match(polling: LookingAtFootball) -> None:
    polling.pages.lineups_before = [lineups(home=6000, away=7000)]
    polling.pages.lineups = {"confirmed": False, "home": None, "away": None}
    polling.pages.incidents = [card(101, who=6001)]

    await polling.poll()

    assert polling.versions() == []
    assert "lineups" not in polling.payload()
    assert polling.sink.named("resource.failed")


async def test_line_ups_before_the_first_event_are_not_replaced_by_another_match_s(polling: LookingAtFootball) -> None:
    await polling.poll()
    polling.pages.lineups_before = [lineups(home=6000, away=7000)]

    await polling.poll(is_whole=True)

    assert polling.payload()["lineups"]["home"]["starters"][0]["key"] == "11"


async def test_line_ups_that_a_list_contradicts_twice_are_read_again(polling: LookingAtFootball) -> None:
    polling.pages.lineups = lineups(home=6000, away=7000)
    await polling.poll()
    polling.pages.lineups = lineups()
    polling.pages.incidents = [card(100 + nth, who=12 + nth) for nth in range(4)]

    await polling.poll(times=POLLS_AGAINST)

    assert len(polling.versions()) == 4
    assert polling.payload()["lineups"]["home"]["starters"][0]["key"] == "11"


async def test_line_ups_of_players_of_other_matches_are_refused(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [card(101, who=12), card(102, who=13), substitution(103)]
    await polling.poll()
    polling.pages.lineups = lineups(home=6000, away=7000)

    await polling.poll(is_whole=True)

    assert polling.payload()["lineups"]["home"]["starters"][0]["key"] == "11"
    assert polling.sink.named("resource.failed")
