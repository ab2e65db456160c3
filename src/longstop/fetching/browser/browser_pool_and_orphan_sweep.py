"""The browsers of a node: one per source, their periodic checks, and the sweep for orphaned processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from longstop.errors import BrowserLost
from longstop.fetching.browser.browser_generations import SourceBrowser, SourceBrowserPolicy
from longstop.fetching.browser.browser_policy_and_stats import ANYWHERE, BrowserKind, BrowserStats, Egress
from longstop.fetching.browser.chromium_path_and_arguments import PROGRAMS, find_chromium
from longstop.fetching.browser.proxy_budget import ProxyMeter
from longstop.process.browser_registry_and_temp_files import Registry, Scratch
from longstop.process.orphan_sweeps import sweep_browsers
from longstop.process.processes import Process, become_subreaper, reap
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.browsers import BrowserUnsandboxed
from longstop.telemetry.events.processes import OrphanKilled

if TYPE_CHECKING:
    from longstop.fetching.browser.engine import Engine

SWEEP_SECONDS = 1800.0
#: A browser that is starting has files, but is not registered yet.
STARTING_SECONDS = 60.0
#: The variables of our environment that a browser gets: none of them can be a secret.
_PASSED_ON = ("DISPLAY", "HOME", "LANG", "PATH", "TMPDIR", "XDG_RUNTIME_DIR")


class PoolPlan(Struct, frozen=True, kw_only=True):
    """What all browsers of a node share."""

    #: The file that lists our processes, in the data directory.
    registry: Path
    node: str
    #: The Chromium to use; if empty, an installed one is searched for.
    executable: str = ""
    is_cdp: bool = False
    is_process_per_site: bool = False
    browser: SourceBrowserPolicy = SourceBrowserPolicy()
    sweep_seconds: float = SWEEP_SECONDS
    #: The directory that only browsers use for temporary files; `None` for the system's default.
    scratch: Path | None = None
    #: Our environment.
    environment: Mapping[str, str] = {}


class BrowserPool:
    def __init__(self, plan: PoolPlan, bus: Bus, meter: ProxyMeter | None = None) -> None:
        self._plan = plan
        #: Counts the bytes of all sources through the proxy; `None` without a proxy.
        self.meter = meter
        self._bus = bus
        self._registry = Registry(plan.registry, plan.node)
        self._scratch = Scratch(plan.scratch, monotonic) if plan.scratch else None
        #: By source.
        self.browsers: dict[str, SourceBrowser] = {}
        self._starting = asyncio.Lock()
        #: Whether a browser may be running.
        self._has_started = False
        self._programs = {name for names in PROGRAMS.values() for name in names} | {"chrome", "chrome_crashpad_handler"}
        become_subreaper()

    def browser(self, source: str, kind: BrowserKind, egress: Egress = ANYWHERE) -> SourceBrowser:
        """Return the browser of a source; the first request starts it. One with other hosts or kind replaces it."""
        browser = self.browsers.get(source)
        if browser is None:
            browser = self.browsers[source] = SourceBrowser(
                source, kind, egress, start=self._start_engine, policy=self._plan.browser, bus=self._bus
            )
        elif (browser.kind, browser.egress) != (kind, egress):
            reason = "hosts" if browser.kind is kind else "kind"
            browser.kind, browser.egress = kind, egress
            browser.recycle(reason)
        return browser

    @property
    def engines(self) -> list[Engine]:
        """All engines, replaced ones that are not closed yet included."""
        return [engine for browser in self.browsers.values() for engine in browser.engines]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sweep_periodically())
            group.create_task(self._check_periodically())

    async def sweep(self) -> list[Process]:
        """Kill what killed scrapers of this node have left behind, and reap dead processes."""
        orphans = await asyncio.to_thread(sweep_browsers, self._registry)
        for orphan in orphans:
            self._bus.emit(OrphanKilled(pid=orphan.pid, program=orphan.name, rss_bytes=orphan.rss_bytes or None))
        await self.reap()
        await self._clear_scratch()
        return orphans

    async def check(self) -> bool:
        """Check every browser once; return whether all respond."""
        responses = await asyncio.gather(*(self._check(browser) for browser in self.browsers.values()))
        await self.reap()
        return all(responses)

    async def reap(self) -> int:
        """Reap dead browser processes that we adopted; return how many there were."""
        own = [engine.child_pid for engine in self.engines if engine.child_pid is not None]
        return await asyncio.to_thread(reap, self._programs, own)

    def recycle(self, reason: str, source: str | None = None) -> None:
        """Replace the browser of a source, or of all; each old one closes after its last request."""
        for browser in self.browsers.values():
            if source in (None, browser.source):
                browser.recycle(reason)

    def stats(self) -> tuple[BrowserStats, ...]:
        """Return the pages and resources of each browser as last measured, which costs nothing."""
        return tuple(each for browser in self.browsers.values() for each in browser.stats())

    async def aclose(self) -> None:
        await asyncio.gather(*(browser.aclose() for browser in self.browsers.values()))
        self.browsers.clear()
        try:
            await self.reap()
            self._has_started = False
            await self._clear_scratch()
        except (OSError, RuntimeError) as error:  # the next start sweeps
            self._bus.emit(failure_of(error, "closing the browsers"))
        if self.meter is not None:
            self.meter.flush()

    async def _start_engine(self, browser: SourceBrowser) -> Engine:
        # Imported by the first start of a browser: a scraper must be back within a second after a crash.
        from longstop.fetching.browser.engine import Engine, EnginePlan

        self._has_started = True
        kind, environment = browser.kind, self._plan.environment
        program = await asyncio.to_thread(find_chromium, kind, self._plan.executable, environment)
        if program is None:
            raise BrowserLost(f"no Chromium of kind {kind} is installed; run longstop doctor for instructions")
        if os.geteuid() == 0:
            self._bus.emit(BrowserUnsandboxed(source=browser.source))
        plan = EnginePlan(
            program=program,
            kind=kind,
            is_process_per_site=self._plan.is_process_per_site,
            is_cdp=self._plan.is_cdp,
            egress=browser.egress,
            environment={name: environment[name] for name in _PASSED_ON if name in environment},
        )
        return await Engine.start(plan, self._registry, browser.generation, self._starting, browser.adopt_unclosed)

    async def _clear_scratch(self) -> None:
        """Remove temporary files that are older than every browser; without browsers, all."""
        if self._scratch is None:
            return
        ages = [engine.age_seconds for engine in self.engines]
        older_than = max(ages, default=0.0) + STARTING_SECONDS if self._has_started else 0.0
        await asyncio.to_thread(self._scratch.clear, older_than)

    async def _check(self, browser: SourceBrowser) -> bool:
        try:
            return await browser.check()
        except Exception as error:
            self._bus.emit(failure_of(error, f"check of the browser of {browser.source}"))
            return True

    async def _check_periodically(self) -> None:
        hanging = self._plan.browser.hanging
        seconds = hanging.check_seconds
        while True:
            await asyncio.sleep(seconds)
            try:
                seconds = hanging.check_seconds if await self.check() else hanging.recheck_seconds
            except (OSError, RuntimeError) as error:
                self._bus.emit(failure_of(error, "check of the browsers"))

    async def _sweep_periodically(self) -> None:
        while True:
            try:
                await self.sweep()
            except Exception as error:
                self._bus.emit(failure_of(error, "sweep for orphaned browsers"))
            await asyncio.sleep(self._plan.sweep_seconds)
