"""An app over readers in memory, and a client that speaks to it without a socket."""

from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest

from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.server import build_app
from longstop.api.tokens import Permission, Secret, issue_token
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from tests.readers import (
    NOW,
    ManualClock,
    MemoryHot,
    MemoryReader,
    MemoryRecoveries,
    a_beat,
    a_health_cache,
    a_hot_row,
    a_match,
    a_node_of,
)


class RecordingSink:
    """A sink that records events."""

    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)


@pytest.fixture
def secret() -> Secret:
    return Secret(b"s" * 32)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def reader() -> MemoryReader:
    return MemoryReader(a_match())


@pytest.fixture
def hot() -> MemoryHot:
    return MemoryHot(a_hot_row(), beats=[a_beat()])


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def recoveries() -> MemoryRecoveries:
    return MemoryRecoveries()


@pytest.fixture
async def health_cache(
    reader: MemoryReader, hot: MemoryHot, clock: ManualClock, recoveries: MemoryRecoveries
) -> HealthCache:
    """A health cache that has polled once; it polls again when a test says so."""
    return await a_health_cache(reader, hot, clock, recoveries)


@pytest.fixture
async def stranger(
    reader: MemoryReader,
    hot: MemoryHot,
    secret: Secret,
    clock: ManualClock,
    sink: RecordingSink,
    health_cache: HealthCache,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a token."""
    app = build_app(
        a_node_of(reader, hot, clock),
        secret=secret,
        clock=clock,
        health=health_cache,
        lag=lambda: 0.25,
        bus=Bus([sink]),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        yield client


@pytest.fixture
def client(stranger: httpx.AsyncClient, secret: Secret) -> httpx.AsyncClient:
    """The same client, with a token that may read."""
    token = issue_token(secret, subject="tester", permissions=[Permission.READ], ttl=timedelta(hours=24), now=NOW)
    stranger.headers["Authorization"] = f"Bearer {token}"
    return stranger
