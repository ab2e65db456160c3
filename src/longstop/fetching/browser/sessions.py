"""The sessions of one source: which one is used next, how they are opened and leased, and how they are closed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from msgspec import Struct
from playwright.async_api import Cookie
from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import BrowserLost
from longstop.fetching.base import Fetcher
from longstop.fetching.browser.base import BrowserPolicy
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.error_mapping import map_playwright_error
from longstop.fetching.browser.events import PageDiscarded
from longstop.fetching.browser.proxies import ProxyRing, credential
from longstop.fetching.browser.proxy_budget import ProxyMeter
from longstop.fetching.browser.session import Session, SessionPlan
from longstop.fetching.browser.source_browser import SourceBrowser
from longstop.fetching.browser.task_lifetimes import Draining, TaskSet, cancel_safe
from longstop.fetching.guards import FetchPolicy
from longstop.telemetry.bus import Bus

MakeHttp = Callable[[SessionPlan], Fetcher]
_DIRECT = "direct"
#: How long a browser may take to open a session.
SESSION_SECONDS = 10.0


class SourceProxy(Struct, frozen=True, kw_only=True):
    """A source's sessions with the proxy, and the meter of its bytes."""

    ring: ProxyRing
    #: `None` if bytes are not counted.
    meter: ProxyMeter | None = None


