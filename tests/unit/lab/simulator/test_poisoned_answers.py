"""Poisoned answers: readable, and wrong in a way that the answer itself or another resource gives away."""

from collections.abc import Iterator
from typing import Any

import msgspec

from longstop_lab.simulator.fault_responses import FaultInjector
from longstop_lab.simulator.faults import Fault, FaultKind, FaultRule
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.crex.site import CrexSite
from longstop_lab.simulator.sites.espncricinfo.site import LIST as ESPN_LIST
from longstop_lab.simulator.sites.espncricinfo.site import EspncricinfoSite
from longstop_lab.simulator.sites.sofascore.site import LIST, SofascoreSite
from tests.readers import ManualClock
from tests.unit.lab.simulator.espn_pages import address, world_at
from tests.unit.lab.simulator.football.games import scripts
from tests.unit.lab.simulator.football_site import FootballSite
from tests.unit.lab.simulator.games import NOON, small_world
from tests.unit.lab.simulator.recorded import next_data

POISONED = FaultRule(id=1, fault=Fault(kind=FaultKind.POISONED), since=NOON, until=None, seed=1)
STATE = Request(method="GET", path="/api/v3/getSV3", query={"key": "11AB"})
CREX_LIST = Request(method="GET", path="/api/v3/getLiveMatches")
CARD = Request(method="GET", path="/api/v3/getSC4", query={"key": "11AB"})
FEED = Request(method="POST", path="/commentary/v1/getBallFeeds", body=b'{"matchKey":"11AB"}')


# --- cricket --------------------------------------------------------------------------------------------------------


def crex_at(seconds: float) -> FaultInjector[Any]:
    world, _ = small_world()
    world.advance_to(seconds)
    return FaultInjector(world, CrexSite)


def body(site: FaultInjector[Any], request: Request, rule: FaultRule | None = POISONED) -> Any:
    return msgspec.json.decode(site.answer(request, rule).body)


def test_a_poisoned_state_has_a_wrong_score_and_so_has_the_list() -> None:
    site = crex_at(55)

    good, bad, listed = body(site, STATE, None), body(site, STATE), body(site, CREX_LIST)["11AB"]

    assert (good["j"], bad["j"], listed["j"]) == ("8/0(0.4", "31/1(0.4", "31/1(0.4")
    assert {**bad, "j": good["j"]} == good


def test_event_list_and_scorecard_of_a_poisoned_match_stay_right() -> None:
    site = crex_at(55)

    assert body(site, FEED) == body(site, FEED, None)
    assert body(site, CARD) == body(site, CARD, None)


def test_a_match_without_a_ball_has_no_number_to_poison() -> None:
    site = crex_at(0)

    assert body(site, STATE) == body(site, STATE, None)


def test_a_poisoned_page_of_espncricinfo_has_a_wrong_score_and_right_balls() -> None:
    world, _ = world_at(55)
    site = FaultInjector(world, lambda shown: EspncricinfoSite(shown, ManualClock()))
    page, listing = Request(method="GET", path=address()), Request(method="GET", path=ESPN_LIST)

    good, bad = (next_data(site.answer(page, rule).body)["data"] for rule in (None, POISONED))
    listed = next_data(site.answer(listing, POISONED).body)["content"]["matches"][0]

    assert [team["score"] for team in good["match"]["teams"]] == ["8/0", None]
    assert [team["score"] for team in bad["match"]["teams"]] == ["31/1", None]
    assert [team["score"] for team in listed["teams"]] == ["31/1", None]
    assert [(each["runs"], each["wickets"]) for each in bad["content"]["innings"]] == [(31, 1)]
    assert bad["content"]["recentBallCommentary"] == good["content"]["recentBallCommentary"]


# --- football -------------------------------------------------------------------------------------------------------


def contradicts_itself(score: dict[str, int]) -> bool:
    """Return whether the score breaks one of the rules that every recorded poisoned answer broke."""
    is_shown_twice = "display" in score and "penalties" not in score and score["current"] != score["display"]
    halves = score.get("period1", 0) + score.get("period2", 0)
    return is_shown_twice or ("normaltime" in score and score["normaltime"] != halves)


def impossible(incidents: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the rules that a list of incidents breaks."""
    before = (0, 0)
    for item in reversed(incidents):
        kind = item["incidentType"]
        if kind == "goal":
            is_home = item["homeScore"] > before[0]
            before = item["homeScore"], item["awayScore"]
            # The side of an own goal is that of the team or that of the scorer.
            if item["incidentClass"] != "ownGoal" and item["isHome"] is not is_home:
                yield "goal of the other side"
        if kind in ("period", "injuryTime") and item["time"] not in (45, 90, 105, 120, 999):
            yield "mark out of place"
        if item.get("time", 0) < 0:
            yield "negative minute"


def football_sites(seconds: float) -> Iterator[tuple[FootballSite, FaultInjector[Any]]]:
    for match, script in scripts()[:150]:
        site = FootballSite(match, script).at(seconds)
        if site.answer("/incidents").status == 200:
            yield site, FaultInjector(site.world, SofascoreSite)


def test_a_poisoned_event_contradicts_itself_in_list_and_single_call() -> None:
    for seconds in (1200, 5000, 10_000_000):
        for site, injector in football_sites(seconds):
            call = Request(method="GET", path=f"/api/v1/event/{site.match.key}")

            good, bad = (body(injector, call, rule)["event"] for rule in (None, POISONED))
            listed = body(injector, Request(method="GET", path=LIST))["events"]

            assert not any(contradicts_itself(good[name]) for name in ("homeScore", "awayScore"))
            assert any(contradicts_itself(bad[name]) for name in ("homeScore", "awayScore"))
            assert all(
                (each["homeScore"], each["awayScore"]) == (bad["homeScore"], bad["awayScore"]) for each in listed
            )


def test_poisoned_incidents_break_one_rule_and_all_rules_are_broken_somewhere() -> None:
    broken: set[str] = set()
    for site, injector in football_sites(10_000_000):
        call = Request(method="GET", path=f"/api/v1/event/{site.match.key}/incidents")

        good, bad, again = (body(injector, call, rule)["incidents"] for rule in (None, POISONED, POISONED))

        assert list(impossible(good)) == []
        if not good:  # abandoned before anything happened
            continue
        assert sum(one != other for one, other in zip(good, bad, strict=True)) == 1
        assert list(impossible(bad))
        assert again == bad
        broken.update(impossible(bad))
    assert broken == {"goal of the other side", "mark out of place", "negative minute"}


def test_before_the_kick_off_an_event_has_no_score_to_poison() -> None:
    match, script = scripts()[0]
    site = FootballSite(match, script).at(-5000)
    call = Request(method="GET", path=f"/api/v1/event/{match.key}")
    injector = FaultInjector(site.world, SofascoreSite)

    assert body(injector, call) == body(injector, call, None)
