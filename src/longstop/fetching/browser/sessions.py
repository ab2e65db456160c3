"""The sessions of one source: which one is due, how they are opened, and how they end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress

from playwright.async_api import Cookie
from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import BrowserLost
from longstop.fetching.base import Fetcher
from longstop.fetching.browser.bulkhead import Bulkhead
from longstop.fetching.browser.departures import Departures
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.errands import Errands
from longstop.fetching.browser.events import PageDiscarded
from longstop.fetching.browser.foreign import translated
from longstop.fetching.browser.intercept import WhiteList
from longstop.fetching.browser.owning import owned
from longstop.fetching.browser.policy import BrowserPolicy
from longstop.fetching.browser.proxies import ProxyRing, credential
from longstop.fetching.browser.session import Session, SessionPlan
from longstop.fetching.guards import FetchPolicy
from longstop.telemetry.bus import Bus

MakeHttp = Callable[[SessionPlan], Fetcher]
_DIRECT = "direct"
#: What a browser may take for a new session.
SESSION_SECONDS = 10.0


class Sessions:
    """Opens, lends and ends them."""

    def __init__(
        self,
        *,
        bulkhead: Bulkhead,
        policy: FetchPolicy,
        browsing: BrowserPolicy,
        make_http: MakeHttp,
        clock: Clock,
        bus: Bus,
        proxies: ProxyRing | None,
        dice: int,
        meter: Callable[[int], None] | None,
    ) -> None:
        self._bulkhead = bulkhead
        self._policy = policy
        self._browsing = browsing
        self._make_http = make_http
        self._clock = clock
        self._bus = bus
        self._proxies = proxies
        self._dice = dice
        self._meter = meter
        self._open: dict[str, Session] = {}
        #: Sessions that are over: who is in them has no more than the time of one answer to finish.
        self._leaving = Departures(self._end, browsing.page_seconds)
        self._http: dict[Session, Fetcher] = {}
        #: Cookies of sessions whose browser is replaced; in memory only.
        self._jars: dict[str, list[Cookie]] = {}
        self._opening = asyncio.Lock()
        self._errands = Errands()
        #: Sessions of which it is being found out why they do not answer.
        self._looked_into: set[Session] = set()
        #: Browsers and sessions in the making: they outlive who waits for them, and end with us.
        self._making = Errands()
        self._tidied_at = clock.monotonic()
        bulkhead.on_loss.append(self._lose)
        bulkhead.on_farewell.append(self._keep_cookies)

    @property
    def all(self) -> tuple[Session, ...]:
        return tuple(self._open.values())

    @asynccontextmanager
    async def lent(self, deadline: float) -> AsyncIterator[Session]:
        """Lend the session that is due, in the current browser, if both are ready by that time of the loop's clock.

        What has to be made is made to the end, though nobody may wait for it any more: the next one profits.
        """
        lending = AsyncExitStack()
        try:
            async with asyncio.timeout_at(deadline):
                session = await owned(self._making.run(self._borrow(lending)), lambda _: lending.aclose())
        except TimeoutError:
            raise BrowserLost("the browser was not ready in time") from None
        async with lending:
            yield session

    def http_of(self, session: Session) -> Fetcher:
        """Return who asks by HTTP as this session would."""
        if session not in self._http:
            self._http[session] = self._make_http(session.plan)
        return self._http[session]

    def forget(self, session: Session) -> None:
        """Drop what a refused session has gathered: cookies, pages and all, once those who are in it are done."""
        if self._take_out(session):
            self._leaving.see_off(session)

    def look_into(self, session: Session) -> None:
        """Find out, in its own time, why somebody has waited in vain; for all who have, once."""
        if session not in self._looked_into:
            self._looked_into.add(session)
            self._errands.run(self._look_into(session))

    def tidy(self, session: Session) -> None:
        """Close pages that are no longer used, now and then."""
        now = self._clock.monotonic()
        if now - self._tidied_at > self._browsing.idle_seconds / 2:
            self._tidied_at = now
            self._errands.run(session.close_idle(self._browsing.idle_seconds))

    async def aclose(self) -> None:
        """Close all; the browser belongs to the bulkhead."""
        await self._making.aclose()
        self._bulkhead.on_loss.remove(self._lose)
        self._bulkhead.on_farewell.remove(self._keep_cookies)
        for session in self.all:
            self.forget(session)
        await self._leaving.aclose()
        await self._errands.aclose()

    async def _borrow(self, lending: AsyncExitStack) -> Session:
        """Take the current engine, until the lending ends, and the session that is due in it."""
        try:
            async with AsyncExitStack() as taken:
                engine = await taken.enter_async_context(self._bulkhead.engine())
                session = await self._ready(engine)
                taken.enter_context(self._entered(session))
                lending.push_async_exit(taken.pop_all())
                return session
        except asyncio.CancelledError:
            # Only our own end cancels it; who waits was not cancelled, and is told why.
            raise BrowserLost("the fetcher was closed") from None

    @contextmanager
    def _entered(self, session: Session) -> Iterator[None]:
        session.users += 1
        try:
            yield
        finally:
            session.users -= 1
            self._leaving.left(session)

    async def _ready(self, engine: Engine) -> Session:
        """Return the session that is due, in this engine: the one that is open, or a new one."""
        async with self._opening:
            name = self._due()  # whoever waited for the turn may find that another one is due by now
            session = self._open.get(name)
            if session is None or session.is_closed or session.engine is not engine:
                if session is not None:
                    await self._replace(session)
                async with self._bounded("open a session", engine):
                    session = await Session.open(self._plan(name), engine, self._clock, self._jars.pop(name, None))
                self._open[name] = session
        return session

    async def _replace(self, session: Session) -> None:
        """Let a session go whose browser is replaced or lost; the next one goes on with its cookies."""
        if not session.is_closed:
            await self._keep_cookies(session.engine)
        if self._open.get(session.plan.name) is session:
            del self._open[session.plan.name]
            self._leaving.see_off(session)

    def _take_out(self, session: Session) -> bool:
        """Let nobody new into a session, and forget its cookies; return whether it was open."""
        name = session.plan.name
        self._jars.pop(name, None)
        is_open = self._open.get(name) is session
        if is_open:
            del self._open[name]
        return is_open

    def _due(self) -> str:
        """Return the name of the session to use next, and let go of those that are over."""
        if self._proxies is None:
            return _DIRECT
        now = self._clock.monotonic()
        chosen = self._proxies.pick(now).name
        for name in [name for name in self._open if not self._proxies.has(name, now) and name != chosen]:
            self._leaving.see_off(self._open.pop(name))
        return chosen

    def _plan(self, name: str) -> SessionPlan:
        account = self._proxies.account if self._proxies else None
        return SessionPlan(
            name=name,
            policy=self._policy,
            white_list=WhiteList(hosts=self._policy.hosts, paths=self._browsing.calls),
            is_style_blocked=self._browsing.is_style_blocked,
            max_tabs=self._browsing.max_tabs,
            drain_seconds=self._browsing.page_seconds,
            dice=self._dice,
            account=account,
            credential=credential(account, name) if account else None,
            meter=self._meter if account else None,
        )

    @asynccontextmanager
    async def _bounded(self, what: str, engine: Engine) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(SESSION_SECONDS):
                yield
        except TimeoutError:
            self._errands.run(self._bulkhead.suspect(engine))
            raise BrowserLost(f"the browser did not {what} within {SESSION_SECONDS:g} s") from None
        except PlaywrightError as error:
            self._errands.run(self._bulkhead.suspect(engine))
            raise BrowserLost(translated(error).reason) from None

    async def _look_into(self, session: Session) -> None:
        """Close pages that do not answer, then their session, then their browser."""
        try:
            if await self._bulkhead.suspect(session.engine):
                await self._look_into_pages(session)
        finally:
            self._looked_into.discard(session)

    async def _look_into_pages(self, session: Session) -> None:
        while tab := next((each for each in session.tabs if each.is_suspect or each.lost), None):
            tab.is_suspect = False
            if not await tab.probe(self._browsing.probe_seconds):
                reason = tab.lost or "it does not answer"
                self._bus.emit(PageDiscarded(source=self._bulkhead.source, reason=reason))
                if not await session.discard(tab):
                    # A page that does not go may hold the others up: its session does not wait for anybody.
                    self._take_out(session)
                    self._leaving.end(session)
                    return

    async def _end(self, session: Session) -> None:
        """Close a session that is not used again, with its connections."""
        http = self._http.pop(session, None)
        if not await session.aclose():
            self._bulkhead.condemn(session.engine, "a session could not be closed")
        if http is not None:
            await http.aclose()

    async def _keep_cookies(self, engine: Engine) -> None:
        """Take the cookies of the sessions in an engine that is replaced: the next ones go on with them."""
        for session in self.all:
            if session.engine is engine and not session.is_closed:
                with suppress(PlaywrightError, TimeoutError):
                    async with asyncio.timeout(self._browsing.probe_seconds):
                        self._jars[session.plan.name] = await session.cookies()

    def _lose(self, engine: Engine, reason: str) -> None:
        """Tell everybody who waits in an engine that is given up."""
        for session in (*self.all, *self._leaving.all):
            if session.engine is engine:
                session.lose(reason)
