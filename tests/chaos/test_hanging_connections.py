"""A scraper whose every connection hangs: it fails, does by itself what may help, and says what came of it."""

import asyncio
from time import monotonic
from typing import Any

import msgspec
import pytest

from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.live_deployment import LiveDeployment, live_deployment, until, until_true

pytestmark = pytest.mark.timeout(240)

#: The grade moves one step each 15 s: HEALTHY, DEGRADED, FAILING.
FAILS_WITHIN = 75.0
HANGS = msgspec.json.encode([{"kind": "latency", "seconds": 600.0}])


async def recycle_that_is(running: LiveDeployment, *outcomes: str) -> dict[str, Any]:
    """Return the newest recycle of the audit, as soon as the API shows it with such an outcome."""
    async with asyncio.timeout(30):
        while True:
            entries = (await running.deployment.api.get("/recoveries")).body["recoveries"]
            found = [entry for entry in entries if entry["kind"] == "recycle" and entry["outcome"] in outcomes]
            if found:
                return dict(found[0])
            await asyncio.sleep(0.2)


@pytest.mark.req("MON-8", "MON-9", "NFR-010", "US3.2")
async def test_a_failing_scraper_recycles_its_connections_and_records_the_outcome() -> None:
    # The product waits for an open circuit; here connections hang and no circuit opens.
    async with live_deployment(
        LONGSTOP_STALL_SECONDS="5", CIRCUIT_BREAKER_THRESHOLD="1000", PAUSE_THRESHOLD="1000"
    ) as running:
        scraper = running.pid_of("scraper")
        await running.deployment.simulator.post("/_sim/faults", HANGS)
        await until(lambda: running.logged("health.failing"), "the scraper fails", within=FAILS_WITHIN)
        health = (await running.deployment.api.get("/health")).body
        await until(lambda: running.logged("recovery.started", kind="recycle"), "it actions", within=5)
        begun = await recycle_that_is(running, "pending")
        await running.deployment.simulator.delete("/_sim/faults")
        await until(lambda: running.logged("recovery.succeeded", kind="recycle"), "it helps", within=60)
        await until(lambda: running.logged("health.recovered"), "it is healthy again", within=10)
        ended = await recycle_that_is(running, "recovered", "not_recovered")
        survivor = running.pid_of("scraper")
        restarted = running.logged("watch.restarted", reason="recycled")
        verdict = await running.verdict()

    assert health["status"] == "degraded"
    assert any("nothing in play was read for " in reason for reason in health["reasons"])
    assert begun["trigger"].startswith("nothing in play was read for ")
    assert (ended["id"], ended["outcome"]) == (begun["id"], "recovered")
    assert ended["observed"].endswith("read again")
    assert ended["pids_before"] == ended["pids_after"] == [scraper]
    assert survivor == scraper
    assert restarted
    assert_nothing_lost(verdict)


@pytest.mark.req("MON-8", "NFR-010")
async def test_with_default_breakers_a_hanging_site_is_waited_for_and_nothing_is_recycled() -> None:
    async with live_deployment(LONGSTOP_STALL_SECONDS="15") as running:
        scraper = running.pid_of("scraper")
        await running.deployment.simulator.post("/_sim/faults", HANGS)
        await until(lambda: running.logged("health.failing"), "the scraper fails", within=FAILS_WITHIN)
        await until_true(is_explained, running, within=30)
        back = monotonic()
        await running.deployment.simulator.delete("/_sim/faults")
        await until_true(running.is_fresh_since, back)
        recycles = running.logged("recovery.started", kind="recycle")
        survivor = running.pid_of("scraper")

    assert recycles == []
    assert survivor == scraper


async def is_explained(running: LiveDeployment) -> bool:
    """Return whether `/health` says that the scraper fails, and why nothing is done about it."""
    health = (await running.deployment.api.get("/health")).body
    is_said = any(
        reason.endswith("; polling is blocked by an open circuit or a rate limit") for reason in health["reasons"]
    )
    return health["grade"] == "failing" and is_said
