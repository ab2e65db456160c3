"""The routes of football: the same as cricket's, beside them."""

import httpx
import pytest
from msgspec import Struct
from msgspec.structs import replace

from longstop.model.event import Event, EventKey, Op, StoredEvent
from longstop.model.match import MatchRow
from longstop.sports.football.model import FootballResult, Goal, GoalKind, Outcome, PeriodEnd, Substitution
from tests.readers import NOW, MemoryHot, MemoryReader, a_hot_row, a_match, a_record, a_snapshot

MATCH = "/football-data/match-info/2"
GOAL = Goal(minute=45, added=2, scorer="11", how=GoalKind.REGULAR, home=1, away=0)


def a_football_match() -> MatchRow:
    return replace(a_match(2, source="sofascore"), sport="football")


def stored(seq: int, key: str, content: Struct) -> StoredEvent:
    event = Event(key=EventKey.parse(key), rev=1, op=Op.INSERT, content=content, source_event_id=str(100 + seq))
    return StoredEvent(event=event, seq=seq, epoch=1, captured_at=NOW)


@pytest.fixture
def reader() -> MemoryReader:
    reader = MemoryReader(a_match(), a_football_match())
    reader.stored[2] = [
        stored(1, "period:1", PeriodEnd(period="HT", minute=45, home=1, away=0)),
        stored(2, "goal:home:1", GOAL),
        stored(3, "substitution:away:1", Substitution(minute=46, player_in="41", player_out="42")),
        stored(4, "result", FootballResult(outcome=Outcome.HOME, after="FT", home=1, away=0)),
    ]
    reader.kept[2] = [a_snapshot(2)]
    return reader


@pytest.fixture
def hot() -> MemoryHot:
    return MemoryHot(a_hot_row(), a_hot_row(replace(a_record(2), sport="football")))


@pytest.mark.parametrize("name", ["2", "sofascore_M2"])
async def test_a_football_match_is_served_under_its_sport(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.get(f"/football-data/match-info/{name}")

    assert answer.status_code == 200
    assert answer.headers["X-Data-Age-Seconds"] == "1.500"


@pytest.mark.parametrize("rest", ["", "/events", "/history", "/delta", "/findings"])
async def test_a_match_of_the_other_sport_is_not_found_but_pointed_to(client: httpx.AsyncClient, rest: str) -> None:
    answers = [await client.get(f"/{sport}-data/match-info/{number}{rest}") for sport, number in
               (("cricket", 2), ("football", 1))]  # fmt: skip

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json() == {"error": "Match 2 is football: ask /football-data/match-info/2."}
    assert "/cricket-data/match-info/1" in answers[1].json()["error"]


@pytest.mark.parametrize("rest", ["", "/events", "/history", "/delta", "/findings"])
async def test_every_route_of_a_football_match_answers(client: httpx.AsyncClient, rest: str) -> None:
    assert (await client.get(MATCH + rest)).status_code == 200


@pytest.mark.parametrize("path", [MATCH, f"{MATCH}/events", "/football-data/matches"])
async def test_football_wants_a_token_too(stranger: httpx.AsyncClient, path: str) -> None:
    assert (await stranger.get(path)).status_code == 401


async def test_each_list_shows_its_own_sport(client: httpx.AsyncClient) -> None:
    lists = [(await client.get(f"/{sport}-data/matches")).json()["matches"] for sport in ("cricket", "football")]

    assert [[entry["url"] for entry in entries] for entries in lists] == [["/cricket-data/match-info/1"], [MATCH]]


async def test_events_carry_their_side_and_number_and_nothing_of_cricket(client: httpx.AsyncClient) -> None:
    events = (await client.get(f"{MATCH}/events")).json()["events"]

    assert events[1] == {
        "seq": 2,
        "key": "goal:home:1",
        "kind": "goal",
        "rev": 1,
        "op": "insert",
        "side": "home",
        "nth": 1,
        "critical": True,
        "source": "sofascore",
        "source_event_id": "102",
        "captured_at": "2026-11-15T12:00:00.000Z",
        "data": {
            "minute": 45,
            "added": 2,
            "scorer": "11",
            "assist": None,
            "how": "regular",
            "home": 1,
            "away": 0,
        },
    }
    assert [(event["side"], event["nth"]) for event in events] == [(None, 1), ("home", 1), ("away", 1), (None, None)]
    assert [event["critical"] for event in events] == [True, True, False, True]


async def test_current_events_come_in_the_order_of_play(client: httpx.AsyncClient) -> None:
    events = (await client.get(f"{MATCH}/events?current=true")).json()["events"]

    assert [event["key"] for event in events] == ["goal:home:1", "period:1", "substitution:away:1", "result"]


async def test_health_points_to_a_match_under_its_sport(client: httpx.AsyncClient) -> None:
    health = (await client.get("/health")).json()

    assert MATCH in str(health)
