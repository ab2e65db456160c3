import msgspec
import pytest

from longstop_lab.simulator.football.model import StatusTruth
from longstop_lab.simulator.football.world import FootballWorld, plan_football
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.sofascore.page import page_path
from longstop_lab.simulator.sites.sofascore.site import LIST, SofascoreSite
from tests.unit.lab.simulator.football.games import scripts
from tests.unit.lab.simulator.football_site import FootballSite
from tests.unit.lab.simulator.games import NOON


def get(path: str, **headers: str) -> Request:
    return Request(method="GET", path=path, headers=headers)


@pytest.fixture
def world() -> FootballWorld:
    return FootballWorld(plan_football(5, ["football"] * 30), started_at=NOON, speed=1.0, record=lambda _lines: None)


def test_the_list_has_what_is_in_play_and_nothing_else(world: FootballWorld) -> None:
    world.advance_to(0)
    listed = msgspec.json.decode(SofascoreSite(world).answer(get(LIST)).body)["events"]

    assert {event["status"]["type"] for event in listed} <= {"inprogress", "interrupted"}
    assert 0 < len(listed) < 30
    assert listed[0]["homeScore"].keys() >= {"current", "display", "period1"}


def test_an_answer_has_a_weak_tag_and_is_not_sent_again_while_it_is_the_same() -> None:
    match, script = scripts()[0]
    site = FootballSite(match, script).at(-7000)
    first = site.answer()

    again = site.answer(**{"if-none-match": first.headers["ETag"]})
    after_a_change = site.at(100_000).answer(**{"if-none-match": first.headers["ETag"]})

    assert first.headers["ETag"].startswith('W/"')
    assert first.headers["Cache-Control"] == "max-age=10, public, s-maxage=172800"
    assert (again.status, again.body) == (304, b"")
    assert b"Content-Length" not in again.encode(keeps_alive=True)
    assert after_a_change.status == 200


@pytest.mark.parametrize("path", ["/api/v1/event/1", "/api/v1/event/11400000/odds", "/event/x/1", "/api/v1/event/x"])
def test_what_is_not_there_is_not_found(world: FootballWorld, path: str) -> None:
    answer = SofascoreSite(world).answer(get(path))

    assert answer.status == 404
    assert msgspec.json.decode(answer.body) == {"error": {"code": 404, "message": "Not Found"}}


def test_the_page_of_a_match_says_whom_it_asks_about(world: FootballWorld) -> None:
    match = next(iter(world.boards.values())).match

    page = SofascoreSite(world, poll_seconds=2.5).answer(get(page_path(match)))

    assert page.content_type.startswith("text/html")
    assert f'{{"id":{match.key},"pollSeconds":2.5}}'.encode() in page.body


def test_no_match_of_a_planned_world_is_over_when_it_begins(world: FootballWorld) -> None:
    world.advance_to(0)
    statuses = [board.live["status"] for board in world.boards.values()]

    assert not {each.status for each in statuses if isinstance(each, StatusTruth)} & {"Ended", "AET", "AP", "Abandoned"}


def test_the_same_seed_plans_the_same_world_and_a_cup_is_decided_in_the_end() -> None:
    cups = plan_football(5, ["football-cup"] * 40)

    assert cups == plan_football(5, ["football-cup"] * 40)
    assert all(plan.match.is_cup for plan in cups)
    assert "draw" not in {getattr(plan.match.truth.get("result"), "outcome", "") for plan in cups}
