"""An engine: one Playwright driver and one Chromium, begun together and ended together.

Each has a driver of its own, so that a driver that dies takes one browser along and no other.
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
from longstop.fetching.browser.base import ANYWHERE, BrowserKind, Egress, Usage
from longstop.fetching.browser.chromium import launch_arguments
from longstop.fetching.browser.closing import BROWSER_SECONDS, DRIVER_SECONDS, LACKING, Ladder, end_family, gone, went
from longstop.fetching.browser.display import Display
from longstop.fetching.browser.foreign import translated
from longstop.fetching.browser.recycling import Latencies, Wear
from longstop.fetching.browser.registry import Registry
from longstop.process.orphans import profile_of, remove_profile
from longstop.process.processes import (
    MARK_VARIABLE,
    Identity,
    Process,
    browser_mark,
    command_line,
    find_process,
    kill,
    list_processes,
    measure,
    process_tree,
    reap_session,
    with_mark,
)

START_SECONDS = 30.0
_DRIVER_WORD = "run-driver"
#: Where nobody listens: what has no proxy of its own, while proxies are set, goes nowhere.
_NOWHERE = "http://127.0.0.1:9"


class EnginePlan(Struct, frozen=True, kw_only=True):
    """How an engine is started."""

    program: Path
    kind: BrowserKind
    is_root: bool
    is_process_per_site: bool = False
    #: Whether we start Chromium ourselves and talk to it through its debugging port.
    is_cdp: bool = False
    egress: Egress = ANYWHERE
    #: The display to use; empty starts one where it is needed.
    display: str = ""
    #: What the browser sees of our environment.
    environment: Mapping[str, str] = {}


class Engine:
    """One generation of a source's browser."""

    def __init__(self, plan: EnginePlan, registry: Registry, generation: int, starting: asyncio.Lock) -> None:
        self.plan = plan
        #: One driver at a time is started, so that each one's process is known from the others'.
        self._starting = starting
        self.generation = generation
        self.version = ""
        #: The first process of the browser, and the driver's; `None` until they are known.
        self.head: Identity | None = None
        self.driver: Identity | None = None
        self.answered_at = monotonic()
        self.latencies = Latencies()
        self.users = 0
        #: Answers in a row that did not come in time.
        self.timeouts = 0
        self.pages = 0
        self.contexts = 0
        self._registry = registry
        self._mark = registry.new_mark()
        self._began = monotonic()
        self._profile = ""
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._cdp: CDPSession | None = None
        self._display: Display | None = None
        self._own: asyncio.subprocess.Process | None = None
        self._usage: Usage | None = None
        #: The drivers that were there before ours was started; `None` until that is known.
        self._before: Set[Identity] | None = None
        self._finding: asyncio.Future[None] | None = None
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
        """Start driver and browser, or raise `BrowserLost` or `ResourcesExhausted` and leave nothing.

        One that can neither be started nor closed now is handed over, to be closed later.
        """
        engine = cls(plan, registry, generation, starting)
        try:
            async with asyncio.timeout(START_SECONDS):
                await engine._start()
        except BaseException as error:
            await engine._give_up(on_unclosed)
            lack = exhausted_at_launch(error) if isinstance(error, Exception) else None
            if lack is not None:
                raise lack from None
            if isinstance(error, TimeoutError):
                raise BrowserLost(f"the browser did not start within {START_SECONDS:g} s") from None
            if isinstance(error, PlaywrightError):
                raise BrowserLost(f"the browser does not start: {translated(error).reason}") from None
            if isinstance(error, OSError):
                raise BrowserLost(f"the browser does not start: {error.strerror}") from None
            raise
        return engine

    def served(self) -> None:
        """Count a page."""
        self.pages += 1

    @property
    def age_seconds(self) -> float:
        return monotonic() - self._began

    @property
    def wear(self) -> Wear:
        latencies = self.latencies
        return Wear(
            pages=self.pages,
            age_seconds=self.age_seconds,
            usage=self._usage,
            first_latency=latencies.first,
            last_latency=latencies.last,
            timeouts=self.timeouts,
        )

    @property
    def usage(self) -> Usage | None:
        """What the whole tree held when it was measured last."""
        return self._usage

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of all open pages, ours or not, without what may be a secret in them."""
        contexts = self._browser.contexts if self._browser is not None else ()
        return tuple(page.url.partition("?")[0] for context in contexts for page in context.pages)

    @property
    def is_connected(self) -> bool:
        """Whether Playwright thinks so; it may be wrong, hence `probe`."""
        return self._browser is not None and self._browser.is_connected()

    @property
    def own_child(self) -> int | None:
        """The pid of a browser that we started ourselves, and wait for ourselves."""
        return self._own.pid if self._own is not None else None

    async def new_context(self, **options: Any) -> BrowserContext:
        if self._browser is None:
            raise BrowserLost("the browser is closed")
        context = await self._browser.new_context(**options)
        self.contexts += 1
        context.on("close", lambda _: self._closed_one())
        return context

    async def probe(self, seconds: float) -> bool:
        """Return whether a question goes through driver and browser and back."""
        if self._cdp is None:
            return False
        asked_at = monotonic()
        try:
            async with asyncio.timeout(seconds):
                await self._cdp.send("Browser.getVersion")
        except Exception:  # whatever a dead driver raises, it did not answer
            return False
        self.answered_at = monotonic()
        self.latencies.add(self.answered_at - asked_at)
        return True

    def processes(self) -> list[Process]:
        """Return the browser's processes, the driver and the display."""
        heads = [head for head in (self.head, self.driver, self._display and self._display.identity) if head]
        people = list_processes()
        found = [each for head in heads for each in _members(head, self.driver, people)]
        # The crash reporter leads a session of its own, and is ours by its mark.
        return list({each.pid: each for each in (*found, *with_mark(self._mark, people))}.values())

    def measure(self) -> list[Process]:
        """Measure the whole tree, and remember it; return its processes."""
        people = self.processes()
        self._usage = measure(people)
        return people

    def end(self, process: Process) -> bool:
        return kill(process.identity)

    async def aclose(self) -> tuple[str, int]:
        """End everything, whatever state it is in; return how, and how many processes are left.

        What this machine has nothing left for is tried again by the next call.
        """
        if self._closing is None or _has_failed(self._closing):
            self._closing = asyncio.ensure_future(self._close())
        return await asyncio.shield(self._closing)

    async def _give_up(self, on_unclosed: Callable[["Engine"], None]) -> None:
        try:
            await asyncio.shield(self.aclose())
        except BaseException as error:
            on_unclosed(self)
            if not isinstance(error, LACKING):
                raise

    async def _start(self) -> None:
        async with self._starting:
            self._before = {each.identity for each in await asyncio.to_thread(_drivers)}
            try:
                self._playwright = await async_playwright().start()
            finally:
                # A driver that was started while its start is given up is looked for to the end, and then closed.
                self._finding = asyncio.ensure_future(asyncio.to_thread(self._find_driver, self._before))
                await asyncio.shield(self._finding)
        self._browser = await self._connected() if self.plan.is_cdp else await self._launched()
        if not await asyncio.to_thread(self._find_head):
            raise BrowserLost("the browser ended at its start")
        self.version = self._browser.version
        self._cdp = await self._browser.new_browser_cdp_session()

    async def _launched(self) -> Browser:
        assert self._playwright is not None  # noqa: S101 - it was started just before
        return await self._playwright.chromium.launch(
            executable_path=self.plan.program,
            headless=self.plan.kind is not BrowserKind.HEADED,
            args=self._arguments(),
            ignore_default_args=["--disable-popup-blocking"],
            env={**await self._environment()},
            proxy={"server": _NOWHERE, "bypass": "<-loopback>"} if self.plan.egress.is_proxied else None,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=START_SECONDS * 1000,
        )

    async def _connected(self) -> Browser:
        """Start Chromium ourselves, and talk to it through a port that only this machine reaches."""
        assert self._playwright is not None  # noqa: S101 - it was started just before
        self._profile = tempfile.mkdtemp(prefix="longstop-profile-")
        headless = [] if self.plan.kind is BrowserKind.HEADED else ["--headless"]
        is_proxied = self.plan.egress.is_proxied
        nowhere = [f"--proxy-server={_NOWHERE}", "--proxy-bypass-list=<-loopback>"] if is_proxied else []
        self._own = await asyncio.create_subprocess_exec(
            self.plan.program,
            *(*self._arguments(), *headless, *nowhere, "--remote-debugging-port=0", "--no-default-browser-check"),
            *(f"--user-data-dir={self._profile}", "about:blank"),
            env=await self._environment(),
            start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        port = await self._port(Path(self._profile) / "DevToolsActivePort")
        return await self._playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")

    async def _port(self, file: Path) -> int:
        """Wait for the port of our own Chromium; it is put on the list as soon as it shows its mark."""
        while self._own is not None and self._own.returncode is None:
            if self.head is None:
                await asyncio.to_thread(self._find_head)
            port = await asyncio.to_thread(_port_in, file)
            if port is not None:
                return port
            await asyncio.sleep(0.02)
        raise BrowserLost("the browser ended at its start")

    def _arguments(self) -> list[str]:
        plan = self.plan
        arguments = launch_arguments(
            is_root=plan.is_root, is_process_per_site=plan.is_process_per_site, reachable=plan.egress.reachable
        )
        return list(arguments)

    async def _environment(self) -> dict[str, str]:
        environment = {**self.plan.environment, MARK_VARIABLE: self._mark}
        if self.plan.kind is BrowserKind.HEADED:
            environment["DISPLAY"] = self.plan.display or await self._own_display()
        return environment

    async def _own_display(self) -> str:
        self._display = await Display.start(self._mark)
        self._registry.add(self._mark, self._display.identity, "Xvfb")
        return self._display.name

    def _find_driver(self, before: Set[Identity]) -> None:
        """Find the driver that was not there before, and put it on the list."""
        known = before | {entry.identity for entry in self._registry}
        started = next((each for each in _drivers() if each.identity not in known), None)
        if started is not None:
            self.driver = started.identity
            self._registry.add(self._mark, started.identity, started.name)

    def _find_head(self) -> bool:
        """Find the browser's first process by its mark, and put it on the list; return whether it is there.

        A process that was started a moment ago shows no environment yet.
        """
        display = self._display.identity if self._display else None
        for each in list_processes():
            if browser_mark(each.pid) == self._mark and each.identity != display and each.session == each.pid:
                self.head = each.identity
                self._profile = profile_of(each.pid) or self._profile
                self._registry.add(self._mark, each.identity, each.name, self._profile)
                return True
        return False

    def _closed_one(self) -> None:
        self.contexts -= 1

    async def _close(self) -> tuple[str, int]:
        ladder, how = Ladder(), "closed"
        await ladder.climb(self._find_late(), None)
        if self._browser is not None and not await went(self._browser.close(), BROWSER_SECONDS):
            how = "killed"
        if self.head is not None and (
            self.plan.is_cdp or how == "killed" or not await ladder.climb(gone(self.head, 0.5), otherwise=False)
        ):
            how = "closed" if self.plan.is_cdp and how == "closed" else "killed"
            await ladder.climb(end_family((self.head,)), 1)
        if self._playwright is not None and not await went(self._playwright.stop(), DRIVER_SECONDS):
            how = "killed"
        if self._display is not None:
            await went(self._display.aclose(), DRIVER_SECONDS)
        if self._own is not None:
            await went(self._own.wait(), DRIVER_SECONDS)
        left = await ladder.climb(self._end_all(), 1)
        self._browser = self._playwright = self._cdp = None
        if ladder.broke is not None:
            raise ladder.broke
        await asyncio.to_thread(self._clear_up, left)
        return how, left

    async def _find_late(self) -> None:
        """Find what was started while its start was given up, or could not be looked for."""
        found = await asyncio.gather(self._finding, return_exceptions=True) if self._finding is not None else ()
        if self.head is None:
            await asyncio.to_thread(self._find_head)
        if self.driver is None and self._before is not None and any(found):
            # In its turn: a driver that is being started is on no list yet, and looks like ours.
            async with asyncio.timeout(DRIVER_SECONDS), self._starting:
                await asyncio.to_thread(self._find_driver, self._before)

    async def _end_all(self) -> int:
        """Kill what is left of driver and browser; return how many processes could not be ended."""
        heads = [head for head in (self.head, self.driver) if head]
        return await end_family([*heads, *(each.identity for each in await asyncio.to_thread(with_mark, self._mark))])

    def _clear_up(self, left: int) -> None:
        """Wait for the dead, and take away what a browser leaves on disk and in the list."""
        if self.head is not None:
            reap_session(self.head, () if self._own is None else (self._own.pid,))
        remove_profile(self._profile)
        if left:
            self._registry.disown(self._mark)
        else:
            self._registry.forget(self._mark)


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _port_in(file: Path) -> int | None:
    """Return the port that a starting browser has written down; `None` while it has not."""
    lines = file.read_text(encoding="ascii").split() if file.exists() else []
    return int(lines[0]) if lines else None


def _drivers() -> list[Process]:
    """Return our own children that are drivers."""
    people = (each for each in list_processes() if each.parent == os.getpid())
    return [each for each in people if _DRIVER_WORD in command_line(each.pid)]


def _members(head: Identity, driver: Identity | None, people: list[Process]) -> list[Process]:
    """Return a family; of the driver only itself, since what it started has a head of its own."""
    if head == driver:
        own = find_process(head.pid)
        return [own] if own is not None and own.identity == head and own.state != "Z" else []
    return process_tree(head, people)
