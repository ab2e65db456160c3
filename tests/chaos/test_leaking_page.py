"""The real scraper with a page that leaks ten megabytes a second: it restarts in time, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

import pytest

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, Mode
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from tests.acceptance.harness import QUICK, assert_nothing_lost, logged, read_log
from tests.background import background
from tests.chaos.live_deployment import own_environment, until
from tests.prerequisites import unavailable
from tests.process_tree import tree_usage

pytestmark = pytest.mark.timeout(240)

SOFT_MB, HARD_MB = 500, 1000
LIMITS = {
    "MEMORY_SOFT_LIMIT_MB": str(SOFT_MB),
    "MEMORY_HARD_LIMIT_MB": str(HARD_MB),
    "BROWSER_MAX_MEMORY_MB": "100000",  # the pool would replace the browser before the scraper is too large
}


@asynccontextmanager
async def measuring_memory(deployment: Deployment) -> AsyncIterator[list[int]]:
    """Weigh the scraper with all that it has started, again and again, also while it ends."""
    memory: list[int] = []

    async def measure() -> None:
        while True:
            memory.append(await asyncio.to_thread(_memory_of_scraper, deployment))
            await asyncio.sleep(0.3)

    async with background(measure()):
        yield memory


def _memory_of_scraper(deployment: Deployment) -> int:
    scraper = deployment.scraper()
    return (tree_usage(scraper.pid).pss_bytes or 0) if scraper is not None else 0


@pytest.mark.req("FR-006", "NFR-009", "US2.1", "US4.2")
async def test_a_leaking_page_restarts_the_scraper_before_the_hard_limit() -> None:
    if find_chromium(BrowserKind.SHELL) is None:
        unavailable("there is no Chromium: apt-get install chromium-headless-shell")
    simulate = ("--matches", "2", "--kinds", "t20", "--speed", "20", "--seed", "5", "--poll", "1")
    options = DeploymentOptions(
        simulate=simulate, browser="shell", modes=(Mode.NAVIGATE, Mode.PASSIVE), settings={**QUICK, **LIMITS}
    )
    with own_environment():
        began = monotonic()
        async with deployed(options) as deployment:
            await wait_until_synced(deployment, since=began)
            await deployment.simulator.post("/_sim/faults", b'[{"kind": "leak"}]')
            scraper = deployment.scraper()
            assert scraper is not None
            scraper.kill()  # the next one's pages leak from their first moment on
            async with measuring_memory(deployment) as memory:
                await until(lambda: logged(read_log(deployment.log), "memory.exceeded"), "the leak is seen", within=150)
                await until(
                    lambda: logged(read_log(deployment.log), "process.restarted"), "the scraper has ended", within=60
                )
            await deployment.simulator.delete("/_sim/faults")
            verdict = await check_events(deployment)
            events = read_log(deployment.log)

    exceeded = logged(events, "memory.exceeded")
    restarted = logged(events, "process.restarted")
    assert SOFT_MB << 19 < max(memory) < HARD_MB << 20
    # A page that the next scraper opened before the fault was removed leaks, too.
    assert {event["limit"] for event in exceeded} == {"soft"}
    assert exceeded[0]["pss_bytes"] < HARD_MB << 20
    assert restarted[0]["exit_code"] == 0
    assert (restarted[0]["at"] - exceeded[0]["at"]).total_seconds() < 60
    assert logged(events, "memory.high")
    assert_nothing_lost(verdict)
