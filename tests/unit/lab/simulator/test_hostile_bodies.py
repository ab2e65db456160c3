"""Hostile bodies: in the site's own shape, just below the limit of a body, and far beyond what a match can be."""

from time import process_time
from typing import Any

import msgspec
import pytest

from longstop_lab.simulator.fault_responses import FaultInjector
from longstop_lab.simulator.faults import Fault, FaultKind, FaultRule
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.crex.site import CrexSite
from longstop_lab.simulator.sites.sofascore.site import SofascoreSite
from tests.unit.lab.simulator.football.games import scripts
from tests.unit.lab.simulator.football_site import FootballSite
from tests.unit.lab.simulator.games import NOON, small_world

#: A body of five million bytes is refused by default; these stay below.
LIMIT = 5_000_000
STATE = Request(method="GET", path="/api/v3/getSV3", query={"key": "11AB"})
CREX_LIST = Request(method="GET", path="/api/v3/getLiveMatches")
CARD = Request(method="GET", path="/api/v3/getSC4", query={"key": "11AB"})
FEED = Request(method="POST", path="/commentary/v1/getBallFeeds", body=b'{"matchKey":"11AB"}')
NAMES = Request(method="POST", path="/mapping/getHomeMapData", body=b'{"p":["R0","R1"],"t":["R"]}')
LIVE = Request(method="GET", path="/api/v1/sport/football/events/live")


def crex() -> FaultInjector[Any]:
    world, _ = small_world()
    world.advance_to(55)
    return FaultInjector(world, CrexSite)


def sofascore() -> tuple[FaultInjector[Any], str]:
    """Return the site, and the address of a match in play of which it shows everything."""
    for match, script in scripts():
        site = FootballSite(match, script).at(4000)
        path = f"/api/v1/event/{match.key}"
        parts = [site.site.answer(get(path + part)) for part in ("/incidents", "/lineups", "/statistics")]
        if site.event()["status"]["type"] == "inprogress" and all(each.status == 200 for each in parts):
            return FaultInjector(site.world, SofascoreSite), path
    raise AssertionError("no match shows everything")


def get(path: str) -> Request:
    return Request(method="GET", path=path)


def answered(site: FaultInjector[Any], kind: str, request: Request) -> bytes:
    rule = FaultRule(id=1, fault=Fault(kind=FaultKind(kind)), since=NOON, until=None, seed=1)
    answer = site.answer(request, rule)
    assert answer.status == 200
    assert len(answer.body) < LIMIT
    return answer.body


def body(site: FaultInjector[Any], kind: str, request: Request) -> Any:
    return msgspec.json.decode(answered(site, kind, request))


# --- crex -----------------------------------------------------------------------------------------------------------


def test_huge_pages_of_an_event_list_each_point_to_a_next_one_for_ever() -> None:
    site, request, seen = crex(), FEED, set[int]()

    for _ in range(3):
        raw = answered(site, "huge-page", request)
        ids = [item["id"] for item in msgspec.json.decode(raw)]
        assert len(raw) > 4_800_000
        assert ids == sorted(ids, reverse=True)
        assert seen.isdisjoint(ids)
        seen |= set(ids)
        request = Request(method="POST", path=FEED.path, body=b'{"matchKey":"11AB","lastDocId":"%d"}' % ids[-1])


@pytest.mark.parametrize("request_", [STATE, CREX_LIST, CARD, NAMES], ids=lambda each: each.path)
def test_every_other_body_of_crex_is_as_huge_and_says_the_same(request_: Request) -> None:
    site = crex()

    raw = answered(site, "huge-page", request_)

    assert len(raw) > 4_800_000
    assert _without_padding(msgspec.json.decode(raw)) == msgspec.json.decode(site.answer(request_).body)


def test_one_page_of_crex_shows_50_000_balls_in_9_999_innings_and_is_the_last() -> None:
    site = crex()

    items = body(site, "many-balls", FEED)
    last = Request(method="POST", path=FEED.path, body=b'{"matchKey":"11AB","lastDocId":"%d"}' % items[-1]["id"])

    assert len({item["id"] for item in items}) == len(items) == 50_000
    assert len({item["inning"] for item in items}) == 9_999
    assert {item["type"] for item in items} == {"b"}
    assert body(site, "many-balls", last) == []
    assert body(site, "many-balls", STATE) == msgspec.json.decode(site.answer(STATE).body)


def test_a_listing_of_crex_has_50_000_matches_and_the_real_one() -> None:
    listing = body(crex(), "many-matches", CREX_LIST)

    assert len(listing) == 50_001
    assert "11AB" in listing


