"""A pool with real browsers for one test, and the check that nothing of it is left."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from uuid import uuid4

from playwright.async_api import Error as PlaywrightError

from longstop.clock import SystemClock
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_generations import SourceBrowser, SourceBrowserPolicy
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, BrowserPolicy, Egress
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.proxy_budget import ProxyMeter
from longstop.fetching.browser.proxy_sessions import ProxyRing
from longstop.fetching.browser.recycle_and_hang_policy import HangPolicy, RecyclePolicy
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http import HttpFetcher
from longstop.process.processes import Process, command_line, list_processes
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from tests.browser.site import Site


class RecordedEvents:
    """A sink that records events."""

    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)

    def names(self) -> list[str]:
        return [event.name for event in self.events]

    def of(self, name: str) -> list[Telemetry]:
        return [event for event in self.events if event.name == name]


class BrowserHarness:
    """One pool, with fetchers as a test needs them."""

    def __init__(self, pool: BrowserPool, site: Site, events: RecordedEvents) -> None:
        self.pool = pool
        self.site = site
        self.events = events
        self.bus = Bus([events])
        self._fetchers: list[BrowserFetcher] = []

    def fetcher(
        self,
        source: str = "crex",
        kind: BrowserKind = BrowserKind.SHELL,
        browsing: BrowserPolicy | None = None,
        proxies: ProxyRing | None = None,
        host: str = "",
        meter: ProxyMeter | None = None,
    ) -> BrowserFetcher:
        hosts = (host or self.site.authority,)
        egress = Egress(hosts=(proxies.account.host,), is_proxied=True) if proxies else Egress(hosts=hosts)
        policy = FetchPolicy(hosts=hosts, allow_private_addresses=True, max_body_bytes=5_000_000)
        fetcher = BrowserFetcher(
            self.pool.browser(source, kind, egress),
            policy=policy,
            browsing=browsing or BrowserPolicy(page_seconds=20, passive_seconds=2),
            make_http=lambda proxy: HttpFetcher(policy, SystemClock(), proxy=proxy),
            clock=SystemClock(),
            bus=self.bus,
            proxies=proxies,
            meter=meter,
        )
        self._fetchers.append(fetcher)
        return fetcher

    async def start(self, source: str = "crex") -> None:
        """Start a source's browser. On a busy machine that takes longer than some tests allow for a page."""
        browser = self.browser(source)
        browser.release(await browser.acquire())

    def browser(self, source: str = "crex") -> SourceBrowser:
        """Return a source's browser; a new one is as the first fetcher needs it."""
        egress = Egress(hosts=(self.site.authority,))
        return self.pool.browsers.get(source) or self.pool.browser(source, BrowserKind.SHELL, egress)

    def engine(self, source: str = "crex") -> Engine:
        return self.browser(source).engines[0]

    def state(self, page: str = "polling", match: str = "1", source: str = "crex") -> FetchRequest:
        return FetchRequest(
            source=source,
            url=self.site.url(f"/api/state?match={match}"),
            page=self.site.url(f"/page/{page}?match={match}"),
        )

    async def aclose(self) -> None:
        for fetcher in self._fetchers:
            await fetcher.aclose()
        await self.pool.aclose()


@asynccontextmanager
async def leased(browser: SourceBrowser) -> AsyncIterator[Engine]:
    """Use the current engine of a browser."""
    engine = await browser.acquire()
    try:
        yield engine
    finally:
        browser.release(engine)


@asynccontextmanager
async def browser_harness(
    tmp_path: Path,
    site: Site,
    *,
    recycle: RecyclePolicy | None = None,
    is_cdp: bool = False,
    check_seconds: float = 0.5,
    hung_seconds: float = 30.0,
    executable: str = "",
) -> AsyncIterator[BrowserHarness]:
    """Run a pool with its checks. At the end it must be closed, with nothing left, within ten seconds."""
    events = RecordedEvents()
    plan = PoolPlan(
        registry=tmp_path / "browsers.json",
        node=f"node-{uuid4().hex[:12]}",
        browser=SourceBrowserPolicy(
            recycle=recycle or RecyclePolicy(),
            hanging=HangPolicy(check_seconds=check_seconds, hung_seconds=hung_seconds),
        ),
        executable=executable,
        is_cdp=is_cdp,
        environment=dict(os.environ),
    )
    before = descendants()
    pool = BrowserPool(plan, Bus([events]))
    checks = asyncio.ensure_future(pool.run())
    harness = BrowserHarness(pool, site, events)
    try:
        yield harness
    finally:
        checks.cancel()
        await asyncio.gather(checks, return_exceptions=True)
        started = monotonic()
        await harness.aclose()
        seconds = monotonic() - started
    await nothing_left_since(before)
    assert seconds < 10, f"closing took {seconds:.1f} s"


def descendants() -> list[Process]:
    """Return all descendants of this process, zombies included."""
    processes = list_processes()
    found = {os.getpid()}
    while more := {each.pid for each in processes if each.parent in found} - found:
        found |= more
    return [each for each in processes if each.pid in found and each.pid != os.getpid()]


async def nothing_left_since(before: list[Process]) -> None:
    """Wait until all newer processes are gone; the event loop reaps a killed driver when it can."""
    known = {each.identity for each in before}
    deadline = monotonic() + 5
    while left := [each for each in descendants() if each.identity not in known]:
        assert monotonic() < deadline, f"left behind: {left}"
        await asyncio.sleep(0.02)


def of_type(engine: Engine, kind: str) -> list[Process]:
    """Return an engine's processes of one type: `browser`, `driver`, `renderer`, `gpu-process` or `network`."""
    processes = engine.processes()
    if kind == "browser":
        return [each for each in processes if each.identity == engine.root]
    if kind == "driver":
        return [each for each in processes if each.identity == engine.driver]
    word = "NetworkService" if kind == "network" else f"--type={kind}"
    return [each for each in processes if any(word in argument for argument in command_line(each.pid))]


async def crash(fetcher: BrowserFetcher, address: str) -> None:
    """Crash the page of a URL as soon as it is loaded, like a fault in its renderer."""
    tab = None
    while tab is None:
        await asyncio.sleep(0.02)
        opened = (session.open_tab(address) for session in fetcher.sessions)
        tab = next((each for each in opened if each is not None), None)
    with suppress(PlaywrightError, TimeoutError):
        async with asyncio.timeout(2):
            await tab.cdp.send("Page.crash")


async def until(condition: Callable[[], bool], seconds: float) -> float:
    """Wait until a condition is true; return how long it took, or fail."""
    started = monotonic()
    while not condition():
        assert monotonic() - started < seconds, f"not within {seconds:g} s"
        await asyncio.sleep(0.02)
    return monotonic() - started
