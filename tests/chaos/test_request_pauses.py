"""`kill -9` while a site has postponed all requests by Retry-After: the next scraper waits, too."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from longstop.clock import SystemClock, from_iso
from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.live_deployment import LiveDeployment, live_deployment, until, until_true
from tests.chaos.test_kills import was_killed

pytestmark = pytest.mark.timeout(240)

#: Much longer than a restart takes.
RETRY_AFTER_SECONDS = 20
#: Requests that are under way when the site refuses the first one may still arrive.
UNDER_WAY_SECONDS = 1.0
#: By then the pause is on disk.
STORED_WITHIN_SECONDS = 1.0

Note = dict[str, Any]


async def requests(running: LiveDeployment) -> list[Note]:
    """Return the requests that the site has received."""
    notes: list[Note] = []
    while more := (await running.deployment.simulator.get(f"/_sim/requests?after={len(notes)}")).body["requests"]:
        notes += more
    return [{**note, "at": from_iso(note["at"])} for note in notes]


@pytest.mark.req("FR-017")
async def test_a_killed_scraper_is_followed_by_one_that_waits_until_retry_after_is_over() -> None:
    async def is_shown_by_a_scraper_since(moment: datetime) -> bool:
        health = (await running.deployment.api.get("/health")).body
        is_new = all(from_iso(each["start_time"]) > moment for each in health["scrapers"])
        return is_new and {"name": "rest crex", "state": "OPEN"} in health["errors"]["circuit_breakers"]

    async def resumed_after(moment: datetime) -> datetime | None:
        return next((note["at"] for note in await requests(running) if note["at"] > moment), None)

    async with live_deployment(matches=2) as running:
        simulator = running.deployment.simulator
        fault = {"kind": "status", "status": 429, "retry_after_seconds": RETRY_AFTER_SECONDS}
        await simulator.post("/_sim/faults", msgspec.json.encode(fault))
        await until(lambda: running.logged("source.rate_limited"), "the site limits the rate")
        await simulator.delete("/_sim/faults")
        await asyncio.sleep(STORED_WITHIN_SECONDS)
        killed, killed_at = running.pid_of("scraper"), SystemClock().now()
        assert was_killed(killed)
        await until(lambda: running.pid_of("scraper") not in (None, killed), "the scraper is restarted")
        await until_true(is_shown_by_a_scraper_since, killed_at)

        limited_at = next(note["at"] for note in await requests(running) if note["retry_after_seconds"])
        under_way_until = limited_at + timedelta(seconds=UNDER_WAY_SECONDS)
        await until_true(resumed_after, under_way_until)
        resumed_at = await resumed_after(under_way_until)
        reported = running.logged("source.rate_limited")
        verdict = await running.verdict()

    assert resumed_at is not None
    assert (resumed_at - limited_at).total_seconds() >= RETRY_AFTER_SECONDS
    assert len(reported) == 2  # by both scrapers
    assert_nothing_lost(verdict)
