"""What exceeds a limit is refused, wherever in a page it stands, and whatever the sport."""

from typing import Any

import pytest
from msgspec import Struct

from longstop.errors import LimitExceeded, LongstopError
from longstop.matches.limits import Limits
from longstop.matches.source_client_and_poll_attempt import PollClient
from longstop.model.source_queries_and_answers import LIVE, Query
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.settings import MatchLimits
from longstop.sports.cricket.model import BALLS, Board, EventListPage
from tests.crex_site import SiteMatch
from tests.football_site import LookingAtFootball, card, lineups, player
from tests.unit.sports.cricket.polling import Polling


class Part(Struct, frozen=True):
    value: Any


SMALL = Limits(items=10, text=20)


async def refused(polling: Any, match: str) -> LimitExceeded:
    with pytest.raises(LimitExceeded, match=match) as caught:
        await polling.poll()
    return caught.value


def test_the_defaults_are_those_of_the_settings() -> None:
    limits = Limits()

    assert {name: getattr(limits, name) for name in limits.__struct_fields__} == MatchLimits().model_dump()


@pytest.mark.parametrize(
    "view",
    [
        "x" * 21,
        Part("x" * 21),
        Part(Part("x" * 21)),
        (Part(1), Part("x" * 21)),
        {"x" * 21: 1},
        {"k": {"k": ["x" * 21]}},
        frozenset({"x" * 21}),
        Part(tuple(range(11))),
        Part({str(key): 1 for key in range(11)}),
        [0] * 11,
        Part(2**53 + 1),
        {"k": -(10**400)},
    ],
)
def test_a_list_text_or_number_that_is_too_large_is_found_anywhere(view: object) -> None:
    with pytest.raises(LimitExceeded):
        SMALL.check_view(view)


def test_a_view_within_the_limits_has_the_size_of_its_longest_list() -> None:
    assert SMALL.check_view(Part(({"a": "x" * 20}, (1, 2, 3), None, 2**53, 1.5, True))) == 6


def test_a_refusal_names_the_match_the_limit_and_its_setting() -> None:
    with pytest.raises(LimitExceeded) as caught:
        Limits(events=5).check("events", 50_000, "events")

    assert caught.value.reason == "50,000 events; the limit is 5 (SCRAPER_MAX_EVENTS)"
    assert kind_of(caught.value) is FailureKind.EXCESS


@pytest.mark.parametrize("text", ["x" * 4_000_000, "\ud800" * 4_000_000])
def test_an_error_never_repeats_a_whole_page(text: str) -> None:
    error = LimitExceeded(text)

    assert len(str(error)) < 2_000
    assert isinstance(error, LongstopError)


# --- a cricket match ----------------------------------------------------------------------------------------------


async def cricket(**limits: int) -> Polling:
    polling = Polling(SiteMatch())
    polling.match.bowl(*"123456")
    polling.client.limits = Limits(**limits)
    await polling.start()
    return polling


async def test_a_match_within_the_limits_is_stored() -> None:
    polling = await cricket()

    await polling.poll()

    assert len(polling.stored_balls()) == 6


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"events": 5}, "SCRAPER_MAX_EVENTS"),
        ({"items": 5}, "SCRAPER_MAX_ITEMS"),
        ({"poll_pages": 1}, "SCRAPER_MAX_POLL_PAGES"),
        ({"poll_bytes": 500}, "SCRAPER_MAX_POLL_BYTES"),
        ({"payload_bytes": 100}, "SCRAPER_MAX_PAYLOAD_BYTES"),
    ],
)
async def test_a_match_beyond_a_limit_is_refused_as_a_whole(limits: dict[str, int], reason: str) -> None:
    polling = await cricket(**limits)

    error = await refused(polling, reason)

    assert error.source == "crex"
    assert "M1" in str(error)
    assert not polling.store.history


@pytest.mark.parametrize(("field", "value", "reason"), [("innings", 51, "INNINGS"), ("over", 600, "OVERS")])
async def test_an_innings_or_over_that_no_match_reaches_is_refused(field: str, value: int, reason: str) -> None:
    polling = await cricket()
    polling.match.match_format = "Test"
    setattr(polling.match.balls[-1], field, value)

    await refused(polling, f"SCRAPER_MAX_{reason}")


