"""A site that misbehaves in every way it can: nothing is stored wrongly, nothing is lost, the next poll goes on."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

import apsw
import msgspec
import pytest
from curl_cffi.requests import AsyncSession

from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, final_sync, wait_until_synced

pytestmark = pytest.mark.timeout(120)

FAULTS: list[dict[str, Any]] = [
    {"kind": "truncated", "share": 0.1},
    {"kind": "html", "share": 0.1},
    {"kind": "drop", "share": 0.1},
    {"kind": "reset", "share": 0.1},
    {"kind": "status", "status": 503, "share": 0.05},
    {"kind": "status", "status": 403, "share": 0.05},
    {"kind": "status", "status": 404, "share": 0.05, "path": "/api/v3/getSV3"},
    {"kind": "status", "status": 429, "share": 0.05, "retry_after_seconds": 1},
    {"kind": "latency", "seconds": 0.2, "jitter_seconds": 0.2, "share": 0.2},
]


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    options = DeploymentOptions(
        simulate=("--matches", "10", "--speed", "30", "--seed", "4"), settings={"POLLING_INTERVAL_SECONDS": "0.5"}
    )
    began = monotonic()
    async with deployed(options) as running:
        await wait_until_synced(running, since=began)
        yield running


async def set_faults(deployment: Deployment, faults: list[dict[str, Any]]) -> None:
    async with AsyncSession() as session:
        url = f"{deployment.simulator_url}/_sim/faults"
        if faults:
            answer = await session.post(url, data=msgspec.json.encode(faults))
        else:
            answer = await session.delete(url)
        assert answer.status_code == 200, answer.text


async def health_once_mended(deployment: Deployment) -> dict[str, Any]:
    """Return `/health` as soon as it is well: what it shows may be a few seconds old."""
    deadline = asyncio.get_running_loop().time() + 20
    while True:
        health: dict[str, Any] = (await deployment.api.get("/health")).body
        if health["status"] == "healthy" or asyncio.get_running_loop().time() > deadline:
            return health
        await asyncio.sleep(0.5)


@pytest.mark.req("FLD-5", "NFR-009")
async def test_nothing_is_lost_or_invented_while_every_kind_of_answer_goes_wrong(deployment: Deployment) -> None:
    await set_faults(deployment, FAULTS)
    await asyncio.sleep(12)
    completed = {entry["match_id"] for entry in await list_matches(deployment) if entry["phase"] == "completed"}
    await set_faults(deployment, [])
    over = {
        f"crex_{match['key']}"
        for match in (await deployment.simulator.get("/_sim/status")).body["matches"]
        if match["phase"] == "completed"
    }
    verdict = await check_events(deployment)
    health = await health_once_mended(deployment)

    assert (verdict.lost, verdict.duplicated, verdict.ghost, verdict.wrong) == (0, 0, 0, 0), verdict.details
    assert verdict.events_stored > 500
    assert completed <= over
    assert health["status"] == "healthy", health["reasons"]


async def test_polls_without_a_change_write_nothing_to_the_store(deployment: Deployment) -> None:
    await final_sync(deployment)
    await asyncio.sleep(4)  # results want a second look
    watcher = apsw.Connection(str(deployment.data / "matches.db"), flags=apsw.SQLITE_OPEN_READONLY)
    before = watcher.pragma("data_version")
    polled = {entry["match_id"]: entry["last_poll_at"] for entry in await list_matches(deployment)}

    await asyncio.sleep(6)

    after = {entry["match_id"]: entry["last_poll_at"] for entry in await list_matches(deployment)}
    assert watcher.pragma("data_version") == before
    assert all(after[match] > polled[match] for match in polled)
