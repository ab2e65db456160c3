"""Shared by all chaos suites: a deployment in sync, actions at scheduled times, and the check at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import msgspec
from msgspec import Struct

from bench.chaos.fault_schedule import Action
from bench.reporting import say
from longstop.clock import SystemClock, from_iso
from longstop.fetching.browser.browser_policy_and_stats import LADDER
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed, survivors
from longstop_lab.final_check import check_events, events_published, wait_until_synced
from longstop_lab.simulator.faults import Fault
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.simulator.truth import read_truth
from longstop_lab.version_log import logging_versions

ALL_KINDS = "t20,t20-rain,odi,test"
#: The last full sync may take long on a busy machine.
SYNC_TIMEOUT = 120.0

#: Intervals of the product, at least five times shorter than its defaults.
COMPRESSED = {
    "POLLING_INTERVAL_SECONDS": "0.5",
    "DISCOVERY_INTERVAL_SECONDS": "0.5",
    "BUSY_INTERVAL_SECONDS": "0.4",
    "BREAK_INTERVAL_SECONDS": "1",
    "BREAK_AFTER_SECONDS": "5",
    "CALM_AFTER_ERRORS_SECONDS": "10",
    "NOT_FOUND_SECONDS": "5",
    "FETCH_TIMEOUT_SECONDS": "2",
    "CIRCUIT_BREAKER_CANARY_SECONDS": "0.5",
    "CIRCUIT_BREAKER_SOURCE_SECONDS": "5",
    "COOL_DOWN_SECONDS": "5",
    "LAYOUT_PROBE_SECONDS": "5",
    "RETRY_BASE_DELAY_SECONDS": "0.2",
}
COMPRESSED_INTERVAL = float(COMPRESSED["POLLING_INTERVAL_SECONDS"])

#: Figures that must be zero.
MUST_BE_ZERO = ("lost", "duplicated", "ghost", "wrong", "forgotten", "orphans")
#: Figures that must be positive, or the suite has proved nothing.
MUST_BE_MORE = ("events_truth", "events_during", "events_witnessed")


class Plan(Struct, frozen=True, kw_only=True):
    """The deployment of a suite."""

    seed: int
    seconds: float
    matches: int
    speed: float
    kinds: str = ALL_KINDS
    sites: tuple[str, ...] = ("crex",)
    #: The kind of browser that reads the sites, and its fetch modes; `none` reads them by HTTP.
    browser: str = "none"
    modes: tuple[str, ...] = LADDER
    by_http: tuple[str, ...] = ()
    #: Faults that are active before the scraper's first request.
    faults: tuple[Fault, ...] = ()
    settings: Mapping[str, str]

    @property
    def simulate(self) -> tuple[str, ...]:
        return (
            *("--matches", str(self.matches), "--kinds", self.kinds),
            *("--speed", f"{self.speed:g}", "--seed", str(self.seed)),
        )

    def deployment(self, data: Path) -> DeploymentOptions:
        return DeploymentOptions(
            simulate=self.simulate,
            sites=self.sites,
            browser=self.browser,
            modes=self.modes,
            by_http=self.by_http,
            faults=self.faults,
            keep=data,
            settings=self.settings,
        )


class ChaosRun(Struct, frozen=True, kw_only=True):
    """A running deployment."""

    deployment: Deployment
    #: When the first sync started.
    began: datetime
    #: What a suite opens and needs until the final check.
    stack: AsyncExitStack


Figures = dict[str, Any]


async def run_suite(plan: Plan, trouble: Callable[[ChaosRun], Awaitable[Figures]]) -> tuple[Figures, Sequence[str]]:
    """Start a deployment, run the faults of a suite, then freeze the simulator and check every event."""
    with TemporaryDirectory(prefix="longstop-chaos-") as home:
        data = Path(home) / "data"
        say(f"starting {plan.matches} matches at {plan.speed:g} times the real speed")
        async with deployed(plan.deployment(data)) as deployment, AsyncExitStack() as stack:
            began = monotonic()
            run = ChaosRun(deployment=deployment, began=SystemClock().now(), stack=stack)
            await wait_until_synced(deployment, since=began, timeout=SYNC_TIMEOUT)
            version_log = await stack.enter_async_context(logging_versions(deployment))
            say("in sync; starting the faults")
            since = SystemClock().now()
            measured = await trouble(run)
            until = SystemClock().now()
            await deployment.simulator.delete("/_sim/faults")
            say("faults off, simulator frozen; waiting for a last full sync, then checking every event")
            verdict = await check_events(deployment, timeout=SYNC_TIMEOUT, version_log=version_log)
            during = events_published(read_truth(deployment.truth), since=since, until=until)
        orphans = survivors(data)
    figures = {"seed": plan.seed, "seconds": round(plan.seconds, 1), **counts(verdict), "events_during": during}
    return {**figures, "orphans": orphans, **measured}, verdict.details


def counts(verdict: TruthComparison) -> Figures:
    return {
        "matches": verdict.matches,
        "events_truth": verdict.events_truth,
        "events_stored": verdict.events_stored,
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "ghost": verdict.ghost,
        "wrong": verdict.wrong,
        "forgotten": verdict.forgotten,
        "events_witnessed": verdict.witnessed,
    }


def is_whole(figures: Figures) -> bool:
    """Return whether nothing was lost, duplicated, invented, destroyed or left behind, where it could have been."""
    is_kept = figures["events_truth"] == figures["events_stored"] and not any(figures[name] for name in MUST_BE_ZERO)
    return is_kept and all(figures[name] > 0 for name in MUST_BE_MORE)


async def run_schedule(actions: Iterable[Action], seconds: float, do: Callable[[Action], Awaitable[None]]) -> None:
    """Run every action at its time, and return when the time is over."""
    began = monotonic()
    for action in actions:
        await asyncio.sleep(max(0.0, began + action.at - monotonic()))
        await do(action)
    await asyncio.sleep(max(0.0, began + seconds - monotonic()))


async def inject(deployment: Deployment, fault: Fault) -> datetime | None:
    """Start a fault, and return when it ends by the simulator's clock."""
    rules = (await deployment.simulator.post("/_sim/faults", msgspec.json.encode(fault))).body
    until: str | None = rules[-1]["until"]
    return None if until is None else from_iso(until)
