"""One deadline covers a request and the start of its browser; what was started serves the next request."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import pytest

from longstop.errors import BrowserLost
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, BrowserPolicy, Mode
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop.fetching.browser.fetcher import BrowserFetcher
from tests.browser.harness import BrowserHarness, browser_harness, of_type
from tests.browser.site import Site

DEADLINE_SECONDS = 2.0
HASTY = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=DEADLINE_SECONDS)
PATIENT = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=40)


def slow_chromium(folder: Path, seconds: float) -> str:
    """Return a program that waits this long before it becomes Chromium."""
    program = folder / "slow-chromium"
    program.write_text(f'#!/bin/sh\nsleep {seconds}\nexec {find_chromium(BrowserKind.SHELL)} "$@"\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture
async def slow(tmp_path: Path, site: Site) -> AsyncIterator[BrowserHarness]:
    """A pool whose browsers start more slowly than a short deadline."""
    program = slow_chromium(tmp_path, DEADLINE_SECONDS * 2)
    async with browser_harness(tmp_path, site, executable=program) as opened:
        yield opened


async def refused(fetcher: BrowserFetcher, harness: BrowserHarness, page: str = "polling") -> float:
    """Send a request that fails; return how long it took."""
    started = monotonic()
    with pytest.raises(BrowserLost):
        await fetcher.fetch(harness.state(page))
    return monotonic() - started


@pytest.mark.req("FR-021")
async def test_who_gives_up_on_a_slow_start_does_so_in_time_and_the_next_one_finds_it_done(
    slow: BrowserHarness,
) -> None:
    hasty, patient = slow.fetcher(browsing=HASTY), slow.fetcher(browsing=PATIENT)

    waited = await refused(hasty, slow)
    page = await patient.fetch(slow.state())

    assert waited < DEADLINE_SECONDS + 1
    assert page.status == 200
    assert slow.events.names().count("browser.started") == 1
    assert slow.engine().generation == 1


async def test_a_halted_browser_that_opens_no_session_is_waited_for_no_longer_than_the_deadline(
    tmp_path: Path, site: Site
) -> None:
    async with browser_harness(tmp_path, site, check_seconds=600) as harness:
        await harness.start()
        hasty, patient = harness.fetcher(browsing=HASTY), harness.fetcher(browsing=PATIENT)
        pid = of_type(harness.engine(), "browser")[0].pid

        os.kill(pid, signal.SIGSTOP)
        waited = await refused(hasty, harness)
        os.kill(pid, signal.SIGCONT)
        page = await patient.fetch(harness.state())

        assert waited < DEADLINE_SECONDS + 1
        assert page.status == 200
        assert harness.engine().generation == 1


async def test_a_page_is_not_to_blame_for_the_time_that_the_browser_took(tmp_path: Path, site: Site) -> None:
    program = slow_chromium(tmp_path, DEADLINE_SECONDS * 0.6)
    async with browser_harness(tmp_path, site, executable=program) as harness:
        fetcher = harness.fetcher(browsing=HASTY)

        waited = await refused(fetcher, harness, "never")
        await harness.start()

        assert waited < DEADLINE_SECONDS + 1
        assert harness.engine().timeouts == 0


@pytest.mark.req("FR-007")
async def test_a_request_that_waits_for_a_browser_fails_when_its_fetcher_is_closed(slow: BrowserHarness) -> None:
    fetcher = slow.fetcher(browsing=PATIENT)
    waiting = asyncio.ensure_future(fetcher.fetch(slow.state()))
    await asyncio.sleep(0.5)

    await fetcher.aclose()

    with pytest.raises(BrowserLost, match="closed"):
        await waiting
