from datetime import timedelta
from typing import Any

import msgspec
import pytest

from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.crex.site import CrexSite
from tests.unit.lab.simulator.games import NOON, small_world

FEED = "/commentary/v1/getBallFeeds"
NAMES = "/mapping/getHomeMapData"


def site_at(seconds: float) -> CrexSite:
    world, _ = small_world()
    world.advance(NOON + timedelta(seconds=seconds))
    return CrexSite(world)


def get(site: CrexSite, path: str, **query: str) -> tuple[int, Any]:
    response = site.answer(Request(method="GET", path=path, query=query))
    return response.status, msgspec.json.decode(response.body)


def post(site: CrexSite, path: str, body: Any) -> tuple[int, Any]:
    response = site.answer(Request(method="POST", path=path, body=msgspec.json.encode(body)))
    return response.status, msgspec.json.decode(response.body)


def test_the_list_is_a_map_by_key() -> None:
    status, body = get(site_at(55), "/api/v3/getLiveMatches")

    assert status == 200
    assert body["11AB"]["j"] == "8/0(0.4"


def test_the_list_follows_the_world() -> None:
    world, _ = small_world()
    site = CrexSite(world)
    before = get(site, "/api/v3/getLiveMatches")[1]

    world.advance(NOON + timedelta(seconds=12))

    assert before["11AB"]["j"] == "0/0(0.0"
    assert get(site, "/api/v3/getLiveMatches")[1]["11AB"]["j"] == "1/0(0.1"


def test_a_finished_match_stays_listed_with_its_result() -> None:
    _, body = get(site_at(10_000), "/api/v3/getLiveMatches")

    assert body["11AB"]["B"] == "No result"


@pytest.mark.parametrize("path", ["/api/v3/getSV3", "/api/v3/getSC4", "/api/v3/getNothing"])
def test_an_unknown_key_or_path_is_404(path: str) -> None:
    assert get(site_at(55), path, key="NONE") == (404, {"error": "Not a valid Request"})


def test_the_feed_refuses_what_it_cannot_read() -> None:
    site = site_at(55)

    assert post(site, FEED, {"matchKey": "NONE"})[0] == 404
    assert post(site, FEED, {}) == (400, {"error": "matchKey missing from request"})
    assert post(site, FEED, {"matchKey": "11AB", "lastDocId": "x"}) == (400, {"error": "Request Payload Error!"})


def test_the_last_id_may_be_a_number_or_a_text() -> None:
    site = site_at(10_000)
    ask: dict[str, Any] = {"matchKey": "11AB", "lastDocId": None, "filters": {}, "lang": "en"}
    _, first = post(site, FEED, ask)
    last = first[-1]["id"]

    _, by_number = post(site, FEED, {**ask, "lastDocId": last})
    _, by_text = post(site, FEED, {**ask, "lastDocId": str(last)})

    assert by_number == by_text
    assert by_number[0]["id"] < last


def test_names_are_given_for_the_asked_keys_only_and_some_come_late() -> None:
    ask: dict[str, Any] = {"p": ["R1", "R10", "ZZZ"], "s": [], "u": [], "v": [], "t": ["H"], "lc": "en"}

    _, early = post(site_at(10), NAMES, ask)
    _, late = post(site_at(70), NAMES, ask)

    assert early == {"p": [{"f_key": "R1", "n": "Rover 1"}], "t": [{"f_key": "H", "n": "Herons"}]}
    assert [player["f_key"] for player in late["p"]] == ["R1", "R10"]
