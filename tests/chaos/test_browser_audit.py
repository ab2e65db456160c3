"""The real scraper with a browser: what each match costs is known, and a browser that is killed stands in the audit."""

import asyncio
import os
import signal
from time import monotonic
from typing import Any

import pytest

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, Mode
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from tests.acceptance.harness import QUICK, assert_nothing_lost, logged, read_log
from tests.chaos.live_deployment import own_environment
from tests.prerequisites import unavailable

pytestmark = pytest.mark.timeout(240)


async def costs(deployment: Deployment) -> list[tuple[float, float]]:
    """Return memory and CPU of each match, as soon as all are known."""
    async with asyncio.timeout(60):
        while True:
            entries = (await deployment.api.get("/health")).body["per_match_status"]
            known = [(each["memory_mb"], each["cpu_percent"]) for each in entries]
            if known and all(None not in each for each in known):
                return known
            await asyncio.sleep(0.5)


async def replacement_of(deployment: Deployment, pid: int) -> dict[str, Any]:
    """Return the entry of the browser with this pid, as soon as its outcome is seen."""
    async with asyncio.timeout(90):
        while True:
            entries = (await deployment.api.get("/recoveries")).body["recoveries"]
            found = [each for each in entries if each["pids_before"] == [pid] and each["outcome"] != "pending"]
            if found:
                return dict(found[0])
            await asyncio.sleep(0.5)


@pytest.mark.req("MON-9", "US4.1", "NFR-010")
async def test_matches_have_their_cost_and_a_killed_browser_its_entry() -> None:
    if find_chromium(BrowserKind.SHELL) is None:
        unavailable("there is no Chromium: apt-get install chromium-headless-shell")
    simulate = ("--matches", "2", "--kinds", "t20", "--speed", "10", "--seed", "5", "--poll", "1")
    modes = (Mode.NAVIGATE, Mode.PASSIVE)
    with own_environment():
        began = monotonic()
        async with deployed(
            DeploymentOptions(simulate=simulate, browser="shell", modes=modes, settings=QUICK)
        ) as deployment:
            await wait_until_synced(deployment, since=began)
            known = await costs(deployment)
            first = logged(read_log(deployment.log), "browser.started")[-1]
            os.kill(first["pid"], signal.SIGKILL)
            entry = await replacement_of(deployment, first["pid"])
            second = logged(read_log(deployment.log), "browser.started")[-1]
            verdict = await check_events(deployment)

    print(known, entry)
    # A scraper alone is smaller than this, and a page larger.
    assert all(20 < memory < 1024 for memory, _ in known)
    assert (entry["kind"], entry["subject"], entry["outcome"]) == ("browser_recycle", first["source"], "recovered")
    assert entry["pids_after"] == [second["pid"]]
    assert entry["observed"].endswith("was read with the next browser")
    assert_nothing_lost(verdict)