def test_one_name_of_crex_has_four_million_characters() -> None:
    table = body(crex(), "huge-name", NAMES)

    assert [len(each["n"]) > 4_000_000 for each in (*table["p"], *table["t"])] == [True, False, False]


def test_control_characters_stand_in_every_text_of_crex_and_in_no_code() -> None:
    site = crex()

    table, items, state = (body(site, "control-characters", each) for each in (NAMES, FEED, STATE))

    assert all(_is_hostile(each["n"]) for each in (*table["p"], *table["t"]))
    assert all(_is_hostile(item["c1"]) for item in items if "c1" in item)
    assert [item["b"] for item in items if "b" in item] == [
        item["b"] for item in msgspec.json.decode(site.answer(FEED).body) if "b" in item
    ]
    assert state == msgspec.json.decode(site.answer(STATE).body)  # a ball's code is no text


# --- sofascore ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["", "/incidents", "/lineups", "/statistics"])
def test_every_body_of_sofascore_is_huge_and_says_the_same(part: str) -> None:
    site, match = sofascore()

    raw = answered(site, "huge-page", get(match + part))

    assert len(raw) > 4_800_000
    assert _without_padding(msgspec.json.decode(raw)) == msgspec.json.decode(site.answer(get(match + part)).body)


def test_a_football_match_has_50_000_incidents() -> None:
    site, match = sofascore()

    incidents = body(site, "many-balls", get(f"{match}/incidents"))["incidents"]

    assert len({each["id"] for each in incidents}) == len(incidents) == 50_000


def test_the_live_list_of_sofascore_has_as_many_matches_as_fit_into_a_body() -> None:
    site, _ = sofascore()

    raw = answered(site, "many-matches", LIVE)
    events = msgspec.json.decode(raw)["events"]

    assert len(raw) > 4_800_000
    assert len({event["id"] for event in events}) == len(events) > 29_000
    assert events[0]["id"] == msgspec.json.decode(site.answer(LIVE).body)["events"][0]["id"]


def test_the_name_of_a_team_and_of_a_player_have_four_million_characters() -> None:
    site, match = sofascore()

    event = body(site, "huge-name", get(match))["event"]
    listed = body(site, "huge-name", LIVE)["events"]

    assert len(event["homeTeam"]["name"]) > 4_000_000
    assert len(listed[0]["homeTeam"]["name"]) > 4_000_000
    assert len(answered(site, "huge-name", get(f"{match}/incidents"))) > 4_000_000


def test_control_characters_stand_in_every_text_of_sofascore_and_in_no_code() -> None:
    site, match = sofascore()

    event = body(site, "control-characters", get(match))["event"]
    incidents = body(site, "control-characters", get(f"{match}/incidents"))["incidents"]

    texts = [event["homeTeam"]["name"], event["tournament"]["name"], event["status"]["description"]]
    assert all(_is_hostile(text) for text in texts)
    assert all(_is_hostile(each["player"]["name"]) for each in incidents if "player" in each)
    assert event["status"]["type"] == "inprogress"
    assert {each["incidentType"] for each in incidents} <= {
        *("goal", "card", "substitution", "varDecision", "inGamePenalty", "period", "injuryTime")
    }


# --- both -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["huge-page", "many-balls", "many-matches", "huge-name", "control-characters"])
def test_a_page_that_is_not_found_stays_not_found(kind: str) -> None:
    rule = FaultRule(id=1, fault=Fault(kind=FaultKind(kind)), since=NOON, until=None, seed=1)

    assert crex().answer(get("/api/v3/getSC4"), rule).status == 404
    assert sofascore()[0].answer(get("/api/v1/event/1/incidents"), rule).status == 404


@pytest.mark.parametrize("kind", ["huge-page", "many-balls", "many-matches", "huge-name"])
def test_a_second_hostile_body_takes_the_simulator_no_time_that_other_sites_would_notice(kind: str) -> None:
    (football, match), cricket = sofascore(), crex()
    asked = [
        *((football, get(path)) for path in (LIVE.path, match, f"{match}/incidents")),
        *((cricket, request) for request in (CREX_LIST, FEED, NAMES)),
    ]
    for site, request in asked:
        answered(site, kind, request)
        began = process_time()
        answered(site, kind, request)
        assert process_time() - began < 0.1, request.path


def _is_hostile(text: str) -> bool:
    return all(character in text for character in "\x00\x07\x1b\x7f\x9b\u202e\u2066")


def _without_padding(value: Any) -> Any:
    """Return the body without the field that only makes it larger."""
    if isinstance(value, list):
        return [_without_padding(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_padding(each) for name, each in value.items() if name != "padding"}
    return value
