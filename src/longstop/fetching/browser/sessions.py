"""The sessions of one source: which one is used next, how they are opened and leased, and how they are closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from playwright.async_api import Cookie
from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import BrowserLost
from longstop.fetching.browser.browser_generations import SourceBrowser
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.error_and_response_mapping import map_playwright_error
from longstop.fetching.browser.proxy_sessions import ProxyRing, session_proxy
from longstop.fetching.browser.session import Session, SessionPlan
from longstop.fetching.browser.tasks_and_close_after_last_use import Draining, TaskSet, cancel_safe
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.browsers import PageDiscarded

#: How long a browser may take to open a session.
SESSION_SECONDS = 10.0


class Sessions:
    def __init__(
        self, browser: SourceBrowser, plan: SessionPlan, *, clock: Clock, bus: Bus, proxies: ProxyRing | None
    ) -> None:
        self._browser = browser
        #: What all sessions have in common.
        self._plan = plan
        self._browsing = plan.browsing
        self._clock = clock
        self._bus = bus
        self._proxies = proxies
        self._open: dict[str, Session] = {}
        #: Sessions without new requests; the last ones have the time of one request to finish.
        self._draining = Draining(self._close, plan.browsing.page_seconds)
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

    def discard(self, session: Session) -> None:
        """Drop a session with its cookies and pages, after the requests that use it."""
        self._saved_cookies.pop(session.plan.name, None)
        self._drain(session)

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
                    if session.engine is not engine:
                        await self._save_cookies(session.engine)
                    self._drain(session)
                session = self._open[name] = await self._new_session(name, engine)
        return session

    async def _new_session(self, name: str, engine: Engine) -> Session:
        plan, cookies = self._plan, self._saved_cookies.pop(name, None)
        if self._proxies is not None:
            plan = msgspec.structs.replace(plan, name=name, proxy=session_proxy(self._proxies.account, name))
        try:
            async with asyncio.timeout(SESSION_SECONDS):
                return await cancel_safe(Session.open(plan, engine, self._clock, cookies), Session.aclose)
        except TimeoutError:
            reason = f"the browser did not open a session within {SESSION_SECONDS:g} s"
        except PlaywrightError as error:
            reason = map_playwright_error(error).reason
        self._tasks.start(self._browser.verify(engine))
        raise BrowserLost(reason)

    def _drain(self, session: Session) -> None:
        """Send no new requests to a session, and close it after those that use it."""
        if self._open.get(session.plan.name) is session:
            del self._open[session.plan.name]
            self._draining.add(session)

    def _choose(self) -> str:
        """Return the name of the session to use next, and drain those that have expired."""
        if self._proxies is None:
            return self._plan.name
        ring, now = self._proxies, self._clock.monotonic()
        chosen = ring.pick(now).name
        for session in self.all:
            if session.plan.name != chosen and not ring.has(session.plan.name, now):
                self._drain(session)
        return chosen

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
                    self.discard(session)
                    self._draining.close_now(session)
                    return

    async def _close(self, session: Session) -> None:
        if not await session.aclose():
            self._browser.abandon(session.engine, "a session could not be closed")

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
