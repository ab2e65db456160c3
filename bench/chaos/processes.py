"""`processes`: scraper, API, supervisor and browser are killed during play, and a child is stopped (SIGSTOP).

A supervisor that was killed is started again at once, as a service manager would. A fault is overcome when the API
shows of every match in play a poll that is younger than the fault, or than the end of a halt. The next one falls a
moment later, by the seed; one of each round does not wait for that, and then the later one is timed. A browser goes
when its owner does; in each round one owner dies while the browser is halted, so that the product has to end it.
"""

import asyncio
import os
from collections import Counter
from datetime import datetime
from itertools import pairwise
from statistics import fmean
from time import monotonic

from msgspec import Struct

from bench.chaos.harness import ChaosRun, Figures, Plan, is_whole, run_suite
from bench.chaos.process_faults import ROUND, ProcessFault, Target, process_faults
from bench.chaos.process_observer import ProcessObserver
from bench.chaos.recovery import Recoveries, are_all_fresh
from bench.chaos.service_manager import Service, serviced
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, Mode
from longstop.process.processes import Identity, command_line, find_process
from longstop_lab.deployment import Deployment
from tests.process_tree import Role, hit, role_of, stop_descendants, tree

MATCHES = 6
#: The matches must last: at most this many seconds of match time pass.
WORLD_SECONDS = 1500.0
FASTEST = 20.0
#: The approximate duration of one fault, to estimate the length of a run.
SECONDS_PER_STRIKE = 8.0
RECOVER_WITHIN = 10.0
#: For the worst recovery of each kind of process.
WORST_WITHIN = 20.0
ORPHAN_WITHIN = 10.0
#: How long to wait for a process that restarts.
TARGET_WITHIN = 20.0

_SETTINGS = {
    "BREAK_INTERVAL_SECONDS": "2.5",
    "DISCOVERY_INTERVAL_SECONDS": "2.5",
    # Processes are killed every few seconds on purpose: restart them without a delay.
    "LONGSTOP_SETTLED_SECONDS": "0",
}


class Length(Struct, frozen=True, kw_only=True):
    """The length of a run: a duration of at least one round, or a number of kills."""

    seconds: float
    kills: int | None = None

    def is_reached(self, *, faults: int, kills: int, seconds: float) -> bool:
        if self.kills is not None:
            return kills >= self.kills
        return faults >= ROUND and seconds >= self.seconds


async def processes(*, seed: int, minutes: float, kills: int | None = None) -> Report:
    """Run for a duration, or for a number of kills."""
    length = Length(seconds=minutes * 60 if kills is None else kills * SECONDS_PER_STRIKE, kills=kills)
    plan = Plan(
        seed=seed,
        seconds=length.seconds,
        matches=MATCHES,
        speed=min(FASTEST, WORLD_SECONDS / length.seconds),
        kinds="t20,football",
        sites=("crex", "sofascore"),
        browser=BrowserKind.SHELL,
        # Without HTTP, which would hide a missing browser.
        modes=(Mode.NAVIGATE, Mode.PASSIVE, Mode.PAGE),
        by_http=("crex",),
        settings=_SETTINGS,
    )
    observer = ProcessObserver()
    figures, details = await run_suite(plan, lambda run: _trouble(run, seed, length, observer))
    figures |= await observer.aftermath()
    return Report(
        suite="chaos processes",
        is_ok=is_whole(figures) and has_recovered_in_time(figures),
        figures=figures,
        details=details,
    )


def has_recovered_in_time(figures: Figures) -> bool:
    """Return whether every fault recovered in time with one writer, and no zombie or orphan is left."""
    p95 = figures["recover_p95_s"]
    is_in_time = p95 is not None and p95 <= RECOVER_WITHIN and not figures["never_recovered"]
    is_none_late = all(seconds <= WORST_WITHIN for seconds in figures["recover_max_by_victim_s"].values())
    is_tidy = figures["orphan_max_s"] <= ORPHAN_WITHIN and not figures["zombies"]
    return is_in_time and is_none_late and is_tidy and not figures["second_writers"]


