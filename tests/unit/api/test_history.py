from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from longstop.model.data_finding import Finding, FindingKind, StoredFinding
from longstop.model.snapshot import Provenance, Snapshot, canonical, checksum
from tests.readers import NOW, MemoryHot, MemoryReader, a_snapshot

MATCH = "/cricket-data/match-info/1"
ROUTES = ("history", "delta", "findings")


def snapshot(sequence: int, **payload: Any) -> Snapshot:
    return msgspec.structs.replace(a_snapshot(payload=canonical(payload)), sequence=sequence)


@pytest.fixture
def kept(reader: MemoryReader) -> list[Snapshot]:
    """The last three snapshots of match 1, newest first: numbers 5, 6 and 7."""
    reader.kept[1] = [
        snapshot(7, title="Reds v Blues", status="live", target={"runs": 9}),
        snapshot(6, title="Reds v Blues", status="break", headline="Lunch"),
        snapshot(5, title="Reds v Blues", status="live", headline=None),
    ]
    return reader.kept[1]


@pytest.mark.req("MON-4")
async def test_the_history_shows_every_kept_snapshot_newest_first_with_the_bytes_of_its_checksum(
    client: httpx.AsyncClient, reader: MemoryReader, kept: list[Snapshot]
) -> None:
    said = {"*": Provenance(source="crex", confidence=1.0, at=NOW)}
    reader.kept[1][0] = msgspec.structs.replace(kept[0], provenance=said)

    answer = await client.get(f"{MATCH}/history")

    document = answer.json()
    assert (document["matchId"], document["match_id"]) == (1, "crex_M1")
    assert [each["sequence"] for each in document["snapshots"]] == [7, 6, 5]
    assert document["snapshots"][0] == {
        "sequence": 7,
        "checksum": checksum(kept[0].payload),
        "created_at": "2026-11-15T11:59:20.000Z",
        "scraper_id": "node-1",
        "update_latency_ms": 12,
        "data_source": "scraper",
        "provenance": {"*": {"source": "crex", "confidence": 1.0, "at": "2026-11-15T12:00:00.000Z"}},
        "payload": {"title": "Reds v Blues", "status": "live", "target": {"runs": 9}},
    }
    assert b'"payload":' + kept[1].payload in answer.content


@pytest.mark.req("MON-4")
async def test_one_snapshot_can_be_asked_for_by_its_number(client: httpx.AsyncClient, kept: list[Snapshot]) -> None:
    one = await client.get(f"{MATCH}/history", params={"sequence": 6})
    gone = await client.get(f"{MATCH}/history", params={"sequence": 4})

    assert [each["payload"]["status"] for each in one.json()["snapshots"]] == ["break"]
    assert gone.status_code == 404
    assert gone.json() == {"error": "Snapshot 4 of match crex_M1 is not stored any more; stored: 7, 6, 5."}


async def test_a_match_never_read_has_an_empty_history_and_no_delta(client: httpx.AsyncClient, hot: MemoryHot) -> None:
    hot.held.clear()

    history = await client.get(f"{MATCH}/history")
    one = await client.get(f"{MATCH}/history?sequence=1")
    delta = await client.get(f"{MATCH}/delta")

    assert history.json()["snapshots"] == []
    assert one.json() == {"error": "Snapshot 1 of match crex_M1 is not stored any more; stored: none."}
    assert delta.status_code == 404
    assert delta.json() == {"error": "Match crex_M1 was discovered but not polled yet."}


@pytest.mark.req("MON-4")
async def test_a_delta_names_what_changed_what_came_and_what_is_gone(
    client: httpx.AsyncClient, kept: list[Snapshot]
) -> None:
    answer = await client.get(f"{MATCH}/delta", params={"since": 6})

    document = answer.json()
    about = document.pop("_metadata")
    assert document == {
        "_diff_type": "update",
        "_sequence_delta": 1,
        "_removed": ["headline"],
        "status": "live",
        "target": {"runs": 9},
    }
    assert (about["sequence"], about["checksum"]) == (7, kept[0].checksum)
    assert about["scraped_at"] == answer.headers["X-Data-Freshness"] == "2026-11-15T11:59:58.500Z"


@pytest.mark.req("MON-4")
async def test_a_delta_over_two_snapshots_is_the_difference_of_the_ends(
    client: httpx.AsyncClient, kept: list[Snapshot]
) -> None:
    document = (await client.get(f"{MATCH}/delta", params={"since": 5})).json()

    assert (document["_sequence_delta"], document["_removed"]) == (2, ["headline"])
    assert "status" not in document


