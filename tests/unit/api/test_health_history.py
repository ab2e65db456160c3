"""The route to the health log."""

from asyncio import Event
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta

import httpx
import pytest

from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.server import build_app
from longstop.api.tokens import Permission, Secret, issue_token
from longstop.errors import StorageError
from longstop.storage.base import HealthRow
from tests.readers import NOW, ManualClock, MemoryHot, MemoryReader, a_node_of

ROW = HealthRow(
    scraper_id="node-1",
    timestamp=NOW,
    health_status="failing",
    error_count=6,
    match_id=7,
    ref="crex_M7",
    memory_mb=31.0,
)


class MemoryLog:
    """A health log that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int | None, str | None, datetime | None, int]] = []
        self.broken: Exception | None = None
        self.may_answer = Event()
        self.may_answer.set()

    async def recent(
        self, *, match_id: int | None = None, ref: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[HealthRow]:
        self.asked.append((match_id, ref, since, limit))
        await self.may_answer.wait()
        if self.broken is not None:
            raise self.broken
        return [ROW]

    async def aclose(self) -> None:
        self.broken = StorageError("closed")


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    made = MemoryLog()
    yield made
    made.may_answer.set()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstop.api.health_and_recovery_routes.LOG_TIMEOUT_SECONDS", 0.05)


@pytest.fixture
async def client(
    reader: MemoryReader, hot: MemoryHot, secret: Secret, clock: ManualClock, health_cache: HealthCache, log: MemoryLog
) -> AsyncIterator[httpx.AsyncClient]:
    stores = a_node_of(reader, hot, clock, health_log=log)
    app = build_app(stores, secret=secret, clock=clock, health=health_cache)
    token = issue_token(secret, subject="tester", permissions=[Permission.READ], ttl=timedelta(hours=24), now=NOW)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", headers=headers) as client:
        yield client


async def test_a_row_has_its_match_and_null_for_what_is_unknown(client: httpx.AsyncClient) -> None:
    answer = await client.get("/status/history")

    (entry,) = answer.json()["history"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert (entry["matchId"], entry["match_id"], entry["health_status"]) == (7, "crex_M7", "failing")
    assert (entry["timestamp"], entry["memory_mb"], entry["cpu_percent"]) == ("2026-11-15T12:00:00.000Z", 31.0, None)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", (None, None, NOW - timedelta(hours=1), 1000)),
        ("?match=7&hours=720&limit=5", (7, None, NOW - timedelta(days=30), 5)),
        ("?match=crex_M7&hours=0.5", (None, "crex_M7", NOW - timedelta(minutes=30), 1000)),
        # A number that no match can have.
        ("?match=99999999999999999999", (None, "99999999999999999999", NOW - timedelta(hours=1), 1000)),
    ],
)
async def test_one_asks_for_a_match_by_number_or_name_and_for_some_hours(
    client: httpx.AsyncClient, log: MemoryLog, query: str, asked: tuple[int | None, str | None, datetime, int]
) -> None:
    answer = await client.get(f"/status/history{query}")

    assert answer.status_code == 200
    assert log.asked == [asked]


@pytest.mark.parametrize("query", ["hours=0", "hours=721", "limit=0", "limit=10001", "hours=nan"])
async def test_what_cannot_be_had_is_refused(client: httpx.AsyncClient, log: MemoryLog, query: str) -> None:
    answer = await client.get(f"/status/history?{query}")

    assert answer.status_code == 422
    assert log.asked == []


async def test_it_needs_a_token(client: httpx.AsyncClient, log: MemoryLog) -> None:
    del client.headers["Authorization"]

    answer = await client.get("/status/history")

    assert (answer.status_code, log.asked) == (401, [])


async def test_a_failing_log_is_reported_without_details(client: httpx.AsyncClient, log: MemoryLog) -> None:
    log.broken = StorageError("disk I/O error at /secret/path")

    answer = await client.get("/status/history")

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "secret" not in answer.text


@pytest.mark.usefixtures("impatient")
async def test_a_log_that_hangs_is_not_waited_for_however_often_one_asks(
    client: httpx.AsyncClient, log: MemoryLog
) -> None:
    log.may_answer.clear()

    answers = [await client.get("/status/history") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [503, 503, 503]
    assert answers[0].json()["error"] == "The health log cannot be read at the moment."
