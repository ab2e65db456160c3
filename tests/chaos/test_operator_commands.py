"""Orders to real processes: by the command line and by the API, across the scraper's death."""

import asyncio
import os
import signal
from typing import Any

import httpx
import pytest

from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.live_deployment import PATIENCE_SECONDS, LiveDeployment, live_deployment, until
from tests.chaos.test_backup import run

pytestmark = pytest.mark.timeout(180)


class Admin:
    """Gives orders through the API."""

    def __init__(self, running: LiveDeployment, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=running.deployment.api_url, headers={"Authorization": f"Bearer {token}"}, timeout=30
        )

    async def order(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Give an order and wait for its answer, also when that is not there at once."""
        answer = await self._http.request(method, path, json=body or None)
        while answer.status_code == 202 or answer.json().get("state") in ("pending", "taken"):
            await asyncio.sleep(0.2)
            answer = await self._http.get(f"/admin/commands/{answer.json()['id']}")
        return answer

    async def until_paused(self, wanted: set[str]) -> None:
        """Wait until health shows exactly these matches as paused."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self._paused() != wanted:  # noqa: ASYNC110 - another process sets no event of ours
                await asyncio.sleep(0.2)

    async def _paused(self) -> set[str]:
        entries = (await self._http.get("/health")).json()["per_match_status"]
        return {entry["match_id"] for entry in entries if (entry["phase"], entry["is_on_hold"]) == ("paused", True)}

    async def aclose(self) -> None:
        await self._http.aclose()


async def kill_scraper(running: LiveDeployment) -> None:
    pid = running.pid_of("scraper")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: running.pid_of("scraper") not in (None, pid), "another scraper starts")


async def requests(running: LiveDeployment) -> int:
    counted = (await running.deployment.simulator.get("/_sim/status")).body["requests"]
    return sum(counted.values())


async def test_what_is_ordered_holds_across_the_scrapers_death_and_costs_no_event() -> None:
    async with live_deployment(LONGSTOP_SETTLED_SECONDS="0", MEMORY_MIN_AVAILABLE_MB="0") as running:
        status = (await running.deployment.simulator.get("/_sim/status")).body["matches"]
        refs = [f"crex_{match['key']}" for match in status]
        first, second, *_ = refs
        _, token = await run(running, "token", "--admin")
        admin = Admin(running, token.strip())

        unwatched = await run(running, "unwatch", first)
        paused = await admin.order("POST", f"/admin/matches/{second}/pause")
        await kill_scraper(running)
        await admin.until_paused({second})
        source = await admin.order("POST", "/admin/sources/crex/pause")
        await kill_scraper(running)
        # A command that is answered was taken by the new scraper, which obeys from its first moment.
        conflict = await admin.order("POST", "/admin/watches", url=running.deployment.simulator_url + status[0]["page"])
        before = await requests(running)
        await admin.until_paused({*refs} - {first})
        await asyncio.sleep(3)
        after = await requests(running)
        woken = await run(running, "resume", "crex")
        resumed = await run(running, "resume", second)
        watched = await run(running, "watch", running.deployment.simulator_url + status[0]["page"])
        recycled = await admin.order("POST", "/admin/recycle")
        await admin.aclose()

        verdict = await running.verdict()

    assert (unwatched[0], paused.status_code, source.json()["state"]) == (0, 200, "done")
    assert conflict.json()["answer"] == "crex is paused: resume it first."
    assert after == before
    assert (woken[0], resumed[0], watched[0]) == (0, 0, 0), (woken, resumed, watched)
    assert recycled.json()["state"] == "done"
    assert_nothing_lost(verdict)