@pytest.mark.req("MON-4")
async def test_a_delta_since_the_newest_is_an_empty_update(client: httpx.AsyncClient, kept: list[Snapshot]) -> None:
    document = (await client.get(f"{MATCH}/delta", params={"since": 7})).json()

    del document["_metadata"]
    assert document == {"_diff_type": "update", "_sequence_delta": 0, "_removed": []}


@pytest.mark.req("MON-4")
@pytest.mark.parametrize("parameters", [{}, {"since": 0}, {"since": 4}], ids=["none", "0", "too old"])
async def test_a_delta_since_what_is_not_kept_is_the_whole(
    client: httpx.AsyncClient, kept: list[Snapshot], parameters: dict[str, int]
) -> None:
    document = (await client.get(f"{MATCH}/delta", params=parameters)).json()

    del document["_metadata"]
    assert document == {"_diff_type": "initial", "_sequence_delta": 7} | msgspec.json.decode(kept[0].payload)


@pytest.mark.usefixtures("kept")
async def test_a_delta_since_the_future_is_refused_in_a_sentence(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{MATCH}/delta", params={"since": 8})

    assert answer.status_code == 400
    assert answer.json() == {"error": "since=8 is in the future: match crex_M1 is at sequence 7."}


async def test_findings_have_their_times_and_are_counted(client: httpx.AsyncClient, reader: MemoryReader) -> None:
    gap = Finding(kind=FindingKind.GAP, place="1:4", detail="two balls are missing")
    wrong = Finding(kind=FindingKind.MISMATCH, place="1", detail="events say 90, the board 91")
    reader.found[1] = [
        StoredFinding(finding=gap, opened_at=NOW, closed_at=None),
        StoredFinding(finding=wrong, opened_at=NOW - timedelta(seconds=9), closed_at=NOW),
    ]

    every = (await client.get(f"{MATCH}/findings")).json()
    first = (await client.get(f"{MATCH}/findings", params={"limit": 1})).json()

    assert (every["matchId"], every["match_id"], every["open"], every["total"]) == (1, "crex_M1", 1, 2)
    assert every["findings"][0] == {
        "kind": "gap",
        "place": "1:4",
        "detail": "two balls are missing",
        "opened_at": "2026-11-15T12:00:00.000Z",
        "closed_at": None,
    }
    assert every["findings"][1]["closed_at"] == "2026-11-15T12:00:00.000Z"
    assert (first["open"], first["total"], len(first["findings"])) == (1, 2, 1)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", ["1", "crex_M1"])
async def test_every_answer_carries_its_age(client: httpx.AsyncClient, route: str, name: str) -> None:
    answer = await client.get(f"/cricket-data/match-info/{name}/{route}")

    assert answer.status_code == 200
    assert answer.headers["X-Data-Age-Seconds"] == "1.500"
    assert answer.headers["X-Data-Sync"] == "in_sync"
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("route", ROUTES)
async def test_every_route_needs_a_token(stranger: httpx.AsyncClient, route: str) -> None:
    answer = await stranger.get(f"{MATCH}/{route}")

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", ["%2e%2e", "0", "crex_", quote("' OR 1=1 --", safe=""), "9" * 300])
async def test_a_malformed_id_is_never_looked_up(
    client: httpx.AsyncClient, reader: MemoryReader, route: str, name: str
) -> None:
    reader.broken = AssertionError("looked up")
    url = httpx.URL("http://api").copy_with(raw_path=f"/cricket-data/match-info/{name}/{route}".encode())

    answer = await client.get(url)

    assert answer.status_code == 400
    assert "is not a match id" in answer.json()["error"]


@pytest.mark.parametrize("route", ROUTES)
async def test_an_unknown_match_is_not_found(client: httpx.AsyncClient, route: str) -> None:
    answer = await client.get(f"/cricket-data/match-info/2/{route}")

    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "There is no match 2; the list of matches has the ids that exist."},
    )


@pytest.mark.parametrize(
    "query",
    ["history?sequence=0", "history?sequence=x", "delta?since=-1", f"delta?since={2**63}", "findings?limit=0"],
)
async def test_a_wrong_parameter_is_named(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"{MATCH}/{query}")

    assert answer.status_code == 422
    assert query.partition("?")[2].partition("=")[0] in answer.json()["error"]
