"""An engine: one Playwright driver and one Chromium, started and closed together.

Each Chromium has its own driver, so that a driver that dies takes only one browser with it.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import Struct
from playwright.async_api import Browser, BrowserContext, CDPSession, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from longstop.errors import BrowserLost
from longstop.exhaustion import exhausted_at_launch
from longstop.fetching.browser.browser_policy_and_stats import ANYWHERE, BrowserKind, Egress
from longstop.fetching.browser.chromium_path_and_arguments import launch_arguments
from longstop.fetching.browser.closing import (
    BROWSER_SECONDS,
    DRIVER_SECONDS,
    EXHAUSTION_ERRORS,
    CloseSteps,
    closes_within,
    kill_trees,
)
from longstop.fetching.browser.display import Display
from longstop.fetching.browser.error_and_response_mapping import map_playwright_error
from longstop.fetching.browser.recycle_and_hang_policy import Latencies
from longstop.model.scraper_report import Usage
from longstop.process.browser_registry_and_temp_files import Registry
from longstop.process.orphan_sweeps import profile_of, remove_profile
from longstop.process.processes import (
    MARK_VARIABLE,
    Identity,
    Process,
    browser_mark,
    command_line,
    list_processes,
    measure,
    process_tree,
    reap_session,
    with_mark,
)

START_SECONDS = 30.0
_DRIVER_ARGUMENT = "run-driver"
#: A closed port. With a proxy configured, a context without its own proxy can connect to nothing.
_UNREACHABLE_PROXY = "http://127.0.0.1:9"


class EnginePlan(Struct, frozen=True, kw_only=True):
    program: Path
    kind: BrowserKind
    is_process_per_site: bool = False
    #: Whether we start Chromium ourselves and connect to its debugging port.
    is_cdp: bool = False
    egress: Egress = ANYWHERE
    #: The environment of the browser; where it needs a display and has none, one is started.
    environment: Mapping[str, str] = {}


class Engine:
    """One generation of a source's browser."""

    def __init__(self, plan: EnginePlan, registry: Registry, generation: int, starting: asyncio.Lock) -> None:
        self.plan = plan
        #: Only one driver starts at a time, so that its process can be identified.
        self._starting = starting
        self.generation = generation
        self.version = ""
        #: The root process of the browser, and the driver; `None` until they are known.
        self.root: Identity | None = None
        self.driver: Identity | None = None
        self.responded_at = monotonic()
        self.latencies = Latencies()
        self.users = 0
        #: Consecutive time-outs of pages.
        self.timeouts = 0
        #: Pages opened since the start.
        self.pages = 0
        self._registry = registry
        self._mark = registry.new_mark()
        self._started_at = monotonic()
        self._profile = ""
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._cdp: CDPSession | None = None
        self._display: Display | None = None
        #: Chromium, if we started it ourselves.
        self._child: asyncio.subprocess.Process | None = None
        #: The resources of the whole process tree, as last measured.
        self.usage: Usage | None = None
        #: The drivers that ran before ours was started; `None` until that is known.
        self._earlier_drivers: Set[Identity] | None = None
        self._driver_search: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[tuple[str, int]] | None = None

    @classmethod
    async def start(
        cls,
        plan: EnginePlan,
        registry: Registry,
        generation: int,
        starting: asyncio.Lock,
        on_unclosed: Callable[["Engine"], None],
    ) -> "Engine":
        """Start driver and browser, or raise `BrowserLost` or `ResourcesExhausted` and leave nothing behind.

        An engine that can neither start nor close now is passed to `on_unclosed`, to be closed later.
        """
        engine = cls(plan, registry, generation, starting)
        try:
            async with asyncio.timeout(START_SECONDS):
                await engine._start()
        except BaseException as error:
            await engine._abort_start(on_unclosed)
            exhausted = exhausted_at_launch(error) if isinstance(error, Exception) else None
            if exhausted is not None:
                raise exhausted from None
            if isinstance(error, TimeoutError):
                raise BrowserLost(f"the browser did not start within {START_SECONDS:g} s") from None
            if isinstance(error, PlaywrightError):
                raise BrowserLost(f"the browser did not start: {map_playwright_error(error).reason}") from None
            if isinstance(error, OSError):
                raise BrowserLost(f"the browser did not start: {error.strerror}") from None
            raise
        return engine

    @property
    def age_seconds(self) -> float:
        return monotonic() - self._started_at

    @property
    def addresses(self) -> tuple[str, ...]:
        """The URLs of all open pages, pop-ups included, without the query, which may contain a secret."""
        contexts = self._browser.contexts if self._browser is not None else ()
        return tuple(page.url.partition("?")[0] for context in contexts for page in context.pages)

    @property
    def contexts(self) -> int:
        """The number of open contexts, without the default context of a CDP browser."""
        return max(0, len(self._browser.contexts) - self.plan.is_cdp) if self._browser is not None else 0

    @property
    def is_connected(self) -> bool:
        """Whether Playwright considers it connected. That may be wrong, hence `probe`."""
        return self._browser is not None and self._browser.is_connected()

    @property
    def child_pid(self) -> int | None:
        """The pid of a Chromium that we started ourselves, and that only we may wait for."""
        return self._child.pid if self._child is not None else None

    async def new_context(self, **options: Any) -> BrowserContext:
        if self._browser is None:
            raise BrowserLost("the browser is closed")
        return await self._browser.new_context(**options)

    async def probe(self, seconds: float) -> bool:
        """Return whether driver and browser respond in time."""
        if self._cdp is None:
            return False
        sent_at = monotonic()
        try:
            async with asyncio.timeout(seconds):
                await self._cdp.send("Browser.getVersion")
        except Exception:  # whatever a dead driver raises, there was no response
            return False
        self.responded_at = monotonic()
        self.latencies.add(self.responded_at - sent_at)
        return True

    def processes(self) -> list[Process]:
        """Return the processes of browser, driver and display."""
        roots = [root for root in (self.root, self.driver, self._display and self._display.identity) if root]
        processes = list_processes()
        found = [each for root in roots for each in process_tree(root, processes)]
        # The crash reporter has its own session and is found by its mark.
        return list({each.pid: each for each in (*found, *with_mark(self._mark, processes))}.values())

    def measure(self) -> list[Process]:
        """Measure and store the usage of the whole process tree; return its processes."""
        processes = self.processes()
        self.usage = measure(processes)
        return processes

    async def aclose(self) -> tuple[str, int]:
        """Close everything in any state; return how (`closed` or `killed`), and how many processes are left.

        If the machine is exhausted this raises, and the next call tries again.
        """
        if self._closing is None or _has_failed(self._closing):
            self._closing = asyncio.ensure_future(self._close())
        return await asyncio.shield(self._closing)

    async def _abort_start(self, on_unclosed: Callable[["Engine"], None]) -> None:
        try:
            await asyncio.shield(self.aclose())
        except BaseException as error:
            on_unclosed(self)
            if not isinstance(error, EXHAUSTION_ERRORS):
                raise

    async def _start(self) -> None:
        async with self._starting:
            self._earlier_drivers = {each.identity for each in await asyncio.to_thread(_drivers)}
            try:
                self._playwright = await async_playwright().start()
            finally:
                # Also after a cancelled start: a driver that is running by now must be found to be closed.
                self._driver_search = asyncio.ensure_future(asyncio.to_thread(self._find_driver, self._earlier_drivers))
                await asyncio.shield(self._driver_search)
        self._browser = await self._connect() if self.plan.is_cdp else await self._launch()
        if not await asyncio.to_thread(self._find_root):
            raise BrowserLost("the browser exited while it was starting")
        self.version = self._browser.version
        self._cdp = await self._browser.new_browser_cdp_session()

    async def _launch(self) -> Browser:
        assert self._playwright is not None  # noqa: S101 - it was started just before
        return await self._playwright.chromium.launch(
            executable_path=self.plan.program,
            headless=self.plan.kind is not BrowserKind.HEADED,
            args=self._arguments(),
            ignore_default_args=["--disable-popup-blocking"],
            env={**await self._environment()},
            proxy={"server": _UNREACHABLE_PROXY, "bypass": "<-loopback>"} if self.plan.egress.is_proxied else None,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=START_SECONDS * 1000,
        )

    async def _connect(self) -> Browser:
        """Start Chromium ourselves, and connect to its debugging port, which only this machine can reach."""
        assert self._playwright is not None  # noqa: S101 - it was started just before
        self._profile = tempfile.mkdtemp(prefix="longstop-profile-")
        headless = [] if self.plan.kind is BrowserKind.HEADED else ["--headless"]
        is_proxied = self.plan.egress.is_proxied
        proxy = [f"--proxy-server={_UNREACHABLE_PROXY}", "--proxy-bypass-list=<-loopback>"] if is_proxied else []
        self._child = await asyncio.create_subprocess_exec(
            self.plan.program,
            *(*self._arguments(), *headless, *proxy, "--remote-debugging-port=0", "--no-default-browser-check"),
            *(f"--user-data-dir={self._profile}", "about:blank"),
            env=await self._environment(),
            start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        port = await self._debugging_port(Path(self._profile) / "DevToolsActivePort")
        return await self._playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")

    async def _debugging_port(self, file: Path) -> int:
        """Wait for the debugging port of our own Chromium, and register it as soon as its mark is visible."""
        while self._child is not None and self._child.returncode is None:
            if self.root is None:
                await asyncio.to_thread(self._find_root)
            port = await asyncio.to_thread(_port_in, file)
            if port is not None:
                return port
            await asyncio.sleep(0.02)
        raise BrowserLost("the browser exited while it was starting")

    def _arguments(self) -> list[str]:
        plan, hosts = self.plan, self.plan.egress.hosts
        return launch_arguments(is_process_per_site=plan.is_process_per_site, reachable=hosts)

    async def _environment(self) -> dict[str, str]:
        environment = {**self.plan.environment, MARK_VARIABLE: self._mark}
        if self.plan.kind is BrowserKind.HEADED and not environment.get("DISPLAY"):
            self._display = await Display.start(self._mark)
            self._registry.add(self._mark, self._display.identity, "Xvfb")
            environment["DISPLAY"] = self._display.name
        return environment

    def _find_driver(self, before: Set[Identity]) -> None:
        """Find the driver that did not run before, and register it."""
        known = before | {entry.identity for entry in self._registry}
        started = next((each for each in _drivers() if each.identity not in known), None)
        if started is not None:
            self.driver = started.identity
            self._registry.add(self._mark, started.identity, started.name)

    def _find_root(self) -> bool:
        """Find the browser's root process by its mark, and register it; return whether it was found.

        A process that was started a moment ago does not show its environment yet.
        """
        display = self._display.identity if self._display else None
        for each in list_processes():
            if browser_mark(each.pid) == self._mark and each.identity != display and each.session == each.pid:
                self.root = each.identity
                self._profile = profile_of(each.pid) or self._profile
                self._registry.add(self._mark, each.identity, each.name, self._profile)
                return True
        return False

    async def _close(self) -> tuple[str, int]:
        steps, how = CloseSteps(), "closed"
        await steps.run(self._find_late_processes(), None)
        if self._browser is not None and not await closes_within(self._browser.close(), BROWSER_SECONDS):
            how = "killed"
        if self.root is not None:  # a Chromium that we started ourselves goes on when it is closed
            await steps.run(kill_trees((self.root,)), 1)
        if self._playwright is not None and not await closes_within(self._playwright.stop(), DRIVER_SECONDS):
            how = "killed"
        if self._display is not None:
            await closes_within(self._display.aclose(), DRIVER_SECONDS)
        if self._child is not None:
            await closes_within(self._child.wait(), DRIVER_SECONDS)
        left = await steps.run(self._kill_all(), 1)
        self._browser = self._playwright = self._cdp = None
        if steps.error is not None:
            raise steps.error
        await asyncio.to_thread(self._clean_up, left)
        return how, left

    async def _find_late_processes(self) -> None:
        """Find processes whose start was cancelled, or that could not be searched for."""
        search = (self._driver_search,) if self._driver_search is not None else ()
        failures = await asyncio.gather(*search, return_exceptions=True)
        if self.root is None:
            await asyncio.to_thread(self._find_root)
        if self.driver is None and self._earlier_drivers is not None and any(failures):
            # Under the lock: another driver that is starting is not registered yet, and would be taken for ours.
            async with asyncio.timeout(DRIVER_SECONDS), self._starting:
                await asyncio.to_thread(self._find_driver, self._earlier_drivers)

    async def _kill_all(self) -> int:
        """Kill what is left of driver and browser; return how many processes remain."""
        roots = [root for root in (self.root, self.driver) if root]
        return await kill_trees([*roots, *(each.identity for each in await asyncio.to_thread(with_mark, self._mark))])

    def _clean_up(self, left: int) -> None:
        """Reap dead processes, and remove the browser's files and registry entries."""
        if self.root is not None:
            reap_session(self.root, () if self._child is None else (self._child.pid,))
        remove_profile(self._profile)
        if left:
            self._registry.disown(self._mark)
        else:
            self._registry.forget(self._mark)


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _port_in(file: Path) -> int | None:
    """Return the port that a starting browser has written to a file; `None` while it has not."""
    lines = file.read_text(encoding="ascii").split() if file.exists() else []
    return int(lines[0]) if lines else None


def _drivers() -> list[Process]:
    """Return the drivers among our child processes."""
    children = (each for each in list_processes() if each.parent == os.getpid())
    return [each for each in children if _DRIVER_ARGUMENT in command_line(each.pid)]
