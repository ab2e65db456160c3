"""`modes`: the same football matches watched in open pages, by asking from inside a page, and by HTTP, side by side.

Each way has the whole product to itself for a while: supervisor, scraper, API and browser. Their tree is measured
without the simulator.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from msgspec import Struct

from bench.reporting import Report, rounded, say
from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, Mode
from longstop_lab.client import Samples, list_matches, percentile
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from tests.process_tree import tree_cpu_seconds, tree_usage

#: The modes of a source that end in the measured mode.
WAYS = {
    Mode.PASSIVE: (Mode.NAVIGATE, Mode.PASSIVE),
    Mode.PAGE: (Mode.NAVIGATE, Mode.PAGE),
    Mode.HTTP: (Mode.NAVIGATE, Mode.PAGE, Mode.HTTP),
}
FRESHNESS_P99 = 10.0
PASSIVE_PSS_MB = 2500.0
SETTLE_WITHIN = 300.0
#: After the first sync every match is polled a few times, so that the mode is settled before the measurement.
SETTLE_SECONDS = 10.0
MEGABYTE = 1_000_000
#: The memory of pages is measured, so no limit may restart a process. Limits count shared memory for each process.
UNLIMITED = {"MEMORY_SOFT_LIMIT_MB": "16000", "MEMORY_HARD_LIMIT_MB": "20000", "BROWSER_MAX_MEMORY_MB": "16000"}


class Trial(Struct, frozen=True, kw_only=True):
    matches: int
    seconds: float


async def modes(*, is_quick: bool) -> Report:
    trial = Trial(matches=10, seconds=20.0) if is_quick else Trial(matches=50, seconds=60.0)
    figures: dict[str, Any] = {"matches": trial.matches, "seconds": trial.seconds}
    details: list[str] = []
    for mode in WAYS:
        figures[mode], more = await watched(mode, trial)
        details += more
    return Report(suite="modes", is_ok=is_good(figures), figures=figures, details=details)


def is_good(figures: dict[str, Any]) -> bool:
    """Return whether every mode keeps the matches fresh and complete, and open pages keep their memory."""
    pss = figures[Mode.PASSIVE]["pss_mb"]
    return pss is not None and pss < PASSIVE_PSS_MB and all(_is_fresh_and_whole(figures[mode]) for mode in WAYS)


def _is_fresh_and_whole(way: dict[str, Any]) -> bool:
    age = way["freshness_p99_s"]
    return age is not None and age < FRESHNESS_P99 and not (way["lost"] or way["duplicated"] or way["ghost"])


async def watched(mode: Mode, trial: Trial) -> tuple[dict[str, Any], Sequence[str]]:
    """Let the product poll matches in one mode, and return the cost."""
    say(f"starting {trial.matches} football matches at real speed, in mode {mode}")
    with TemporaryDirectory(prefix="longstop-bench-") as home:
        options = DeploymentOptions(
            simulate=("--matches", str(trial.matches), "--kinds", "football"),
            sites=("sofascore",),
            browser=BrowserKind.SHELL,
            modes=WAYS[mode],
            keep=Path(home) / "data",
            settings=UNLIMITED,
        )
        async with deployed(options) as deployment:
            began = monotonic()
            await wait_until_synced(deployment, since=monotonic(), timeout=SETTLE_WITHIN)
            in_sync_s = monotonic() - began
            say(f"in sync after {in_sync_s:.1f} s")
            await asyncio.sleep(SETTLE_SECONDS)
            figures = await _measured(deployment, trial.seconds)
            say("measured; checking every event")
            verdict = await check_events(deployment, timeout=SETTLE_WITHIN)
    whole = {"lost": verdict.lost, "duplicated": verdict.duplicated, "ghost": verdict.ghost}
    return {"in_sync_s": rounded(in_sync_s, 1), **figures, **whole}, verdict.details


async def _measured(deployment: Deployment, seconds: float) -> dict[str, Any]:
    head, samples = _supervisor(deployment), Samples()
    before, began = tree_cpu_seconds(head), monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                samples.add(await list_matches(deployment, samples.api_seconds), deployment.rss_bytes())
                await asyncio.sleep(1.0)
    ages = samples.ages["football"]
    cores, now = (tree_cpu_seconds(head) - before) / (monotonic() - began), tree_usage(head)
    return {
        "freshness_p50_s": rounded(percentile(ages, 0.50)),
        "freshness_p99_s": rounded(percentile(ages, 0.99)),
        "pss_mb": rounded(now.pss_bytes and now.pss_bytes / MEGABYTE, 0),
        "rss_mb": rounded(now.rss_bytes and now.rss_bytes / MEGABYTE, 0),
        "processes": now.processes,
        "cpu_share": rounded(cores, 2),
    }


def _supervisor(deployment: Deployment) -> int:
    scraper = deployment.scraper()
    if scraper is None:
        raise UsageError("the scraper is restarting and cannot be measured: run the suite again")
    return scraper.ppid()
