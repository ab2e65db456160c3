"""Live football through everything: a simulated site, a scraper that is killed, a store, an API, and an account."""

import asyncio
from time import monotonic
from typing import Any

import msgspec
import psutil
import pytest

from longstop.sports.football.payload import FootballEventV1
from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced

pytestmark = pytest.mark.timeout(120)

#: What a site may do to its answers; 404s also hit the pages that may be missing, where they are no error.
FAULTS: list[dict[str, Any]] = [
    {"kind": "truncated", "share": 0.05},
    {"kind": "html", "share": 0.05},
    {"kind": "reset", "share": 0.05},
    {"kind": "status", "status": 503, "share": 0.05},
    {"kind": "status", "status": 404, "share": 0.05, "path": "/api/v1/event/"},
    {"kind": "older", "seconds": 120, "share": 0.1},
    {"kind": "other-match", "share": 0.05},
]

#: One match ends in the first seconds; a busy machine may miss it, and its events are not expected.
ENOUGH = 25


def options(seed: int) -> DeploymentOptions:
    simulate = ("--matches", "8", "--kinds", "football,football-cup", "--speed", "120", "--seed", str(seed))
    settings = {"POLLING_INTERVAL_SECONDS": "0.3", "DISCOVERY_INTERVAL_SECONDS": "0.3", "LONGSTOP_SETTLED_SECONDS": "0"}
    return DeploymentOptions(simulate=simulate, sites=("sofascore",), settings=settings)


@pytest.mark.req("NFR-009", "MON-5")
async def test_no_goal_is_lost_twice_or_invented_while_the_scraper_is_killed() -> None:
    began = monotonic()
    async with deployed(options(seed=3)) as deployment:
        await wait_until_synced(deployment, since=began)
        for _ in range(4):
            await asyncio.sleep(3)
            kill(deployment)
        verdict = await check_events(deployment)
        payloads = [(await deployment.api.get(entry["url"])).body for entry in await list_matches(deployment)]

    assert (verdict.lost, verdict.duplicated, verdict.ghost) == (0, 0, 0), verdict.details
    assert verdict.events_stored > ENOUGH
    for payload in payloads:
        del payload["_metadata"]
        msgspec.convert(payload, FootballEventV1)


@pytest.mark.req("NFR-009")
async def test_no_goal_is_lost_twice_or_invented_while_answers_go_wrong() -> None:
    began = monotonic()
    async with deployed(options(seed=3)) as deployment:
        await wait_until_synced(deployment, since=began)
        await deployment.simulator.post("/_sim/faults", msgspec.json.encode(FAULTS))
        await asyncio.sleep(12)
        await deployment.simulator.delete("/_sim/faults")
        verdict = await check_events(deployment)

    assert (verdict.lost, verdict.duplicated, verdict.ghost) == (0, 0, 0), verdict.details
    assert verdict.events_stored > ENOUGH


def kill(deployment: Deployment) -> None:
    scraper = deployment.scraper()
    if scraper is not None:
        try:
            scraper.kill()
        except psutil.NoSuchProcess:
            return
