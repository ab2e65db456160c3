"""`kill -9` in the middle of play: nothing is lost, nobody is left over, and all is fresh again within seconds."""

import asyncio
from random import Random
from time import monotonic

import pytest

from bench.chaos.processes_strikes import OWNERS
from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import find_chromium
from longstop.process import processes
from longstop_lab.client import percentile
from tests.acceptance.harness import assert_nothing_lost
from tests.background import background
from tests.chaos.running import Running, in_play, until, until_true
from tests.needs import lack
from tests.process_tree import stop_descendants

pytestmark = pytest.mark.timeout(240)

#: In all ten; a seed shuffles them. A scraper that dies three times in a row waits 0, 1 and 2 s for its next life.
VICTIMS = ["scraper"] * 3 + ["api"] * 2 + ["up"] * 2 + ["browser"] * 3
#: So many of them do not wait until the kill before is mended: they hit who is starting, taking over or syncing.
HURRIED = 3
#: So many find the browser halted: it does not notice that its owner dies, and somebody has to end it.
ORPHANING = 2
#: What is promised is 10 s, of 95 in 100 (`scripts/chaos processes` holds it to that). Of so few kills the worst one
#: counts, which took 4 to 7 s on a machine that did other things too; the rest is for one that does more.
P95_SECONDS = 12.0
#: Within which whoever has lost its owner is gone.
STRAY_SECONDS = 10.0


def struck(pid: int | None) -> bool:
    """Kill a process; return whether there was one."""
    found = processes.find_process(pid) if pid is not None else None
    return found is not None and processes.kill(found.identity)


async def kill(running: Running, victim: str) -> float:
    """Kill one as soon as it lives, and return when that was."""
    await until(lambda: struck(running.pid_of(victim)), f"there is a {victim}")
    began = monotonic()
    if victim == "up":
        await running.start_up()
    return began


def halt_browser(running: Running) -> None:
    scraper = running.pid_of("scraper")
    assert scraper is not None
    assert stop_descendants(scraper) > 1


@pytest.mark.req("NFR-005", "NFR-009", "FR-009", "US2.1")
async def test_ten_kills_at_random_moments_lose_nothing_and_are_mended_within_seconds() -> None:
    """Kill with the settings that everybody has: the wait before a further restart in a row counts too."""
    if find_chromium(BrowserKind.SHELL) is None:
        lack("there is no Chromium: apt-get install chromium-headless-shell")
    dice = Random(7)
    victims = dice.sample(VICTIMS, len(VICTIMS))
    hurried = dice.sample(range(1, len(VICTIMS)), HURRIED)
    owners = [place for place, victim in enumerate(victims) if victim in OWNERS and place not in hurried]
    orphaning = dice.sample(owners, ORPHANING)
    most_writers = 0

    async def count_writers(running: Running) -> None:
        nonlocal most_writers
        while True:
            most_writers = max(most_writers, len(await asyncio.to_thread(running.writers)))
            await asyncio.sleep(0.05)

    # Both matches of this seed are played, for longer than the test may last; the faster all mends, the less happens.
    async with in_play(matches=2, seed=2, is_browsed=True) as running:
        shown = await running.events_shown()
        recoveries = []
        async with background(count_writers(running)):
            for place, victim in enumerate(victims):
                await asyncio.sleep(dice.uniform(0.0, 3.0) if place in hurried else dice.uniform(0.1, 1.0))
                if place in orphaning:
                    halt_browser(running)
                killed_at = await kill(running, victim)
                if place + 1 not in hurried:
                    await until_true(running.is_fresh_since, killed_at)
                    recoveries.append((victim, monotonic() - killed_at))
        try:
            await until(lambda: not running.strays(), "nobody is left over", within=STRAY_SECONDS)
        finally:  # whoever is halted would outlive a test that fails
            for pid in running.strays():
                struck(pid)
        await until_true(running.has_shown_more_than, shown, within=60)
        verdict = await running.verdict()
    left = running.everybody()

    figures = ", ".join(f"{victim} {seconds:.1f} s" for victim, seconds in recoveries)
    print(figures)
    p95 = percentile([seconds for _, seconds in recoveries], 0.95)
    assert_nothing_lost(verdict)
    assert p95 is not None
    assert p95 <= P95_SECONDS, figures
    assert not left
    assert most_writers == 1
