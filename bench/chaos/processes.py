"""`processes`: scraper, API, supervisor and browser are killed in the middle of play, and a child is halted.

A supervisor that was killed is started again at once, as a service manager would. A strike is overcome when the API
shows of every match in play a look that is younger than the strike, or than the end of a halt. The next one falls a
moment later, by the seed; one of each round does not wait for that, and then the later one is timed. A browser goes
when its owner does; in each round one owner dies while the browser is halted, so that somebody has to end it.
"""

import asyncio
import os
from collections import Counter
from datetime import datetime
from itertools import pairwise
from statistics import fmean
from time import monotonic

from msgspec import Struct

from bench.chaos.arena import Arena, Figures, Plan, in_arena, is_whole
from bench.chaos.processes_census import Census
from bench.chaos.processes_service import Service, serviced
from bench.chaos.processes_strikes import ROUND, Strike, Victim, strikes
from bench.chaos.recovery import Recoveries, are_all_fresh
from bench.frame import Report, rounded, say
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.fetching.browser.base import BrowserKind, Mode
from longstop.process.processes import Identity, command_line, find_process
from longstop_lab.deployment import Deployment
from tests.process_tree import Role, hit, role_of, stop_descendants, tree

MATCHES = 6
#: The matches have to last: so many seconds of theirs pass at most, whatever the run's length.
WORLD_SECONDS = 1500.0
FASTEST = 20.0
#: What one strike takes, about, when nothing else tells how long a run will be.
SECONDS_PER_STRIKE = 8.0
RECOVER_WITHIN = 10.0
#: For the worst of each victim: what kills seldom hit must not hide behind the others.
WORST_WITHIN = 20.0
ORPHAN_WITHIN = 10.0
#: A victim between two lives is waited for, so that every strike hits somebody.
VICTIM_WITHIN = 20.0

_SETTINGS = {
    "BREAK_INTERVAL_SECONDS": "2.5",
    "DISCOVERY_INTERVAL_SECONDS": "2.5",
    # Who is killed every few seconds has done nothing wrong: it is started again at once.
    "LONGSTOP_SETTLED_SECONDS": "0",
}


class Length(Struct, frozen=True, kw_only=True):
    """How long to go on: for a while, and one round at least; or until so many were killed."""

    seconds: float
    kills: int | None = None

    def is_reached(self, *, strikes: int, kills: int, seconds: float) -> bool:
        if self.kills is not None:
            return kills >= self.kills
        return strikes >= ROUND and seconds >= self.seconds


async def processes(*, seed: int, minutes: float, kills: int | None = None) -> Report:
    """Strike for so long, or kill so many."""
    length = Length(seconds=minutes * 60 if kills is None else kills * SECONDS_PER_STRIKE, kills=kills)
    plan = Plan(
        seed=seed,
        seconds=length.seconds,
        matches=MATCHES,
        speed=min(FASTEST, WORLD_SECONDS / length.seconds),
        kinds="t20,football",
        sites=("crex", "sofascore"),
        browser=BrowserKind.SHELL,
        # Without HTTP, since then nobody would miss the browser for a while.
        modes=(Mode.NAVIGATE, Mode.PASSIVE, Mode.PAGE),
        by_http=("crex",),
        settings=_SETTINGS,
    )
    census = Census()
    figures, details = await in_arena(plan, lambda arena: _trouble(arena, seed, length, census))
    figures |= await census.aftermath()
    return Report(
        suite="chaos processes", is_ok=is_whole(figures) and is_mended(figures), figures=figures, details=details
    )


def is_mended(figures: Figures) -> bool:
    """Return whether every strike was overcome in time, by one writer, and nobody dead or abandoned lies about."""
    p95 = figures["recover_p95_s"]
    is_in_time = p95 is not None and p95 <= RECOVER_WITHIN and not figures["never_recovered"]
    is_none_late = all(seconds <= WORST_WITHIN for seconds in figures["recover_max_by_victim_s"].values())
    is_tidy = figures["orphan_max_s"] <= ORPHAN_WITHIN and not figures["zombies"]
    return is_in_time and is_none_late and is_tidy and not figures["second_writers"]