async def _trouble(run: ChaosRun, seed: int, length: Length, observer: ProcessObserver) -> Figures:
    service = await run.stack.enter_async_context(serviced(run.deployment))
    striking = FaultInjection(run.deployment, service)
    async with observer.taken(run.deployment):
        await striking.run(seed, length)
        zombies = await observer.lasting_zombies()
    # Without any writer the observer has seen nothing, which is a failure, too.
    seen = {"second_writers": observer.most_writers - 1, "orphan_max_s": rounded(observer.abandoned.longest, 1)}
    return {**striking.figures(), **seen, "zombies": zombies}


class FaultInjection:
    """Strikes one process after the other, and measures the recovery of each."""

    def __init__(self, deployment: Deployment, service: Service) -> None:
        self.kills: Counter[Target] = Counter()
        self.halts = 0
        #: Strikes before the recovery of the previous one.
        self.hurried = 0
        #: Owners that were killed while their browser was halted.
        self.browsers_halted = 0
        #: How busy the machine was at each fault.
        self.loads: list[float] = []
        #: The longest recovery of each kind of process.
        self.worst: dict[str, float] = {}
        self._deployment = deployment
        self._service = service
        # Separately: a stopped process continues at once, which would flatter the kills.
        self._after_kills = Recoveries(deployment, are_all_fresh)
        self._after_halts = Recoveries(deployment, are_all_fresh)
        self._clock = SystemClock()

    async def run(self, seed: int, length: Length) -> None:
        """Inject faults until the run is complete or a recovery fails."""
        began = monotonic()
        for fault, following in pairwise(process_faults(seed)):
            await asyncio.sleep(fault.pause)
            since = await self._inject(fault)
            if following.is_hurried:
                continue
            if not await self._has_recovered(fault, since):
                return
            kills = self.kills.total()
            if length.is_reached(faults=kills + self.halts, kills=kills, seconds=monotonic() - began):
                return

    def figures(self) -> Figures:
        return {
            "kills": self.kills.total(),
            "kills_by_victim": {target: self.kills[target] for target in Target},
            "halts": self.halts,
            "hurried": self.hurried,
            "browsers_halted": self.browsers_halted,
            **self._after_kills.figures(),
            "never_recovered": self._after_kills.never + self._after_halts.never,
            "recover_max_by_victim_s": self.worst,
            "load_mean": rounded(fmean(self.loads), 1),
            "cores": os.cpu_count(),
        }

    async def _inject(self, fault: ProcessFault) -> datetime:
        """Inject a fault as soon as the process runs; return the moment from which the recovery counts."""
        self.loads.append(os.getloadavg()[0])
        if fault.is_browser_halted and (scraper := self._deployment.scraper()) is not None:
            self.browsers_halted += bool(await asyncio.to_thread(stop_descendants, scraper.pid))
        if not await hit(lambda: self._find(fault.target), halt=fault.halt, timeout=TARGET_WITHIN):
            raise UsageError(f"there was no {fault.target} within {TARGET_WITHIN:g} s: it did not come back")
        since = self._clock.now()
        self.hurried += fault.is_hurried
        if fault.halt:
            self.halts += 1
            return since
        self.kills[fault.target] += 1
        if fault.target is Target.UP:
            await self._service.start_up()
        return since

    async def _has_recovered(self, fault: ProcessFault, since: datetime) -> bool:
        recoveries = self._after_halts if fault.halt else self._after_kills
        recoveries.begin(since)
        await recoveries.all_done()
        if recoveries.never:
            return False
        taken, name = recoveries.seconds[-1], f"{fault.target}_halted" if fault.halt else fault.target.value
        self.worst[name] = max(self.worst.get(name, 0.0), round(taken, 2))
        say(f"{name}: recovered after {taken:.1f} s{', hurried' if fault.is_hurried else ''}")
        return True

    def _find(self, target: Target) -> Identity | None:
        pid = self._pid_of(target)
        found = find_process(pid) if pid is not None else None
        return found.identity if found is not None else None

    def _pid_of(self, target: Target) -> int | None:
        match target:
            case Target.UP:
                return self._deployment.up_pid
            case Target.BROWSER:
                scraper = self._deployment.scraper()
                below = tree(scraper.pid) if scraper is not None else []
                return next((each.pid for each in below if role_of(command_line(each.pid)) is Role.BROWSER), None)
            case _:
                child = self._deployment.process(target)
                return child.pid if child is not None else None
