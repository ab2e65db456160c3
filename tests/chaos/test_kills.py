"""`kill -9` in the middle of play: nothing is lost, nobody is left over, and all is fresh again within seconds."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from random import Random
from time import monotonic

import pytest

from longstop.clock import SystemClock
from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.running import Running, in_play, until_true

pytestmark = pytest.mark.timeout(240)

#: In all ten; a seed shuffles them.
VICTIMS = ["scraper"] * 5 + ["api"] * 3 + ["up"] * 2
#: Of an idle machine; a busy one gets as much more as it needs longer to start a process, but never a whole minute.
RECOVERED_WITHIN = 10.0
AT_MOST = 50.0
IDLE_START_SECONDS = 1.0


async def kill(running: Running, victim: str) -> float:
    """Kill one, and return the seconds until all is fresh again."""
    pid = running.pid_of(victim)
    assert pid is not None
    moment, began = SystemClock().now(), monotonic()
    os.kill(pid, signal.SIGKILL)
    if victim == "up":
        await running.start_up()
    await until_true(running.is_fresh_since, moment)
    return monotonic() - began


async def busyness() -> float:
    """Return how much longer than on an idle machine the start of a scraper takes now; at least 1."""
    began = monotonic()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import longstop.app.scraper")
    await process.wait()
    return max(1.0, (monotonic() - began) / IDLE_START_SECONDS)


@pytest.mark.req("NFR-005", "NFR-009", "US2.1")
async def test_ten_kills_at_random_moments_lose_nothing_and_are_mended_within_seconds() -> None:
    dice = Random(7)
    victims = dice.sample(VICTIMS, len(VICTIMS))
    most_writers = 0

    async def count_writers(running: Running) -> None:
        nonlocal most_writers
        while True:
            most_writers = max(most_writers, len(await asyncio.to_thread(running.writers)))
            await asyncio.sleep(0.05)

    async with in_play(LONGSTOP_SETTLED_SECONDS="0") as running:
        counting = asyncio.create_task(count_writers(running))
        recoveries, slow = [], [await busyness()]
        for victim in victims:
            await asyncio.sleep(dice.uniform(0.1, 1.0))
            recoveries.append(await kill(running, victim))
        slow.append(await busyness())
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting
        left = {process.pid for process in running.everybody()}
        own = {running.pid_of(name) for name in ("up", "scraper", "api")}
        verdict = await running.verdict()

    figures = f"recovered after {', '.join(f'{each:.1f}' for each in sorted(recoveries))} s, {max(slow):.1f} times slow"
    print(figures)
    assert_nothing_lost(verdict)
    assert max(recoveries) <= min(AT_MOST, RECOVERED_WITHIN * max(slow)), figures
    assert left == own
    assert most_writers == 1
