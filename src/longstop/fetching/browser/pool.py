"""The pool: a bulkhead for each source, care for all of them, and the sweep for what others left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from msgspec import Struct

from longstop.errors import BrowserLost
from longstop.fetching.browser.base import ANYWHERE, BrowserCensus, BrowserKind, Egress
from longstop.fetching.browser.bulkhead import Bulkhead, BulkheadPolicy
from longstop.fetching.browser.chromium import PROGRAMS, find_chromium
from longstop.fetching.browser.events import BrowserUnsandboxed, OrphanKilled
from longstop.fetching.browser.meter import ProxyMeter
from longstop.fetching.browser.registry import Registry
from longstop.fetching.browser.scratch import clear_scratch
from longstop.process.orphans import Orphan, sweep_browsers
from longstop.process.processes import become_subreaper, reap
from longstop.telemetry.bus import Bus
from longstop.telemetry.exhaustion import failure_of

if TYPE_CHECKING:
    from longstop.fetching.browser.engine import Engine

SWEEP_SECONDS = 1800.0
#: A browser that is being started is in no list yet, and has files.
STARTING_SECONDS = 60.0
#: What a browser is given of our environment: nothing that could be a secret.
_PASSED_ON = ("HOME", "LANG", "PATH", "TMPDIR", "XDG_RUNTIME_DIR")


class PoolPlan(Struct, frozen=True, kw_only=True):
    """What all browsers of a node share."""

    #: The list of our processes, in the data directory.
    registry: Path
    node: str
    #: A Chromium to use in place of those that are found; empty for none.
    executable: str = ""
    is_cdp: bool = False
    is_process_per_site: bool = False
    bulkhead: BulkheadPolicy = BulkheadPolicy()
    sweep_seconds: float = SWEEP_SECONDS
    #: Where browsers put their temporary files, and nobody else; `None` leaves them where the machine puts them.
    scratch: Path | None = None
    #: Our environment, as it was read at the edge.
    environment: Mapping[str, str] = {}


class BrowserPool:
    """All browsers of a node."""

    def __init__(self, plan: PoolPlan, bus: Bus, meter: ProxyMeter | None = None) -> None:
        self._plan = plan
        #: Counts what all sources send through the proxy; `None` where there is none.
        self.meter = meter
        self._bus = bus
        self._registry = Registry(plan.registry, plan.node)
        self._bulkheads: dict[str, Bulkhead] = {}
        self._kinds: dict[str, BrowserKind] = {}
        self._starting = asyncio.Lock()
        #: Whether there may be a browser of ours.
        self._has_started = False
        self._programs = {name for names in PROGRAMS.values() for name in names} | {"chrome", "chrome_crashpad_handler"}
        become_subreaper()

    def bulkhead(self, source: str, kind: BrowserKind, egress: Egress = ANYWHERE) -> Bulkhead:
        """Return the bulkhead of a source; its browser is started by the first who needs it."""
        before, self._kinds[source] = self._kinds.get(source, kind), kind
        if source not in self._bulkheads:

            async def start(generation: int) -> Engine:
                return await self._engine(source, self._kinds[source], egress, generation)

            self._bulkheads[source] = Bulkhead(source, start=start, policy=self._plan.bulkhead, bus=self._bus)
        elif before is not kind:
            self._bulkheads[source].recycle("kind")
        return self._bulkheads[source]

    async def run(self) -> None:
        """Sweep, and look after the browsers until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sweeping())
            group.create_task(self._checking())

    async def sweep(self) -> list[Orphan]:
        """End what scrapers of this node have left behind, and wait for the dead."""
        orphans = await asyncio.to_thread(sweep_browsers, self._registry)
        for orphan in orphans:
            self._bus.emit(OrphanKilled(pid=orphan.pid, program=orphan.program, rss_bytes=orphan.rss_bytes))
        await self.reap()
        await self._clear_scratch()
        return orphans

    async def check(self) -> bool:
        """Look after every browser once; return whether all of them answer."""
        answers = await asyncio.gather(*(self._check(bulkhead) for bulkhead in self._bulkheads.values()))
        await self.reap()
        return all(answers)

    async def reap(self) -> int:
        """Wait for browser processes that we adopted and that are dead; return how many there were."""
        engines = [engine for bulkhead in self._bulkheads.values() for engine in bulkhead.engines]
        own = [engine.own_child for engine in engines if engine.own_child is not None]
        return await asyncio.to_thread(reap, self._programs, own)

    def recycle(self, reason: str, source: str | None = None) -> None:
        """Replace the browser of a source, or of all; each old one ends with its last user."""
        for bulkhead in self._bulkheads.values():
            if source in (None, bulkhead.source):
                bulkhead.recycle(reason)

    def census(self) -> tuple[BrowserCensus, ...]:
        """Tell who lives in each browser and what it held when it was last looked after, which costs nothing."""
        return tuple(each for bulkhead in self._bulkheads.values() for each in bulkhead.census())

    def report(self) -> list[BrowserCensus]:
        """Measure every browser now. This takes some milliseconds for each, and belongs off the loop."""
        return [report for bulkhead in self._bulkheads.values() for report in bulkhead.report()]

    async def aclose(self) -> None:
        await asyncio.gather(*(bulkhead.aclose() for bulkhead in self._bulkheads.values()))
        self._bulkheads.clear()
        try:
            await self.reap()
            self._has_started = False
            await self._clear_scratch()
        except (OSError, RuntimeError) as error:  # the next life sweeps
            self._bus.emit(failure_of(error, "end of the browsers"))
        if self.meter is not None:
            self.meter.flush()

    async def _engine(self, source: str, kind: BrowserKind, egress: Egress, generation: int) -> Engine:
        # Loaded by the first who needs a browser: a scraper must be back within a second after a crash.
        from longstop.fetching.browser.engine import Engine, EnginePlan

        self._has_started = True
        program = await asyncio.to_thread(find_chromium, kind, self._plan.executable, self._plan.environment)
        if program is None:
            raise BrowserLost(f"there is no Chromium for {kind}: longstop doctor says how to get one")
        is_root = os.geteuid() == 0
        if is_root:
            self._bus.emit(BrowserUnsandboxed(source=source))
        environment = self._plan.environment
        plan = EnginePlan(
            program=program,
            kind=kind,
            is_root=is_root,
            is_process_per_site=self._plan.is_process_per_site,
            is_cdp=self._plan.is_cdp,
            egress=egress,
            display=environment.get("DISPLAY", ""),
            environment={name: environment[name] for name in _PASSED_ON if name in environment},
        )
        on_unclosed = self._bulkheads[source].take_over
        return await Engine.start(plan, self._registry, generation, self._starting, on_unclosed)

    async def _clear_scratch(self) -> None:
        """Take away the temporary files that are older than every browser; without browsers, all."""
        if self._plan.scratch is None:
            return
        ages = [engine.age_seconds for bulkhead in self._bulkheads.values() for engine in bulkhead.engines]
        older_than = max(ages, default=0.0) + STARTING_SECONDS if self._has_started else 0.0
        await asyncio.to_thread(clear_scratch, self._plan.scratch, time(), older_than)

    async def _check(self, bulkhead: Bulkhead) -> bool:
        try:
            return await bulkhead.check()
        except Exception as error:
            self._bus.emit(failure_of(error, f"care for the browser of {bulkhead.source}"))
            return True

    async def _checking(self) -> None:
        hanging = self._plan.bulkhead.hanging
        seconds = hanging.check_seconds
        while True:
            await asyncio.sleep(seconds)
            try:
                seconds = hanging.check_seconds if await self.check() else hanging.recheck_seconds
            except (OSError, RuntimeError) as error:
                self._bus.emit(failure_of(error, "check of the browsers"))

    async def _sweeping(self) -> None:
        while True:
            try:
                await self.sweep()
            except Exception as error:
                self._bus.emit(failure_of(error, "sweep for orphaned browsers"))
            await asyncio.sleep(self._plan.sweep_seconds)
