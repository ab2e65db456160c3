"""Small answers wait for no large ones; large ones wait for their turn; and no answer looks younger than it is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.large_answers import AT_ONCE as AT_ONCE_READ
from longstop.api.large_answers import FEW, SMALL_BYTES
from longstop.api.server import build_app
from longstop.api.tokens import Permission, Secret, issue_token
from longstop.errors import StorageError
from longstop.model.data_finding import Finding, FindingKind, StoredFinding
from longstop.storage.base import HealthRow
from tests.readers import (
    NOW,
    ManualClock,
    MemoryHot,
    MemoryReader,
    a_ball,
    a_beat,
    a_hot_row,
    a_match,
    a_node_of,
    a_record,
    a_snapshot,
)

#: More than the connections of one address.
AT_ONCE = 150
MATCH = "/cricket-data/match-info/1"
OF_MATCH = [
    f"{MATCH}/events",
    f"{MATCH}/events?current=true",
    f"{MATCH}/history",
    f"{MATCH}/delta",
    f"{MATCH}/findings",
]
ALL = ["/cricket-data/matches", *OF_MATCH]


class SlowReader(MemoryReader):
    """Between its read and the answer, something happens."""

    def __init__(self) -> None:
        super().__init__()
        self.then: Callable[[], None] = lambda: None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def matches(self, *wanted: Any, **more: Any) -> Any:
        return await self._later(lambda: MemoryReader.matches(self, *wanted, **more))

    async def events_after(self, *wanted: Any, **more: Any) -> Any:
        return await self._later(lambda: MemoryReader.events_after(self, *wanted, **more))

    async def current_events(self, *wanted: Any, **more: Any) -> Any:
        return await self._later(lambda: MemoryReader.current_events(self, *wanted, **more))

    async def snapshots(self, *wanted: Any, **more: Any) -> Any:
        return await self._later(lambda: MemoryReader.snapshots(self, *wanted, **more))

    async def findings(self, *wanted: Any, **more: Any) -> Any:
        return await self._later(lambda: MemoryReader.findings(self, *wanted, **more))

    async def _later(self, read: Callable[[], Awaitable[Any]]) -> Any:
        await self.may_answer.wait()
        found = await read()
        self.then()
        return found


class OneRowLog:
    async def recent(self, **_wanted: Any) -> list[HealthRow]:
        return [HealthRow(scraper_id="node-1", timestamp=NOW, health_status="healthy", error_count=0)]

    async def aclose(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def large_reader(reader: MemoryReader) -> SlowReader:
    """Reads the same as the reader."""
    made = SlowReader()
    made.rows, made.stored, made.kept, made.found = reader.rows, reader.stored, reader.kept, reader.found
    return made


@pytest.fixture
async def client(
    reader: MemoryReader,
    large_reader: SlowReader,
    hot: MemoryHot,
    secret: Secret,
    clock: ManualClock,
    health_cache: HealthCache,
) -> AsyncIterator[httpx.AsyncClient]:
    stores = a_node_of(reader, hot, clock, large_matches=large_reader, health_log=OneRowLog())
    app = build_app(stores, secret=secret, clock=clock, health=health_cache)
    token = issue_token(secret, subject="tester", permissions=[Permission.READ], ttl=timedelta(hours=24), now=NOW)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", headers=headers) as client:
        yield client


@pytest.fixture
def little(reader: MemoryReader) -> None:
    """A match with an event, a snapshot and a finding."""
    reader.rows[1] = replace(reader.rows[1], seq=1)
    reader.stored[1], reader.kept[1], reader.found[1] = [a_ball(1, 1)], [a_snapshot()], [finding(1)]


@pytest.fixture
def much(reader: MemoryReader) -> None:
    """More than a few of everything."""
    for number in range(1, FEW + 2):
        reader.rows[number] = replace(a_match(number), seq=FEW + 1)
    reader.stored[1] = [a_ball(number, number) for number in range(1, FEW + 2)]
    reader.kept[1] = [a_snapshot(payload=b'{"text":"%b"}' % (b"x" * SMALL_BYTES))]
    reader.found[1] = [finding(number) for number in range(FEW + 1)]


def finding(number: int) -> StoredFinding:
    return StoredFinding(
        finding=Finding(kind=FindingKind.GAP, place=f"1:{number}", detail="missing"), opened_at=NOW, closed_at=None
    )


async def at_once(client: httpx.AsyncClient, path: str) -> set[int]:
    answers = await asyncio.gather(*(client.get(path) for _ in range(AT_ONCE)))
    return {answer.status_code for answer in answers}


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("path", [*ALL, "/status/history"])
async def test_however_many_ask_for_a_little_at_once_all_get_it(client: httpx.AsyncClient, path: str) -> None:
    assert await at_once(client, path) == {200}


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("path", ALL)
async def test_however_many_ask_for_much_at_once_all_get_it_in_turn(client: httpx.AsyncClient, path: str) -> None:
    assert await at_once(client, path) == {200}


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("path", ALL)
async def test_a_small_answer_waits_for_no_large_one(
    client: httpx.AsyncClient, large_reader: SlowReader, path: str
) -> None:
    large_reader.may_answer.clear()

    answer = await asyncio.wait_for(client.get(path), 5)

    assert answer.status_code == 200


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("path", ALL)
async def test_a_large_answer_is_not_read_on_the_event_loop(
    client: httpx.AsyncClient, large_reader: SlowReader, path: str
) -> None:
    large_reader.broken = StorageError("it is asked")

    assert (await client.get(path)).status_code == 503


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("path", ALL)
async def test_who_waits_for_too_long_is_told_to_try_again(
    client: httpx.AsyncClient, large_reader: SlowReader, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("longstop.api.large_answers.SECONDS", 0.05)
    large_reader.may_answer.clear()

    answer = await client.get(path)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("path", OF_MATCH)
async def test_the_age_is_that_of_what_was_read_when_it_is_sent(
    client: httpx.AsyncClient, large_reader: SlowReader, hot: MemoryHot, clock: ManualClock, path: str
) -> None:
    def poll_again() -> None:
        clock.advance(8)
        hot.held[1] = a_hot_row(a_record(polled=-7))

    large_reader.then = poll_again

    answer = await client.get(path)

    assert answer.headers["X-Data-Freshness"] == "2026-11-15T11:59:58.500Z"
    assert answer.headers["X-Data-Age-Seconds"] == "9.500"
    assert answer.json().get("_metadata", {}).get("data_age_seconds", 9.5) == 9.5


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("path", OF_MATCH)
async def test_the_age_is_read_again_after_a_wait(
    client: httpx.AsyncClient, large_reader: SlowReader, hot: MemoryHot, clock: ManualClock, path: str
) -> None:
    large_reader.may_answer.clear()
    asked = [asyncio.create_task(client.get(path)) for _ in range(AT_ONCE_READ + 1)]
    await asyncio.sleep(0.05)
    clock.advance(8)
    hot.held[1] = a_hot_row(a_record(polled=-7))
    large_reader.may_answer.set()

    ages = [(await answer).headers["X-Data-Age-Seconds"] for answer in asked]

    assert ages == ["9.500"] * AT_ONCE_READ + ["1.000"]


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("path", OF_MATCH)
async def test_a_file_that_hangs_when_it_is_their_turn_is_not_read(
    client: httpx.AsyncClient, large_reader: SlowReader, hot: MemoryHot, health_cache: HealthCache, path: str
) -> None:
    large_reader.may_answer.clear()
    asked = [asyncio.create_task(client.get(path)) for _ in range(AT_ONCE_READ + 1)]
    await asyncio.sleep(0.05)
    hot.heard = [replace(a_beat(), is_store_lost=True)]
    await health_cache.poll()
    large_reader.may_answer.set()

    assert [(await answer).status_code for answer in asked] == [200] * AT_ONCE_READ + [503]
