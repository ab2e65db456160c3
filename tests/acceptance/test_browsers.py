"""The whole product reads through a real browser: every mode, both sports, and a browser that is killed in play."""

import asyncio
from contextlib import suppress
from datetime import datetime
from time import monotonic

import psutil
import pytest

from longstop.clock import SystemClock, from_iso
from longstop.fetching.browser.browser_policy_and_stats import Mode
from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from tests.acceptance.harness import Event, logged, read_log

pytestmark = pytest.mark.timeout(180)

#: The cheapest of each is reached in some looks; what pages do not ask by themselves is asked from inside them.
WAYS = [(Mode.NAVIGATE,), (Mode.NAVIGATE, Mode.PASSIVE), (Mode.NAVIGATE, Mode.PAGE), tuple(Mode)]
PATIENCE_SECONDS = 60.0
#: How long play goes on once the mode is reached: some polls of each match.
IN_MODE_SECONDS = 3.0


def options(modes: tuple[Mode, ...], speed: float = 60) -> DeploymentOptions:
    simulate = ("--matches", "4", "--kinds", "t20,football", "--speed", f"{speed:g}", "--seed", "5", "--poll", "1")
    settings = {"LOG_LEVEL": "DEBUG", "LONGSTOP_SETTLED_SECONDS": "0"}
    return DeploymentOptions(
        simulate=simulate, sites=("crex", "sofascore"), browser="shell", modes=modes, settings=settings
    )


def said(deployment: Deployment, event: str) -> list[Event]:
    return logged(read_log(deployment.log), event)


def modes_used(deployment: Deployment) -> set[tuple[str, str]]:
    """Return the sources and the modes in which their pages were read."""
    return {(line["source"], line["mode"]) for line in said(deployment, "page.measured")}


async def until_read_in(deployment: Deployment, mode: Mode) -> None:
    """Wait until both sites were read in a mode."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not modes_used(deployment) >= {("crex", mode), ("sofascore", mode)}:  # noqa: ASYNC110 - in other processes
            await asyncio.sleep(0.25)


@pytest.mark.req("CAP-1", "NFR-009")
@pytest.mark.parametrize("modes", WAYS, ids=lambda modes: str(modes[-1]))
async def test_both_sports_are_read_whole_in_every_mode(modes: tuple[Mode, ...]) -> None:
    async with deployed(options(modes)) as deployment:
        await wait_until_synced(deployment, since=monotonic())
        await until_read_in(deployment, modes[-1])
        await asyncio.sleep(IN_MODE_SECONDS)
        verdict = await check_events(deployment)

    assert (verdict.lost, verdict.duplicated, verdict.ghost) == (0, 0, 0), verdict.details
    assert verdict.events_stored > 20


@pytest.mark.req("US1.2", "FR-009", "NFR-005")
async def test_a_browser_that_is_killed_in_play_is_replaced_and_nothing_is_lost() -> None:
    async with deployed(options((Mode.NAVIGATE, Mode.PASSIVE), speed=20)) as deployment:  # football is not over before
        await wait_until_synced(deployment, since=monotonic())
        began = SystemClock().now()
        for line in said(deployment, "browser.started"):
            with suppress(psutil.NoSuchProcess):
                psutil.Process(line["pid"]).kill()
        await until_all_are_read_since(deployment, began)
        recovered = (SystemClock().now() - began).total_seconds()
        verdict = await check_events(deployment)
        failed = [line["source"] for line in said(deployment, "browser.failed")]

    assert (verdict.lost, verdict.duplicated, verdict.ghost) == (0, 0, 0), verdict.details
    assert set(failed) == {"crex", "sofascore"}
    assert recovered < PATIENCE_SECONDS


async def until_all_are_read_since(deployment: Deployment, moment: datetime) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            in_play = [entry for entry in await list_matches(deployment) if entry["status"] in ("live", "break")]
            if in_play and all(from_iso(entry["last_poll_at"]) > moment for entry in in_play):
                return
            await asyncio.sleep(0.25)