class Sessions:
    """Opens, leases and closes the sessions of one source."""

    def __init__(
        self,
        *,
        browser: SourceBrowser,
        policy: FetchPolicy,
        browsing: BrowserPolicy,
        make_http: MakeHttp,
        clock: Clock,
        bus: Bus,
        proxy: SourceProxy | None,
    ) -> None:
        self._browser = browser
        self._policy = policy
        self._browsing = browsing
        self._make_http = make_http
        self._clock = clock
        self._bus = bus
        self._proxy = proxy
        self._open: dict[str, Session] = {}
        #: Sessions without new requests; the last ones have the time of one request to finish.
        self._draining = Draining(self._close, browsing.page_seconds)
        self._http: dict[Session, Fetcher] = {}
        #: Cookies of sessions whose browser is being replaced; in memory only.
        self._saved_cookies: dict[str, list[Cookie]] = {}
        self._opening_lock = asyncio.Lock()
        self._tasks = TaskSet()
        #: Sessions that are being diagnosed.
        self._diagnosed: set[Session] = set()
        #: Browsers and sessions being started. They outlive the requests that wait for them, but not this object.
        self._starting = TaskSet()
        self._idle_checked_at = clock.monotonic()
        browser.on_lost.append(self._lose)
        browser.before_close.append(self._save_cookies)

    @property
    def all(self) -> tuple[Session, ...]:
        return tuple(self._open.values())

    @asynccontextmanager
    async def lease(self, deadline: float) -> AsyncIterator[Session]:
        """Lease the session to use next, if it is ready by this time of the event loop's clock.

        Session and browser are not closed while leased, unless they are lost. If the deadline passes while they are
        being started, the start goes on: the next request profits.
        """
        try:
            async with asyncio.timeout_at(deadline):
                session = await cancel_safe(self._starting.start(self._acquire()), self._release)
        except TimeoutError:
            raise BrowserLost("the browser was not ready in time") from None
        try:
            yield session
        finally:
            await self._release(session)

    def http_for(self, session: Session) -> Fetcher:
        """Return the fetcher for requests by HTTP with the session's proxy."""
        if session not in self._http:
            self._http[session] = self._make_http(session.plan)
        return self._http[session]

    def discard(self, session: Session) -> None:
        """Drop a session with its cookies and pages, after the requests that use it."""
        if self._remove(session):
            self._draining.add(session)

    def diagnose(self, session: Session) -> None:
        """Find out in the background why a request timed out; once for all concurrent requests."""
        if session not in self._diagnosed:
            self._diagnosed.add(session)
            self._tasks.start(self._diagnose(session))

    def close_idle_pages(self, session: Session) -> None:
        """Close pages that are no longer used, at intervals."""
        now = self._clock.monotonic()
        if now - self._idle_checked_at > self._browsing.idle_seconds / 2:
            self._idle_checked_at = now
            self._tasks.start(session.close_idle(self._browsing.idle_seconds))

    async def aclose(self) -> None:
        """Close all sessions; the browser belongs to the pool."""
        await self._starting.aclose()
        self._browser.on_lost.remove(self._lose)
        self._browser.before_close.remove(self._save_cookies)
        for session in self.all:
            self.discard(session)
        await self._draining.aclose()
        await self._tasks.aclose()

    async def _acquire(self) -> Session:
        """Take the current browser and the session to use next in it; `_release` returns both."""
        try:
            engine = await self._browser.acquire()
            try:
                session = await self._ready(engine)
            except BaseException:
                self._browser.release(engine)
                raise
        except asyncio.CancelledError:
            # Only `aclose` cancels this task. The waiting request itself was not cancelled, and needs an error.
            raise BrowserLost("the fetcher was closed") from None
        session.users += 1
        return session

    async def _release(self, session: Session) -> None:
        session.users -= 1
        self._draining.released(session)
        self._browser.release(session.engine)

    async def _ready(self, engine: Engine) -> Session:
        """Return the session to use next in this engine, opened if necessary."""
        async with self._opening_lock:
            name = self._choose()  # inside the lock: the choice may change while waiting for it
            session = self._open.get(name)
            if session is None or session.is_closed or session.engine is not engine:
                if session is not None:
                    await self._replace(session)
                async with self._bounded("open a session", engine):
                    cookies = self._saved_cookies.pop(name, None)
                    session = await Session.open(self._plan(name), engine, self._clock, cookies)
                self._open[name] = session
        return session

    async def _replace(self, session: Session) -> None:
        """Drain a session whose browser was replaced or lost; its successor gets its cookies."""
        if not session.is_closed:
            await self._save_cookies(session.engine)
        if self._open.get(session.plan.name) is session:
            del self._open[session.plan.name]
            self._draining.add(session)

    def _remove(self, session: Session) -> bool:
        """Send no new requests to a session, and forget its cookies; return whether it was open."""
        name = session.plan.name
        self._saved_cookies.pop(name, None)
        is_open = self._open.get(name) is session
        if is_open:
            del self._open[name]
        return is_open

    def _choose(self) -> str:
        """Return the name of the session to use next, and drain those that have expired."""
        if self._proxy is None:
            return _DIRECT
        ring, now = self._proxy.ring, self._clock.monotonic()
        chosen = ring.pick(now).name
        for name in [name for name in self._open if not ring.has(name, now) and name != chosen]:
            self._draining.add(self._open.pop(name))
        return chosen

    def _plan(self, name: str) -> SessionPlan:
        account = self._proxy.ring.account if self._proxy else None
        meter = self._proxy.meter if self._proxy else None
        return SessionPlan(
            name=name,
            policy=self._policy,
            browsing=self._browsing,
            account=account,
            credential=credential(account, name) if account else None,
            meter=meter.count if meter else None,
        )

    @asynccontextmanager
    async def _bounded(self, what: str, engine: Engine) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(SESSION_SECONDS):
                yield
        except TimeoutError:
            self._tasks.start(self._browser.verify(engine))
            raise BrowserLost(f"the browser did not {what} within {SESSION_SECONDS:g} s") from None
        except PlaywrightError as error:
            self._tasks.start(self._browser.verify(engine))
            raise BrowserLost(map_playwright_error(error).reason) from None

    async def _diagnose(self, session: Session) -> None:
        """Give up the browser if it does not respond, or else the pages that do not."""
        try:
            if await self._browser.verify(session.engine):
                await self._discard_hung_pages(session)
        finally:
            self._diagnosed.discard(session)

    async def _discard_hung_pages(self, session: Session) -> None:
        while tab := next((each for each in session.tabs if each.is_suspect or each.lost), None):
            tab.is_suspect = False
            if not await tab.probe(self._browsing.probe_seconds):
                reason = tab.lost or "the page does not respond"
                self._bus.emit(PageDiscarded(source=self._browser.source, reason=reason))
                if not await session.discard(tab):
                    # A page that does not close may block the others, so its session closes at once.
                    self._remove(session)
                    self._draining.close_now(session)
                    return

    async def _close(self, session: Session) -> None:
        http = self._http.pop(session, None)
        if not await session.aclose():
            self._browser.abandon(session.engine, "a session could not be closed")
        if http is not None:
            await http.aclose()

    async def _save_cookies(self, engine: Engine) -> None:
        """Save the cookies of all sessions in an engine that is being replaced, for their successors."""
        for session in self.all:
            if session.engine is engine and not session.is_closed:
                with suppress(PlaywrightError, TimeoutError):
                    async with asyncio.timeout(self._browsing.probe_seconds):
                        self._saved_cookies[session.plan.name] = await session.cookies()

    def _lose(self, engine: Engine, reason: str) -> None:
        """Wake all requests that wait in an engine that was given up."""
        for session in (*self.all, *self._draining.all):
            if session.engine is engine:
                session.lose(reason)
