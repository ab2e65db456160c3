"""The demo: simulated matches, a whole Longstop, and a table that shows how fresh they are."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.live import Live

from longstop.fetching.browser.base import BrowserKind
from longstop_lab.account import accounts, total
from longstop_lab.report import DemoReport, SportReport
from longstop_lab.sample import Samples, list_matches, percentile, site_of
from longstop_lab.settle import wait_until_synced
from longstop_lab.simulator.judge import Verdict
from longstop_lab.stage import Stage, StageOptions, check, staged
from longstop_lab.table import greeting, summary, table

REFRESH_SECONDS = 1.0
MEGABYTE = 1_000_000


class DemoOptions(Struct, frozen=True, kw_only=True):
    seconds: float | None
    matches: int
    #: With commas, as `longstop simulate` takes them; `None` takes what the sites show.
    kinds: str | None
    speed: float
    seed: int
    sites: tuple[str, ...]
    #: The kind of browser that reads them; `None` reads them by HTTP.
    browser: BrowserKind | None
    truth: Path | None
    keep: Path | None
    #: `None` takes the usual one, or another when that is taken.
    api_port: int | None
    is_quiet: bool


async def run_demo(options: DemoOptions, console: Console) -> DemoReport:
    """Run until the time is over or Ctrl-C, then stop the world and account for every event."""
    simulate = (
        *("--matches", str(options.matches), "--speed", str(options.speed), "--seed", str(options.seed)),
        *(("--kinds", options.kinds) if options.kinds else ()),
    )
    stage_options = StageOptions(
        simulate=simulate,
        sites=options.sites,
        browser=options.browser or "none",
        truth=options.truth,
        keep=options.keep,
        api_port=options.api_port,
        settings={},
    )
    check(stage_options)
    if not options.is_quiet:
        console.print("starting simulator, scraper and API …")
    async with staged(stage_options) as stage:
        began = monotonic()
        if not options.is_quiet:
            # Long lines are left to the terminal: what it folds by itself can still be copied whole.
            console.print(greeting(stage), soft_wrap=True)
        try:
            await wait_until_synced(stage, since=began)
        except asyncio.CancelledError:
            console.print("stopped before the first look: there is nothing to account for")
            raise
        samples = Samples()
        await _watch(stage, samples, options, console)
        if not options.is_quiet:
            console.print("the world stands still; a last full sync, and every event is accounted for …")
        report = await _account(stage, samples)
        if not options.is_quiet:
            console.print(summary(report))
        return report


async def _watch(stage: Stage, samples: Samples, options: DemoOptions, console: Console) -> None:
    """Sample, and show the table, until the time is over or somebody presses Ctrl-C."""
    with suppress(TimeoutError, asyncio.CancelledError):
        async with asyncio.timeout(options.seconds):
            if options.is_quiet:
                await _sample(stage, samples, None)
            else:
                with Live(console=console, refresh_per_second=4, transient=False) as live:
                    await _sample(stage, samples, live)


async def _sample(stage: Stage, samples: Samples, live: Live | None) -> None:
    while True:
        entries = await list_matches(stage, samples)
        payloads: dict[str, Any] = {}
        for entry in (each for each in entries if each["last_poll_at"]):
            answer = await stage.api.get(entry["url"])
            samples.api_seconds.append(answer.seconds)
            payloads[entry["match_id"]] = answer.body
        await samples.take(stage, entries)
        if live is not None:
            live.update(table(entries, payloads))
        await asyncio.sleep(REFRESH_SECONDS)


async def _account(stage: Stage, samples: Samples) -> DemoReport:
    verdicts = await accounts(stage)
    verdict, ages = total(verdicts.values()), [age for each in samples.ages.values() for age in each]
    p95 = percentile(samples.api_seconds, 0.95)
    sites = Counter(site_of(entry) for entry in await list_matches(stage))
    return DemoReport(
        matches=verdict.matches,
        sites=dict(sorted(sites.items())),
        events_truth=verdict.events_truth,
        events_stored=verdict.events_stored,
        lost=verdict.lost,
        duplicated=verdict.duplicated,
        ghost=verdict.ghost,
        declared=verdict.declared,
        wrong=verdict.wrong,
        freshness_p50_s=_rounded(percentile(ages, 0.50)),
        freshness_p99_s=_rounded(percentile(ages, 0.99)),
        rss_mb=round(samples.peak_rss_bytes / MEGABYTE, 1),
        api_p95_ms=_rounded(p95 * 1000 if p95 is not None else None),
        sports=tuple(_of_sport(sport, each, samples.ages[sport]) for sport, each in verdicts.items()),
        details=verdict.details,
    )


def _of_sport(sport: str, verdict: Verdict, ages: Sequence[float]) -> SportReport:
    return SportReport(
        sport=sport,
        matches=verdict.matches,
        events_truth=verdict.events_truth,
        events_stored=verdict.events_stored,
        lost=verdict.lost,
        duplicated=verdict.duplicated,
        ghost=verdict.ghost,
        freshness_p50_s=_rounded(percentile(ages, 0.50)),
        freshness_p99_s=_rounded(percentile(ages, 0.99)),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
