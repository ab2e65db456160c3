from datetime import timedelta
from typing import Any

import pytest

from longstop.clock import to_iso
from longstop.model.source_queries_and_answers import Query
from longstop.sources.base import SourceConfig
from longstop.sources.espncricinfo.source import EspncricinfoSource
from longstop.sports.cricket.model import BALLS, Delivery, EventListPage, OverSummary, SeenEvent
from longstop_lab.simulator.cricket.world import play, script_for
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.espncricinfo.ids import match_number
from longstop_lab.simulator.sites.espncricinfo.site import LIST, EspncricinfoSite
from longstop_lab.simulator.sites.espncricinfo.truth import as_espncricinfo
from tests.readers import NOW, ManualClock
from tests.unit.lab.simulator.espn_pages import END, address, get, listing_of, page_of, world_at
from tests.unit.lab.simulator.games import NOON
from tests.unit.lab.simulator.recorded import disagreements, needs_recorded, next_data, recorded_next_data

#: No batter was out in the first overs that are recorded, and no catch is among the last twenty balls.
NOT_IN_THE_SAMPLE = {
    ".content.innings[].inningOvers[].balls[].dismissalType is number",
    ".content.innings[].inningOvers[].balls[].outPlayerId is number",
    ".content.recentBallCommentary.ballComments[].dismissalText.fielderText is str",
}


@needs_recorded
def test_keys_and_types_agree_with_the_recorded_page() -> None:
    game = next(game for game in (play("t20", 1, index) for index in range(50)) if " runs" in game.result.text)
    world, _ = world_at(END, game, script_for(game, 1))

    found = set(disagreements(page_of(world), [recorded_next_data("espncricinfo/match_1478914.html")]))

    assert found <= NOT_IN_THE_SAMPLE


@needs_recorded
@pytest.mark.parametrize("number", [1, 2])
def test_keys_and_types_of_a_match_in_play_agree_with_a_recorded_page(number: int) -> None:
    game = play("t20", 1, number - 1)
    script = script_for(game, 1)
    world, _ = world_at(script[len(script) // 4].at, game, script)
    recordings = [
        recorded_next_data("espncricinfo/match_1478914.html"),
        recorded_next_data("extra/espncricinfo/live/1443544_inplay_wrapped.html"),
    ]

    page = page_of(world)

    found = set(disagreements(page, recordings))
    assert {each for each in found if "supportInfo" in each} <= {
        ".content.supportInfo.liveSummary.recentBalls[].dismissalType is number",
        ".content.supportInfo.liveSummary.recentBalls[].outPlayerId is number",
        # The page in play is a year older than the finished one, which has this field.
        ".content.supportInfo.liveSummary.recentBalls[].nonStrikerPlayerId is not recorded",
    }
    assert len(page["content"]["supportInfo"]["liveSummary"]["recentBalls"]) == 20
    assert ("recentBallCommentary" in page["content"]) is (number == 1)


def test_the_list_holds_the_same_object_as_the_page() -> None:
    world, _ = world_at(55)

    assert listing_of(world) == [page_of(world)["match"]]


def test_a_page_follows_the_world() -> None:
    world, _ = world_at(55)
    site = EspncricinfoSite(world, ManualClock())
    ask = Request(method="GET", path=address())
    first = site.answer(ask).body

    again = site.answer(ask).body
    world.advance(NOON + timedelta(seconds=65))
    later = site.answer(ask).body

    assert first == again
    assert [_shown(page) for page in (first, later)] == [("8/0", 5), ("8/1", 6)]


def _shown(page: bytes) -> tuple[str, int]:
    data = next_data(page)["data"]
    return data["match"]["teams"][0]["score"], len(data["content"]["recentBallCommentary"]["ballComments"])


@pytest.mark.parametrize(
    "path",
    [
        "/series/any-series-12/any-match-1/full-scorecard",
        f"/series/any-series-12/any-match-{match_number('11AB')}",
        f"/series/any-series/any-match-{match_number('11AB')}/full-scorecard",
        f"{LIST}/",
        "/",
    ],
)
def test_an_unknown_address_is_an_html_page_with_404(path: str) -> None:
    answer = get(world_at(55)[0], path)

    assert (answer.status, answer.content_type) == (404, "text/html; charset=utf-8")
    assert b"__NEXT_DATA__" not in answer.body


def test_a_post_is_not_answered() -> None:
    site = EspncricinfoSite(world_at(55)[0], ManualClock())

    assert site.answer(Request(method="POST", path=LIST)).status == 404


def test_the_page_shows_the_time_of_its_world_or_of_the_server_when_the_world_is_stopped() -> None:
    world, _ = world_at(55)
    before = page_of(world)["match"]["generatedAt"]
    world.freeze(NOON + timedelta(seconds=55))

    after = page_of(world)["match"]["generatedAt"]

    assert before == to_iso(NOON + timedelta(seconds=55))
    assert after == to_iso(NOW)


def test_a_match_that_has_not_begun_is_in_the_list_and_has_a_page() -> None:
    world, _ = world_at(5)

    assert [match["state"] for match in listing_of(world)] == ["PRE"]
    assert page_of(world)["content"]["innings"] == []


@pytest.mark.parametrize("kind", ["t20", "t20-rain", "odi"])
def test_the_source_reads_from_the_site_what_the_truth_says(kind: str) -> None:
    game = play(kind, 2, 3)
    world, lines = world_at(END, game, script_for(game, 2))
    (key,) = world.boards
    reported = {line.id: line for line in map(as_espncricinfo, lines)}

    feed = _source().parse(_ask(key), get(world, address(key)).body)

    assert isinstance(feed, EventListPage)
    for item in (*feed.items, *feed.detached):
        match item:
            case SeenEvent(content=Delivery() as ball):
                assert _delivery(ball) == _told(reported[item.source_event_id].content)
            case SeenEvent(content=OverSummary() as summary):
                place = {"innings": item.innings, "over": item.over}
                assert {**place, **_over(summary)} == reported[f"over-{item.innings}-{item.over}"].content
    assert len([item for item in feed.items if isinstance(item, SeenEvent)]) >= 20


def _source() -> EspncricinfoSource:
    config = SourceConfig(
        domain_id="espncricinfo",
        enabled=True,
        precedence_weight=1,
        adapter_class="",
        hosts=(),
        allow_private_addresses=True,
        permission=None,
        metadata={},
    )
    return EspncricinfoSource(config)


def _ask(key: str) -> Query:
    return Query(resource=BALLS, source_id=str(match_number(key)))


def _delivery(delivery: Delivery) -> dict[str, Any]:
    return {
        "label": str(delivery.label),
        "runs": delivery.runs.total,
        "boundary": delivery.boundary,
        "batter": delivery.batter,
        "bowler": delivery.bowler,
        "wickets": [(out.kind, out.player_out, out.player_key) for out in delivery.wickets],
    }


def _told(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "label": content["label"],
        "runs": sum(content["runs"].values()),
        "boundary": content["boundary"],
        "batter": content["batter"],
        "bowler": content["bowler"],
        "wickets": [(out["kind"], out["player_out"], out["player_key"]) for out in content["wickets"]],
    }


def _over(summary: OverSummary) -> dict[str, Any]:
    score = {"runs": summary.score.runs, "wickets": summary.score.wickets}
    return {"runs": summary.runs, "score": score, "bowler": summary.bowler}
