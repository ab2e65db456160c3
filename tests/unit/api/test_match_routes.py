import json
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from longstop.model.data_finding import Finding, FindingKind, StoredFinding
from longstop.model.event import Op
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.model.snapshot import checksum
from tests.readers import NOW, PAYLOAD, ManualClock, MemoryHot, MemoryReader, a_ball, a_hot_row, a_match, a_record
from tests.readers import a_snapshot as stored_snapshot

MATCH = "/cricket-data/match-info/1"
ETAG = f'"{checksum(PAYLOAD)}"'


@pytest.mark.req("FR-013")
@pytest.mark.parametrize("name", ["1", "crex_M1"])
async def test_a_match_is_served_as_stored_with_its_age_beside_it(
    client: httpx.AsyncClient, reader: MemoryReader, name: str
) -> None:
    finding = Finding(kind=FindingKind.GAP, place="1:4", detail="two balls are missing")
    reader.found[1] = [
        StoredFinding(finding=finding, opened_at=NOW, closed_at=None),
        StoredFinding(finding=finding, opened_at=NOW, closed_at=NOW),
        StoredFinding(finding=finding, opened_at=NOW, closed_at=NOW),
    ]

    answer = await client.get(f"/cricket-data/match-info/{name}")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Data-Freshness"] == "2026-11-15T11:59:58.500Z"
    assert answer.headers["X-Data-Age-Seconds"] == "1.500"
    assert answer.headers["X-Data-Sync"] == "in_sync"
    assert answer.headers["ETag"] == ETAG
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.content.startswith(PAYLOAD[:-1])
    assert answer.json() == json.loads(PAYLOAD) | {
        "_metadata": {
            "scraped_at": "2026-11-15T11:59:58.500Z",
            "data_age_seconds": 1.5,
            "captured_at": "2026-11-15T11:59:40.000Z",
            "sequence": 7,
            "checksum": checksum(PAYLOAD),
            "scraper_id": "node-1",
            "source": "scraper",
            "sync": "in_sync",
            "phase": "active",
            "open_findings": 1,
            "reliable": True,
            "reliability_reasons": [],
        }
    }


@pytest.mark.req("FR-013")
async def test_the_age_grows_with_the_clock_and_is_never_negative(
    client: httpx.AsyncClient, clock: ManualClock
) -> None:
    clock.advance(10)
    later = await client.get(MATCH)
    clock.advance(-30)
    earlier = await client.get(MATCH)

    assert later.headers["X-Data-Age-Seconds"] == "11.500"
    assert earlier.headers["X-Data-Age-Seconds"] == "0.000"
    assert earlier.json()["_metadata"]["data_age_seconds"] == 0


@pytest.mark.parametrize("tag", [ETAG, f"W/{ETAG}", f'"other", {ETAG}', f'"other",W/{ETAG}', "*"])
async def test_a_known_payload_is_not_sent_again_but_its_age_is(client: httpx.AsyncClient, tag: str) -> None:
    answer = await client.get(MATCH, headers={"If-None-Match": tag})

    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["ETag"] == ETAG
    assert answer.headers["X-Data-Age-Seconds"] == "1.500"
    assert answer.headers["X-Data-Freshness"] == "2026-11-15T11:59:58.500Z"


@pytest.mark.parametrize("tag", ['"other"', ETAG.strip('"'), f'{ETAG[:-2]}"', "", "W/", ",,"])
async def test_an_unknown_tag_gets_the_payload(client: httpx.AsyncClient, tag: str) -> None:
    answer = await client.get(MATCH, headers={"If-None-Match": tag})

    assert answer.status_code == 200


@pytest.mark.req("FR-013")
async def test_without_a_live_row_the_store_answers_with_the_snapshots_own_age(
    client: httpx.AsyncClient, hot: MemoryHot, reader: MemoryReader
) -> None:
    hot.held.clear()
    reader.kept[1] = [stored_snapshot(), stored_snapshot(payload=b'{"old":1}')]

    answer = await client.get(MATCH)

    assert answer.content.startswith(PAYLOAD[:-1])
    assert answer.headers["X-Data-Age-Seconds"] == "40.000"
    assert answer.headers["X-Data-Sync"] == "unwatched"


async def test_a_match_not_polled_yet_differs_from_an_unknown_one(client: httpx.AsyncClient, hot: MemoryHot) -> None:
    hot.held[1] = a_hot_row(payload=None)

    discovered = await client.get(MATCH)
    unknown = await client.get("/cricket-data/match-info/2")
    unknown_name = await client.get("/cricket-data/match-info/crex_ABC")

    assert discovered.status_code == unknown.status_code == unknown_name.status_code == 404
    assert discovered.json() == {"error": "Match crex_M1 was discovered but not polled yet."}
    assert unknown.json() == {"error": "There is no match 2; the list of matches has the ids that exist."}
    assert unknown_name.json() == {"error": "There is no match crex_ABC; the list of matches has the ids that exist."}


