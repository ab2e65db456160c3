"""`processes`: scraper, API, supervisor and browser are killed in the middle of play, and a child is halted.

A supervisor that was killed is started again at once, as a service manager would. A strike is overcome when the API
shows of every match in play a look that is younger than the strike, or than the end of a halt. The next one falls a
moment later, by the seed.
"""

import asyncio
import os
import signal
from collections import Counter
from contextlib import suppress
from statistics import fmean
from time import monotonic

import psutil
from msgspec import Struct

from bench.chaos.arena import Arena, Figures, Plan, in_arena, is_whole
from bench.chaos.blows import Role, role_of
from bench.chaos.processes_census import Census
from bench.chaos.processes_service import Service, serviced
from bench.chaos.processes_strikes import ROUND, Strike, Victim, strikes
from bench.chaos.recovery import Recoveries, are_all_fresh
from bench.frame import Report, rounded, say
from bench.tree import tree
from longstop.errors import UsageError
from longstop.fetching.browser.base import BrowserKind, Mode
from longstop.fetching.browser.processes import arguments_of
from longstop.trial.stage import Stage

MATCHES = 6
#: The matches have to last: so many seconds of theirs pass at most, whatever the run's length.
WORLD_SECONDS = 1500.0
FASTEST = 20.0
#: What one strike takes, about, when nothing else tells how long a run will be.
SECONDS_PER_STRIKE = 8.0
RECOVER_WITHIN = 10.0
#: A victim between two lives is waited for, so that every strike hits somebody.
VICTIM_WITHIN = 20.0
LOOK_EVERY = 0.1

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
    """Return whether every strike was overcome in time, by one writer, and nobody dead lies about."""
    p95 = figures["recover_p95_s"]
    is_in_time = p95 is not None and p95 <= RECOVER_WITHIN and not figures["never_recovered"]
    return is_in_time and not (figures["second_writers"] or figures["zombies"])


async def _trouble(arena: Arena, seed: int, length: Length, census: Census) -> Figures:
    service = await arena.beside.enter_async_context(serviced(arena.stage))
    striking = Striking(arena.stage, service)
    async with census.taken(arena.stage.data):
        await striking.run(seed, length)
        zombies = await census.lasting_zombies()
    # Below zero nobody was ever seen to write: then the census is blind, which is as bad.
    return {**striking.figures(), "second_writers": census.most_writers - 1, "zombies": zombies}


class Striking:
    """Strikes one process after the other, and times each until it is overcome."""

    def __init__(self, stage: Stage, service: Service) -> None:
        self.kills: Counter[Victim] = Counter()
        self.halts = 0
        #: How busy the machine was at each strike.
        self.loads: list[float] = []
        #: The longest recovery, by who was struck.
        self.worst: dict[str, float] = {}
        self._stage = stage
        self._service = service
        self._recoveries = Recoveries(stage, are_all_fresh)

    async def run(self, seed: int, length: Length) -> None:
        """Go on until it is enough, or until something is not overcome: nobody knows what more would tell."""
        began = monotonic()
        for strike in strikes(seed):
            await asyncio.sleep(strike.pause)
            await self._strike(strike)
            await self._recoveries.all_done()
            if self._recoveries.never:
                return
            self._note(strike)
            done, kills = self._recoveries.count, self.kills.total()
            if length.is_reached(strikes=done, kills=kills, seconds=monotonic() - began):
                return

    def figures(self) -> Figures:
        return {
            "kills": self.kills.total(),
            "kills_by_victim": {victim: self.kills[victim] for victim in Victim},
            "halts": self.halts,
            **self._recoveries.figures(),
            "recover_max_by_victim_s": self.worst,
            "load_mean": rounded(fmean(self.loads), 1),
            "cores": os.cpu_count(),
        }

    async def _strike(self, strike: Strike) -> None:
        victim = await self._find(strike.victim)
        self.loads.append(os.getloadavg()[0])
        if strike.halt:
            await _halt(victim, strike.halt)
            self.halts += 1
            self._recoveries.begin()
            return
        with suppress(psutil.NoSuchProcess):
            victim.kill()
        self._recoveries.begin()
        self.kills[strike.victim] += 1
        if strike.victim is Victim.UP:
            await self._service.start_up()

    def _note(self, strike: Strike) -> None:
        taken, name = self._recoveries.seconds[-1], f"{strike.victim}_halted" if strike.halt else strike.victim.value
        self.worst[name] = max(self.worst.get(name, 0.0), round(taken, 2))
        say(f"{name}: overcome after {taken:.1f} s")

    async def _find(self, victim: Victim) -> psutil.Process:
        deadline = monotonic() + VICTIM_WITHIN
        while monotonic() < deadline:
            with suppress(psutil.NoSuchProcess):
                if (found := await asyncio.to_thread(self._look_for, victim)) is not None:
                    return found
            await asyncio.sleep(LOOK_EVERY)
        raise UsageError(f"there was no {victim} within {VICTIM_WITHIN:g} s: it did not come back")

    def _look_for(self, victim: Victim) -> psutil.Process | None:
        match victim:
            case Victim.UP:
                return psutil.Process(self._stage.up_pid)
            case Victim.BROWSER:
                scraper = self._stage.scraper()
                below = tree(scraper.pid) if scraper is not None else []
                heads = (each.pid for each in below if role_of(arguments_of(each.pid)) is Role.BROWSER)
                return next(map(psutil.Process, heads), None)
            case _:
                return self._stage.process(victim)


async def _halt(process: psutil.Process, seconds: float) -> None:
    """Let a process stand still for a while; whoever ends it meanwhile has noticed."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        process.send_signal(signal.SIGCONT)
