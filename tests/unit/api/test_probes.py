import httpx
import pytest

from longstop.errors import StorageError
from tests.readers import ManualClock, MemoryHot, MemoryReader

LOST = StorageError("disk I/O error at /secret/path")


@pytest.mark.req("FR-012")
async def test_health_needs_no_token_and_is_never_cached(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/health")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json()["status"] == "healthy"
    assert answer.json()["uptime_seconds"] == 300.0


async def test_health_is_measured_at_most_once_a_second(
    stranger: httpx.AsyncClient, hot: MemoryHot, clock: ManualClock
) -> None:
    await stranger.get("/health")
    hot.heard.clear()

    clock.advance(0.9)
    kept = await stranger.get("/health")
    clock.advance(0.1)
    measured = await stranger.get("/health")

    assert (kept.status_code, kept.json()["timestamp"]) == (200, "2026-11-15T12:00:00.000Z")
    assert (measured.status_code, measured.json()["status"]) == (503, "down")


async def test_health_answers_when_the_live_view_is_lost(stranger: httpx.AsyncClient, hot: MemoryHot) -> None:
    hot.broken = LOST

    answer = await stranger.get("/health")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["the live view cannot be read"]
    assert "secret" not in answer.text


async def test_live_answers_whatever_is_lost(stranger: httpx.AsyncClient, hot: MemoryHot, reader: MemoryReader) -> None:
    hot.broken = reader.broken = LOST

    answer = await stranger.get("/live")

    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_ready_when_the_store_is_readable_and_a_scraper_was_heard(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/ready")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_not_ready_without_store_and_scraper_and_it_says_so(
    stranger: httpx.AsyncClient, hot: MemoryHot, reader: MemoryReader
) -> None:
    reader.broken = LOST
    hot.heard.clear()

    answer = await stranger.get("/ready")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["the store cannot be read", "no scraper has been heard for 15 s"]
    assert answer.json()["error"] == "Not ready: the store cannot be read; no scraper has been heard for 15 s."


async def test_not_ready_when_the_live_view_is_lost(stranger: httpx.AsyncClient, hot: MemoryHot) -> None:
    hot.broken = LOST

    answer = await stranger.get("/ready")

    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the live view cannot be read"])