@pytest.mark.parametrize(
    "name",
    ["%2e%2e", "%2E.", "%00", "1%00", "a" * 300, "9" * 300, "0", "01", "-1", "1.0", "crex_", "_1", "CON"]
    + [
        quote(text, safe="")
        for text in ("١", "crex_é", "' OR 1=1 --", "crex_M1\n", "\r\nX-Evil: 1", "crex_M1;x", "\U0001f3cf")
    ],
)
async def test_a_malformed_id_is_a_sentence_and_never_looked_up(
    client: httpx.AsyncClient, reader: MemoryReader, name: str
) -> None:
    reader.broken = AssertionError("looked up")

    for suffix in ("", "/events"):
        url = httpx.URL("http://api").copy_with(raw_path=f"/cricket-data/match-info/{name}{suffix}".encode())
        answer = await client.get(url)

        assert answer.status_code == 400
        assert "is not a match id" in answer.json()["error"]


@pytest.mark.parametrize("name", ["../secret", "..%2fsecret", "%2e%2e%2fsecret", "%2fetc%2fpasswd"])
async def test_a_path_inside_an_id_leads_nowhere(client: httpx.AsyncClient, name: str) -> None:
    url = httpx.URL("http://api").copy_with(raw_path=f"/cricket-data/match-info/{name}".encode())

    answer = await client.get(url)

    assert answer.status_code == 404
    assert list(answer.json()) == ["error"]


async def test_the_list_shows_each_match_with_its_age(client: httpx.AsyncClient, reader: MemoryReader) -> None:
    reader.rows[2] = a_match(2, phase=Phase.DISCOVERED, status=MatchStatus.UPCOMING)

    answer = await client.get("/cricket-data/matches")

    assert answer.json() == {
        "matches": [
            {
                "matchId": 1,
                "match_id": "crex_M1",
                "title": "Match 1",
                "status": "live",
                "phase": "active",
                "start_time": "2026-11-15T11:00:00.000Z",
                "data_age_seconds": 1.5,
                "last_poll_at": "2026-11-15T11:59:58.500Z",
                "sync": "in_sync",
                "reliable": True,
                "reliability_reasons": [],
                "url": "/cricket-data/match-info/1",
            },
            {
                "matchId": 2,
                "match_id": "crex_M2",
                "title": "Match 2",
                "status": "upcoming",
                "phase": "discovered",
                "start_time": "2026-11-15T11:00:00.000Z",
                "data_age_seconds": None,
                "last_poll_at": None,
                "sync": "unwatched",
                "reliable": False,
                "reliability_reasons": ["stale"],
                "url": "/cricket-data/match-info/2",
            },
        ],
        "next_after": None,
    }


async def test_an_archived_match_with_a_gap_is_not_reliable_in_the_list(
    client: httpx.AsyncClient, hot: MemoryHot, reader: MemoryReader
) -> None:
    hot.held.clear()
    gap = Finding(kind=FindingKind.GAP, place="1:4", detail="the whole over is missing")
    reader.found[1] = [StoredFinding(finding=gap, opened_at=NOW, closed_at=None)]
    reader.rows[1], reader.rows[2] = (a_match(number, phase=Phase.ARCHIVED) for number in (1, 2))

    listed = (await client.get("/cricket-data/matches")).json()["matches"]

    assert [entry["reliability_reasons"] for entry in listed] == [["gap_open"], []]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", [1, 2, 3]),
        ("status=upcoming", [2]),
        ("phase=paused", [3]),
        ("source=other", [3]),
        ("source=crex&status=live", [1]),
        ("after=2", [3]),
        ("after=9223372036854775807", []),
    ],
)
async def test_the_list_is_filtered(
    client: httpx.AsyncClient, reader: MemoryReader, query: str, ids: list[int]
) -> None:
    reader.rows[2] = a_match(2, status=MatchStatus.UPCOMING)
    reader.rows[3] = a_match(3, source="other", phase=Phase.PAUSED)

    answer = await client.get(f"/cricket-data/matches?{query}")

    assert [match["matchId"] for match in answer.json()["matches"]] == ids