async def test_a_page_that_also_contradicts_the_stored_match_is_refused_and_not_only_doubted() -> None:
    polling = await cricket(events=400)
    polling.match.match_format = "Test"
    await polling.poll()
    polling.match.sides = ("T8", "T9")  # an answer of another match is read again as if nothing was stored
    polling.match.bowl(*"1" * 900)

    await refused(polling, "SCRAPER_MAX_EVENTS")


async def test_events_that_come_one_by_one_cannot_fill_a_match_either() -> None:
    polling = await cricket(events=30)
    refusals = 0
    for _ in range(40):
        polling.match.bowl("1")
        try:
            await polling.poll()
        except LimitExceeded:
            refusals += 1

    assert refusals > 0
    assert len(polling.store.current(1)) <= 31


async def test_a_name_that_is_too_long_is_refused_although_names_are_optional() -> None:
    polling = await cricket()
    polling.site.names["A1"] = "N" * 501

    await refused(polling, "SCRAPER_MAX_TEXT")


async def test_a_name_of_many_combining_characters_takes_no_time() -> None:
    polling = await cricket()
    polling.site.names["A1"] = "A" + "\u0301\u0316" * 100_000

    await refused(polling, "SCRAPER_MAX_TEXT")


async def test_the_live_state_of_a_match_that_does_not_lead_is_limited_too() -> None:
    polling = await cricket()
    polling.match.headline = "rain " * 200

    with pytest.raises(LimitExceeded, match="TEXT"):
        await PollClient(polling.client).ask(Query(resource=LIVE, source_id="M1"), Board)


async def pages_of(client: PollClient, count: int) -> None:
    for nth in range(count):
        await client.ask(Query(resource=BALLS, source_id="M1", cursor=str(10**6 + nth)), EventListPage)


@pytest.mark.parametrize("limits", [Limits(poll_pages=10), Limits(events=60)])
async def test_a_match_that_is_read_again_from_scratch_has_the_whole_limit_again(limits: Limits) -> None:
    polling = await cricket()
    polling.client.limits = limits
    client = PollClient(polling.client)

    for _ in range(3):
        await pages_of(client, 8)
        client.forget()


@pytest.mark.parametrize("limits", [Limits(poll_pages=10), Limits(events=60)])
async def test_a_match_is_refused_when_it_exceeds_the_limit_only_as_it_is_read_again(limits: Limits) -> None:
    polling = await cricket()
    polling.client.limits = limits
    client = PollClient(polling.client)
    await pages_of(client, 8)
    client.forget()

    with pytest.raises(LimitExceeded):
        await pages_of(client, 11)


async def test_the_bytes_of_a_match_that_is_read_again_and_again_are_those_of_one_poll() -> None:
    polling = await cricket(poll_bytes=10_000)
    client = PollClient(polling.client)

    async def read_on() -> None:
        while True:
            await pages_of(client, 1)
            client.forget()

    with pytest.raises(LimitExceeded, match="BYTES"):
        await read_on()


# --- a football match ---------------------------------------------------------------------------------------------


async def football() -> LookingAtFootball:
    return await LookingAtFootball().start()


async def test_50000_incidents_are_refused() -> None:
    looking = await football()
    looking.pages.incidents = [card(key) for key in range(50_000)]

    await refused(looking, "SCRAPER_MAX_ITEMS")


async def test_5000_players_are_refused() -> None:
    looking = await football()
    squad = lineups()
    squad["home"]["missingPlayers"] = [{"player": player(9_000 + key), "type": "injured"} for key in range(5_000)]
    looking.pages.lineups = squad

    await refused(looking, "SCRAPER_MAX_ITEMS")


async def test_thousands_of_suspicions_make_no_long_message() -> None:
    looking = await football()
    looking.pages.incidents = [{**card(key), "addedTime": -3} for key in range(1_500)]

    with pytest.raises(LongstopError) as caught:
        await looking.poll()

    assert "and 1495 more" in str(caught.value)
    assert len(str(caught.value)) < 1_000
