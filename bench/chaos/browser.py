"""`browser`: two sites are read by browsers, whose processes are killed and stopped; nothing is lost or left behind.

Every source has a browser of its own. An fault hits all processes of one role in one of them. It is noticed when
the product reports it or ends a stopped process, and recovered when every match of the source was polled since.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from time import monotonic
from typing import Any

from msgspec import Struct

from bench.chaos.adaptation_steps import read_events
from bench.chaos.browser_faults import BrowserFault, browser_faults, noticed_at, tree_of
from bench.chaos.harness import ChaosRun, Figures, Plan, is_whole, run_suite
from bench.chaos.recovery import GIVE_UP_AFTER, are_all_fresh
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, Mode
from longstop.model.match import IN_PLAY
from longstop.process.processes import Identity, Process, command_line, is_alive, list_processes
from longstop_lab.client import list_matches, percentile
from longstop_lab.deployment import Deployment
from tests.background import background
from tests.process_tree import role_of, tree

SITES = ("crex", "sofascore")
MATCHES = 6
SPEED = 20.0
#: Without HTTP, which would hide a missing browser.
MODES = (Mode.NAVIGATE, Mode.PASSIVE, Mode.PAGE)
_SETTINGS = {"BREAK_INTERVAL_SECONDS": "2.5", "DISCOVERY_INTERVAL_SECONDS": "2.5"}

DETECT_WITHIN = 30.0
RECOVER_WITHIN = 10.0
#: No match of a source that was not struck may grow older.
SPARED_AGE = 10.0
GONE_WITHIN = 10.0
POLL_SECONDS = 0.25
#: How long to wait for a browser that restarts.
TARGET_WITHIN = 20.0


class Struck(Struct, kw_only=True):
    """A fault of a browser, and its outcome."""

    fault: BrowserFault
    at: datetime
    targets: tuple[Identity, ...]
    #: When the last of the halted was ended.
    ended_at: datetime | None = None
    recovered_at: datetime | None = None


async def browser(*, seed: int, minutes: float) -> Report:
    plan = Plan(
        seed=seed,
        seconds=minutes * 60,
        matches=MATCHES,
        speed=SPEED,
        kinds="t20,football",
        sites=SITES,
        browser=BrowserKind.SHELL,
        modes=MODES,
        settings=_SETTINGS,
    )
    observer = ProcessObserver()
    figures, details = await run_suite(plan, lambda run: _inject(run, plan, observer))
    figures |= await observer.aftermath()
    return Report(
        suite="chaos browser", is_ok=is_whole(figures) and is_in_time(figures), figures=figures, details=details
    )


def is_in_time(figures: Figures) -> bool:
    """Return whether every fault was noticed and recovered in time without effect on other sources."""
    limits = {
        "detect_max_s": DETECT_WITHIN,
        "recover_p95_s": RECOVER_WITHIN,
        "spared_age_max_s": SPARED_AGE,
        "gone_s": GONE_WITHIN,
    }
    is_kept = all(figures[name] is not None and figures[name] <= limit for name, limit in limits.items())
    return is_kept and not figures["never_recovered"] and not figures["browser_orphans"]


async def _inject(run: ChaosRun, plan: Plan, observer: "ProcessObserver") -> Figures:
    deployment = run.deployment
    observer.begin(deployment)
    async with watching(deployment) as watch:
        began = monotonic()
        for fault in browser_faults(plan.seed, plan.seconds, SITES):
            await asyncio.sleep(max(0.0, began + fault.at - monotonic()))
            targets = await _targets(deployment, fault)
            struck = Struck(fault=fault, at=SystemClock().now(), targets=tuple(each.identity for each in targets))
            watch.struck.append(struck)
            for target in targets:
                with suppress(ProcessLookupError):
                    os.kill(target.pid, fault.signal)
            say(f"{fault.signal.name} to the {fault.role} of {fault.source}: {len(targets)} processes")
        await watch.all_recovered()
    # A restarted scraper restarts every source's browser: an effect on other sources, though not injected.
    restarts = len(read_events(deployment.log, "process.restarted"))
    return {**figures_of(watch, read_events(deployment.log, "browser.failed", "page.discarded")), "renewed": restarts}


async def _targets(deployment: Deployment, fault: BrowserFault) -> list[Process]:
    deadline = monotonic() + TARGET_WITHIN
    while monotonic() < deadline:
        started = [each for each in read_events(deployment.log, "browser.started") if each["source"] == fault.source]
        tree = tree_of(started[-1]["pid"], list_processes()) if started else []
        targets = [each for each in tree if role_of(command_line(each.pid)) is fault.role and each.state not in "TtZ"]
        if targets:
            return targets
        await asyncio.sleep(POLL_SECONDS)
    raise UsageError(f"{fault.source} had no {fault.role} within {TARGET_WITHIN:g} s: it did not restart")


class Watch:
    """Polls the API: which faults have recovered, and how old the matches of other sources are."""

    def __init__(self, deployment: Deployment) -> None:
        self.struck: list[Struck] = []
        self.spared_age: float | None = None
        self._deployment = deployment
        self._clock = SystemClock()

    async def run(self) -> None:
        while True:
            with suppress(UsageError):  # a restarting API does not respond
                self._take(await list_matches(self._deployment), self._clock.now())
            await asyncio.sleep(POLL_SECONDS)

    async def all_recovered(self) -> None:
        deadline = monotonic() + GIVE_UP_AFTER
        while True:
            if monotonic() > deadline or all(each.recovered_at for each in self.struck):
                return
            await asyncio.sleep(POLL_SECONDS)

    def _take(self, entries: Sequence[dict[str, Any]], now: datetime) -> None:
        for each in self.struck:
            if each.ended_at is None and not any(map(is_alive, each.targets)):
                each.ended_at = now
            if each.recovered_at is None and are_all_fresh(of_source(entries, each.fault.source), each.at):
                each.recovered_at = now
        affected = {each.fault.source for each in self.struck if each.recovered_at is None}
        ages = (
            entry["data_age_seconds"] for site in SITES if site not in affected for entry in of_source(entries, site)
        )
        self.spared_age = max([age for age in (self.spared_age, *ages) if age is not None], default=None)


def of_source(entries: Sequence[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """Return the matches of a source that are in play."""
    return [each for each in entries if each["match_id"].startswith(f"{source}_") and each["status"] in IN_PLAY]


@asynccontextmanager
async def watching(deployment: Deployment) -> AsyncIterator[Watch]:
    watch = Watch(deployment)
    async with background(watch.run()):
        yield watch


def figures_of(watch: Watch, events: Sequence[dict[str, Any]]) -> Figures:
    """Return the time to notice each fault, and from there to the recovery."""
    done = [(each, each.recovered_at) for each in watch.struck if each.recovered_at is not None]
    detected, recovered = list[float](), list[float]()
    for each, recovered_at in done:
        said = noticed_at(events, each.fault.source, each.at, recovered_at)
        # A killed process ends at once; a stopped one ends when the product has noticed it.
        ended = each.ended_at if each.fault.signal is signal.SIGSTOP else None
        noticed = min(at for at in (said, ended, recovered_at) if at is not None)
        detected.append((noticed - each.at).total_seconds())
        recovered.append((recovered_at - noticed).total_seconds())
    return {
        "blows": len(watch.struck),
        "detect_max_s": rounded(max(detected, default=None)),
        "recover_p50_s": rounded(percentile(recovered, 0.50)),
        "recover_p95_s": rounded(percentile(recovered, 0.95)),
        "recover_max_s": rounded(max(recovered, default=None)),
        "never_recovered": len(watch.struck) - len(done),
        "spared_age_max_s": rounded(watch.spared_age),
    }


class ProcessObserver:
    """Keeps the names of scrapers and all that was ever below them, to ask for them after their end."""

    def __init__(self) -> None:
        self.seen: set[Identity] = set()
        self._counting: asyncio.Task[None] | None = None

    def begin(self, deployment: Deployment) -> None:
        self._counting = asyncio.create_task(self._count(deployment), name="observer")

    async def aftermath(self) -> Figures:
        """Return how many are left, and how long the last one took to go."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)
        began = monotonic()
        while True:
            left, seconds = sum(map(is_alive, self.seen)), monotonic() - began
            if not left or seconds > GONE_WITHIN:
                return {"browser_processes": len(self.seen), "browser_orphans": left, "gone_s": rounded(seconds, 1)}
            await asyncio.sleep(POLL_SECONDS)

    async def _count(self, deployment: Deployment) -> None:
        while True:
            scraper = deployment.scraper()
            if scraper is not None:
                self.seen |= {each.identity for each in tree(scraper.pid)}
            await asyncio.sleep(POLL_SECONDS)
