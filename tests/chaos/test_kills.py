"""`kill -9` in the middle of play: nothing is lost, no process is left, and data are fresh within seconds."""

import asyncio
from random import Random
from time import monotonic

import pytest

from bench.chaos.process_faults import OWNERS
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop.process import processes
from longstop_lab.client import percentile
from tests.acceptance.harness import assert_nothing_lost
from tests.background import background
from tests.chaos.live_deployment import LiveDeployment, live_deployment, until, until_true
from tests.prerequisites import unavailable
from tests.process_tree import stop_descendants

pytestmark = pytest.mark.timeout(240)

#: In all ten; a seed shuffles them. A scraper that dies three times in a row waits 0, 1 and 2 s for its next life.
VICTIMS = ["scraper"] * 3 + ["api"] * 2 + ["up"] * 2 + ["browser"] * 3
#: This many do not wait for the previous recovery: they hit processes that start, take over or sync.
HURRIED = 3
#: This many find the browser halted: it does not notice that its owner dies, and the product has to end it.
ORPHANING = 2
#: What is promised is 10 s, of 95 in 100 (`scripts/chaos processes` holds it to that). Of so few kills the worst one
#: counts, which took 4 to 7 s on a machine that did other things too; the rest is for one that does more.
P95_SECONDS = 12.0
#: Within which an orphan is gone.
ORPHAN_SECONDS = 10.0


def was_killed(pid: int | None) -> bool:
    """Kill a process; return whether there was one."""
    found = processes.find_process(pid) if pid is not None else None
    return found is not None and processes.kill(found.identity)


async def kill(running: LiveDeployment, target: str) -> float:
    """Kill one as soon as it lives, and return when that was."""
    await until(lambda: was_killed(running.pid_of(target)), f"there is a {target}")
    began = monotonic()
    if target == "up":
        await running.start_up()
    return began


def halt_browser(running: LiveDeployment) -> None:
    scraper = running.pid_of("scraper")
    assert scraper is not None
    assert stop_descendants(scraper) > 1


@pytest.mark.req("NFR-005", "NFR-009", "FR-009", "US2.1")
async def test_ten_kills_at_random_moments_lose_nothing_and_recover_within_seconds() -> None:
    """Kill with default settings: the back-off before another restart counts, too."""
    if find_chromium(BrowserKind.SHELL) is None:
        unavailable("there is no Chromium: apt-get install chromium-headless-shell")
    dice = Random(7)
    targets = dice.sample(VICTIMS, len(VICTIMS))
    hurried = dice.sample(range(1, len(VICTIMS)), HURRIED)
    owners = [place for place, target in enumerate(targets) if target in OWNERS and place not in hurried]
    orphaning = dice.sample(owners, ORPHANING)
    most_writers = 0

    async def count_writers(running: LiveDeployment) -> None:
        nonlocal most_writers
        while True:
            most_writers = max(most_writers, len(await asyncio.to_thread(running.writers)))
            await asyncio.sleep(0.05)

    # Both matches of this seed last longer than the test; the faster the recoveries, the fewer events there are.
    async with live_deployment(matches=2, seed=2, is_browsed=True) as running:
        shown = await running.events_shown()
        recoveries = []
        async with background(count_writers(running)):
            for place, target in enumerate(targets):
                await asyncio.sleep(dice.uniform(0.0, 3.0) if place in hurried else dice.uniform(0.1, 1.0))
                if place in orphaning:
                    halt_browser(running)
                killed_at = await kill(running, target)
                if place + 1 not in hurried:
                    await until_true(running.is_fresh_since, killed_at)
                    recoveries.append((target, monotonic() - killed_at))
        try:
            await until(lambda: not running.orphans(), "no orphan is left", within=ORPHAN_SECONDS)
        finally:  # a halted process would outlive a failing test
            for pid in running.orphans():
                was_killed(pid)
        await until_true(running.has_shown_more_than, shown, within=60)
        verdict = await running.verdict()
    left = running.pids()

    figures = ", ".join(f"{target} {seconds:.1f} s" for target, seconds in recoveries)
    print(figures)
    p95 = percentile([seconds for _, seconds in recoveries], 0.95)
    assert_nothing_lost(verdict)
    assert p95 is not None
    assert p95 <= P95_SECONDS, figures
    assert not left
    assert most_writers == 1
