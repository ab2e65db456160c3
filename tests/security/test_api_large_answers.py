"""Answers that are large or slow to make: other clients do not notice them."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from longstop.api.tokens import make_token
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.snapshot import SNAPSHOTS_KEPT, canonical, checksum
from longstop.settings import load_settings
from longstop.sports.cricket.model import CricketKind, Delivery, Overs, Runs
from longstop.storage.base import MatchUpdate, SnapshotDraft
from longstop.storage.sqlite.matches import SqliteMatchStore
from tests.security.api_process import ApiProcess, attacking, peak_megabytes, probing, running_api

NOW = datetime(2026, 3, 7, 14, tzinfo=UTC)
BALLS = 20_000
PAYLOAD_BYTES = 2_000_000
FINDINGS = 5_000
MATCH = "/cricket-data/match-info/1"


async def fill(data: Path) -> None:
    """Store a match with many balls, findings, and five large snapshots."""
    async with aclosing(await SqliteMatchStore.open(data / "matches.db")) as store:
        match = await store.register(MatchRef("crex", "M1"), "Red v Blue", NOW, NOW, sport="cricket")
        await store.claim(match.match_id, "test")
        for version in range(SNAPSHOTS_KEPT):
            payload = canonical({"version": version, "text": "x" * PAYLOAD_BYTES})
            await store.save_update(update(match.match_id, payload, with_events=version == 0))


def update(match_id: int, payload: bytes, *, with_events: bool) -> MatchUpdate:
    return MatchUpdate(
        match_id=match_id,
        epoch=1,
        scraper_id="test",
        captured_at=NOW,
        phase=Phase.ACTIVE,
        status=MatchStatus.LIVE,
        title="Red v Blue",
        start_at=NOW,
        events=tuple(map(ball, range(BALLS))) if with_events else (),
        snapshot=SnapshotDraft(checksum=checksum(payload), payload=payload, provenance={}, update_latency_ms=1),
        findings=tuple(
            Finding(kind=FindingKind.GAP, place=f"1:{number}", detail="missing") for number in range(FINDINGS)
        ),
    )


def ball(number: int) -> Event:
    over, nth = divmod(number, 6)
    return Event(
        key=EventKey(CricketKind.DELIVERY, (1, over, nth + 1)),
        rev=1,
        op=Op.INSERT,
        content=Delivery(label=Overs(over, nth + 1), runs=Runs(batter=1), batter="p1", bowler="p2"),
        source_event_id=str(number),
        position=number + 1,
    )


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    data = tmp_path_factory.mktemp("data")
    asyncio.run(fill(data))
    with running_api(data) as started:
        yield started


@pytest.fixture(scope="module")
def token(api: ApiProcess) -> str:
    return make_token(load_settings({"LONGSTOP_DATA": str(api.log.parent)}, {}), "test")


def get(path: str, token: str) -> bytes:
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    return head.encode()


def test_following_the_cursor_returns_every_ball_once(api: ApiProcess, token: str) -> None:
    keys: list[str] = []
    after, has_more = 0, True
    while has_more:
        answer = api.exchange(get(f"{MATCH}/events?current=true&after={after}", token))
        page = json.loads(answer.partition(b"\r\n\r\n")[2])
        keys += [event["key"] for event in page["events"]]
        after, has_more = page["next_after"], page["has_more"]
        assert len(page["events"]) <= 1000

    assert len(keys) == len(set(keys)) == BALLS


@pytest.mark.req("NFR-006")
@pytest.mark.parametrize(
    "path",
    ["/events?current=true", "/events?limit=1000", "/history", "/delta?since=4", "/findings?limit=1000"],
)
def test_clients_that_ask_for_large_answers_delay_no_other(api: ApiProcess, token: str, path: str) -> None:
    served: list[bytes] = []

    def ask(goes_on: Callable[[], bool]) -> None:
        while goes_on():
            with suppress(OSError):
                served.append(api.exchange(get(MATCH + path, token), within=20)[:12])

    with probing(api) as probes, attacking(ask, times=8):
        time.sleep(3)

    assert b"HTTP/1.1 200" in served
    assert set(served) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert probes.failed == []
    assert probes.slowest < 0.6


def test_clients_that_do_not_read_large_answers_cost_little_memory(api: ApiProcess, token: str) -> None:
    def ask(goes_on: Callable[[], bool]) -> None:
        while goes_on():
            with suppress(OSError), api.connect() as client:
                client.sendall(get(MATCH + "/history", token))
                time.sleep(1)

    with probing(api) as probes, attacking(ask, times=30):
        peak = peak_megabytes(api, 6)

    assert peak < 600
    assert probes.failed == []