async def _trouble(arena: Arena, seed: int, length: Length, census: Census) -> Figures:
    service = await arena.beside.enter_async_context(serviced(arena.deployment))
    striking = Striking(arena.deployment, service)
    async with census.taken(arena.deployment):
        await striking.run(seed, length)
        zombies = await census.lasting_zombies()
    # Below zero nobody was ever seen to write: then the census is blind, which is as bad.
    seen = {"second_writers": census.most_writers - 1, "orphan_max_s": rounded(census.abandoned.longest, 1)}
    return {**striking.figures(), **seen, "zombies": zombies}


class Striking:
    """Strikes one process after the other, and times each until it is overcome."""

    def __init__(self, deployment: Deployment, service: Service) -> None:
        self.kills: Counter[Victim] = Counter()
        self.halts = 0
        #: Those that fell before the one before was overcome.
        self.hurried = 0
        #: Owners that were killed while their browser was halted.
        self.browsers_halted = 0
        #: How busy the machine was at each strike.
        self.loads: list[float] = []
        #: The longest recovery, by who was struck.
        self.worst: dict[str, float] = {}
        self._deployment = deployment
        self._service = service
        # Apart: who was only halted goes on at once, and would make the kills look better than they are.
        self._after_kills = Recoveries(deployment, are_all_fresh)
        self._after_halts = Recoveries(deployment, are_all_fresh)
        self._clock = SystemClock()

    async def run(self, seed: int, length: Length) -> None:
        """Go on until it is enough, or until something is not overcome: nobody knows what more would tell."""
        began = monotonic()
        for strike, following in pairwise(strikes(seed)):
            await asyncio.sleep(strike.pause)
            since = await self._strike(strike)
            if following.is_hurried:
                continue
            if not await self._is_overcome(strike, since):
                return
            kills = self.kills.total()
            if length.is_reached(strikes=kills + self.halts, kills=kills, seconds=monotonic() - began):
                return

    def figures(self) -> Figures:
        return {
            "kills": self.kills.total(),
            "kills_by_victim": {victim: self.kills[victim] for victim in Victim},
            "halts": self.halts,
            "hurried": self.hurried,
            "browsers_halted": self.browsers_halted,
            **self._after_kills.figures(),
            "never_recovered": self._after_kills.never + self._after_halts.never,
            "recover_max_by_victim_s": self.worst,
            "load_mean": rounded(fmean(self.loads), 1),
            "cores": os.cpu_count(),
        }

    async def _strike(self, strike: Strike) -> datetime:
        """Strike as soon as there is somebody to hit; return since when all has to become well again."""
        self.loads.append(os.getloadavg()[0])
        if strike.is_browser_halted and (scraper := self._deployment.scraper()) is not None:
            self.browsers_halted += bool(await asyncio.to_thread(stop_descendants, scraper.pid))
        if not await hit(lambda: self._find(strike.victim), halt=strike.halt, timeout=VICTIM_WITHIN):
            raise UsageError(f"there was no {strike.victim} within {VICTIM_WITHIN:g} s: it did not come back")
        since = self._clock.now()
        self.hurried += strike.is_hurried
        if strike.halt:
            self.halts += 1
            return since
        self.kills[strike.victim] += 1
        if strike.victim is Victim.UP:
            await self._service.start_up()
        return since

    async def _is_overcome(self, strike: Strike, since: datetime) -> bool:
        recoveries = self._after_halts if strike.halt else self._after_kills
        recoveries.begin(since)
        await recoveries.all_done()
        if recoveries.never:
            return False
        taken, name = recoveries.seconds[-1], f"{strike.victim}_halted" if strike.halt else strike.victim.value
        self.worst[name] = max(self.worst.get(name, 0.0), round(taken, 2))
        say(f"{name}: overcome after {taken:.1f} s{', hurried' if strike.is_hurried else ''}")
        return True

    def _find(self, victim: Victim) -> Identity | None:
        pid = self._pid_of(victim)
        found = find_process(pid) if pid is not None else None
        return found.identity if found is not None else None

    def _pid_of(self, victim: Victim) -> int | None:
        match victim:
            case Victim.UP:
                return self._deployment.up_pid
            case Victim.BROWSER:
                scraper = self._deployment.scraper()
                below = tree(scraper.pid) if scraper is not None else []
                return next((each.pid for each in below if role_of(command_line(each.pid)) is Role.BROWSER), None)
            case _:
                child = self._deployment.process(victim)
                return child.pid if child is not None else None
