"""The demo: simulated matches, a complete Longstop, and a table that shows how fresh the data are."""

import asyncio
import os
import sys
import termios
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import Struct
from rich.live import Live

from longstop.cli.output import TextConsole
from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop_lab.client import Samples, list_matches, percentile, site_of
from longstop_lab.deployment import Deployment, DeploymentOptions, check, deployed
from longstop_lab.final_check import add_up, check_events_by_sport, wait_until_synced
from longstop_lab.report import DemoReport, SportReport
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.simulator.service import SimulatorOptions, choose_kinds, read_kinds
from longstop_lab.table import greeting, summary, table

REFRESH_SECONDS = 1.0
#: The API is back within seconds after a crash.
RESTARTED_WITHIN_SECONDS = 30.0
MEGABYTE = 1_000_000


class DemoOptions(Struct, frozen=True, kw_only=True):
    seconds: float | None
    #: Simulated matches. A match that two sites show is listed twice.
    matches: int
    #: Comma-separated, as for `longstop simulate`; `None` takes what the sites show.
    kinds: str | None
    speed: float
    seed: int
    sites: tuple[str, ...]
    #: The kind of browser that reads the sites; `None` reads them by HTTP.
    browser: BrowserKind | None
    truth: Path | None
    keep: Path | None
    #: `None` takes the default port, or a free one when it is in use.
    api_port: int | None
    is_quiet: bool


async def run_demo(options: DemoOptions, console: TextConsole) -> DemoReport:
    """Run for the given time or until Ctrl-C, then freeze the simulator and check every event."""
    kinds = read_kinds(options.kinds) if options.kinds else None
    # The simulator refuses wrong options, too, but only after it was said to start.
    choose_kinds(
        SimulatorOptions(matches=options.matches, kinds=kinds, speed=options.speed, sites=",".join(options.sites))
    )
    simulate = (
        *("--matches", str(options.matches), "--speed", str(options.speed), "--seed", str(options.seed)),
        *(("--kinds", options.kinds) if options.kinds else ()),
    )
    deployment_options = DeploymentOptions(
        simulate=simulate,
        sites=options.sites,
        browser=options.browser or "none",
        truth=options.truth,
        keep=options.keep,
        api_port=options.api_port,
        settings={},
    )
    check(deployment_options)

    def say(what: Any) -> None:
        if not options.is_quiet:
            # The terminal wraps long lines, so that they can still be copied as one line.
            console.print(what, soft_wrap=True)

    say(_opening(options))
    async with deployed(deployment_options) as deployment:
        began = monotonic()
        say(greeting(deployment))
        try:
            await wait_until_synced(deployment, since=began)
        except asyncio.CancelledError:
            console.print("stopped before the first poll: there are no events to check")
            raise
        samples = Samples()
        await _watch(deployment, samples, options, console)
        try:
            if faults := await remove_faults(deployment):
                say(f"removed {faults} from the simulator: faults could hide events from the last sync")
            say("simulator frozen; waiting for a last full sync, then checking every event …")
            report = await _report(deployment, samples)
        except (asyncio.CancelledError, KeyboardInterrupt):
            console.print("stopped before the check was done: no event was checked")
            raise
        if not options.is_quiet:
            console.print(summary(report))
        return report


async def remove_faults(deployment: Deployment) -> str:
    """Remove all faults of the simulator; return how many there were, empty if none."""
    count = len((await deployment.simulator.get("/_sim/faults")).body)
    await deployment.simulator.delete("/_sim/faults")
    return "1 fault" if count == 1 else f"{count} faults" if count else ""


def _opening(options: DemoOptions) -> str:
    matches = "1 match" if options.matches == 1 else f"{options.matches} matches"
    twice = ""
    if {"crex", "espncricinfo"} <= set(options.sites):
        twice = " (each cricket match is shown by crex and espncricinfo and listed once for each)"
    return f"starting simulator, scraper and API with {matches}{twice} …"


async def _watch(deployment: Deployment, samples: Samples, options: DemoOptions, console: TextConsole) -> None:
    """Sample and show the table until the time is over or Ctrl-C is pressed."""
    with suppress(TimeoutError, asyncio.CancelledError):
        async with asyncio.timeout(options.seconds):
            if options.is_quiet:
                await _sample(deployment, samples, None)
            else:
                with without_echoed_control_keys(), Live(console=console, refresh_per_second=4) as live:
                    await _sample(deployment, samples, live)
    if not options.is_quiet and not console.is_terminal:
        console.line()  # in a file or a pipe, the table ends without a newline


@contextmanager
def without_echoed_control_keys(terminal: int | None = None) -> Iterator[None]:
    """Keep the terminal from printing `^C` into the table.

    It would wrap to a new line, and the last redraw would start one line too low and leave a second title.
    """
    terminal = sys.stdin.fileno() if terminal is None else terminal
    if not os.isatty(terminal):
        yield
        return
    before = termios.tcgetattr(terminal)
    quiet = [*before]
    quiet[3] &= ~termios.ECHOCTL
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


async def _sample(deployment: Deployment, samples: Samples, live: Live | None) -> None:
    answered_at = monotonic()
    while True:
        try:
            await _sample_once(deployment, samples, live)
            answered_at = monotonic()
        except UsageError:  # `up` may be restarting the API
            if monotonic() - answered_at > RESTARTED_WITHIN_SECONDS:
                raise
        await asyncio.sleep(REFRESH_SECONDS)


async def _sample_once(deployment: Deployment, samples: Samples, live: Live | None) -> None:
    entries = await list_matches(deployment, samples.api_seconds)
    payloads: dict[str, Any] = {}
    for entry in (each for each in entries if each["last_poll_at"]):
        response = await deployment.api.get(entry["url"])
        samples.api_seconds.append(response.seconds)
        payloads[entry["match_id"]] = response.body
    samples.add(entries, deployment.rss_bytes())
    if live is not None:
        live.update(table(entries, payloads, live.console.size))


async def _report(deployment: Deployment, samples: Samples) -> DemoReport:
    comparisons = await check_events_by_sport(deployment)
    total, ages = add_up(comparisons.values()), [age for each in samples.ages.values() for age in each]
    p95 = percentile(samples.api_seconds, 0.95)
    sites = Counter(site_of(entry) for entry in await list_matches(deployment))
    return DemoReport(
        matches=total.matches,
        sites=dict(sorted(sites.items())),
        events_truth=total.events_truth,
        events_stored=total.events_stored,
        lost=total.lost,
        duplicated=total.duplicated,
        ghost=total.ghost,
        declared=total.declared,
        wrong=total.wrong,
        freshness_p50_s=_rounded(percentile(ages, 0.50)),
        freshness_p99_s=_rounded(percentile(ages, 0.99)),
        rss_mb=round(samples.peak_rss_bytes / MEGABYTE, 1),
        api_p95_ms=_rounded(p95 * 1000 if p95 is not None else None),
        sports=tuple(_sport_report(sport, each, samples.ages[sport]) for sport, each in comparisons.items()),
        details=total.details,
    )


def _sport_report(sport: str, comparison: TruthComparison, ages: Sequence[float]) -> SportReport:
    return SportReport(
        sport=sport,
        matches=comparison.matches,
        events_truth=comparison.events_truth,
        events_stored=comparison.events_stored,
        lost=comparison.lost,
        duplicated=comparison.duplicated,
        ghost=comparison.ghost,
        freshness_p50_s=_rounded(percentile(ages, 0.50)),
        freshness_p99_s=_rounded(percentile(ages, 0.99)),
        declared=comparison.declared,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