async def test_paging_the_list_meets_every_match_once(client: httpx.AsyncClient, reader: MemoryReader) -> None:
    reader.rows |= {number: a_match(number) for number in range(1, 6)}
    seen: list[int] = []
    page: dict[str, Any] = {"next_after": 0}

    while page["next_after"] is not None:
        page = (await client.get(f"/cricket-data/matches?limit=2&after={page['next_after']}")).json()
        seen += [match["matchId"] for match in page["matches"]]

    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=x", "limit"),
        ("after=-1", "after"),
        ("after=9223372036854775808", "after"),
        ("status=lively", "status"),
        ("phase=new", "phase"),
        ("source=..", "source"),
        ("source=crex%0a", "source"),
    ],
)
async def test_a_wrong_parameter_is_named_in_a_sentence(client: httpx.AsyncClient, query: str, named: str) -> None:
    answer = await client.get(f"/cricket-data/matches?{query}")

    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"Invalid request: {named}: ")


async def test_paging_the_events_meets_every_version_once(client: httpx.AsyncClient, reader: MemoryReader) -> None:
    reader.stored[1] = [a_ball(seq, nth=seq) for seq in range(1, 6)]
    seen: list[int] = []
    page: dict[str, Any] = {"next_after": 0, "has_more": True}

    while page["has_more"]:
        page = (await client.get(f"{MATCH}/events?limit=2&after={page['next_after']}")).json()
        seen += [event["seq"] for event in page["events"]]

    assert seen == [1, 2, 3, 4, 5]
    assert page["next_after"] == 5


@pytest.mark.req("FR-013")
async def test_the_events_say_how_old_they_are(client: httpx.AsyncClient, reader: MemoryReader) -> None:
    reader.stored[1] = [a_ball(1, nth=1)]

    answer = await client.get(f"{MATCH}/events?after=1")

    assert answer.headers["X-Data-Age-Seconds"] == "1.500"
    assert answer.headers["X-Data-Sync"] == "in_sync"
    assert answer.json() == {"matchId": 1, "match_id": "crex_M1", "events": [], "next_after": 1, "has_more": False}


async def test_current_events_are_the_latest_live_versions_and_say_where_to_go_on(
    client: httpx.AsyncClient, reader: MemoryReader
) -> None:
    reader.stored[1] = [
        a_ball(1, nth=1),
        a_ball(2, nth=2),
        a_ball(3, nth=2, rev=2, op=Op.UPDATE, position=3),
        a_ball(4, nth=3, position=2),
        a_ball(5, nth=4),
        a_ball(6, nth=4, rev=2, op=Op.VOID),
    ]

    page = (await client.get(f"{MATCH}/events?current=true")).json()

    assert [(event["key"], event["rev"]) for event in page["events"]] == [
        ("delivery:1:0:1", 1),
        ("delivery:1:0:3", 1),
        ("delivery:1:0:2", 2),
    ]
    assert (page["next_after"], page["has_more"]) == (6, False)


async def test_current_events_come_in_pages_and_a_void_withdraws_what_an_earlier_page_had(
    client: httpx.AsyncClient, reader: MemoryReader
) -> None:
    first, second, third = (a_ball(number, nth=number) for number in (1, 2, 3))
    reader.stored[1] = [first, second, third]
    pages = [(await client.get(f"{MATCH}/events?current=true&limit=2")).json()]
    reader.stored[1] += [a_ball(4, nth=1, rev=2, op=Op.VOID)]

    while pages[-1]["has_more"]:
        pages.append((await client.get(f"{MATCH}/events?current=true&limit=2&after={pages[-1]['next_after']}")).json())

    assert [[(event["key"], event["op"]) for event in page["events"]] for page in pages] == [
        [("delivery:1:0:1", "insert"), ("delivery:1:0:2", "insert")],
        [("delivery:1:0:1", "void"), ("delivery:1:0:3", "insert")],
    ]
    assert pages[-1]["next_after"] == 4


async def test_the_events_of_a_match_never_read_have_no_age(client: httpx.AsyncClient, hot: MemoryHot) -> None:
    hot.held.clear()

    answer = await client.get(f"{MATCH}/events")

    assert answer.status_code == 200
    assert answer.headers["X-Data-Sync"] == "recovering"
    assert "X-Data-Freshness" not in answer.headers
    assert "X-Data-Age-Seconds" not in answer.headers


async def test_a_match_that_is_catching_up_says_so(client: httpx.AsyncClient, hot: MemoryHot) -> None:
    hot.held[1] = msgspec.structs.replace(a_hot_row(), record=a_record(sync=SyncState.RECOVERING))

    answer = await client.get(MATCH)

    assert answer.headers["X-Data-Sync"] == answer.json()["_metadata"]["sync"] == "recovering"
