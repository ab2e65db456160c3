"""The browser behind the fetch seam: the cheapest way that works brings the page."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any

import msgspec
from playwright.async_api import Cookie
from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import (
    BodyTooLarge,
    BrowserLost,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    PageNotFound,
    ProxyFailed,
    SourceChallenged,
    SourceRefused,
    belonging_to,
)
from longstop.fetching.addresses import allowed_target
from longstop.fetching.answers import error_of
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.fetching.browser.bulkhead import Bulkhead
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.events import ModeChanged, PageDiscarded, PageMeasured, ProxyQuarantined, ProxyRotated
from longstop.fetching.browser.foreign import broken_off, translated
from longstop.fetching.browser.intercept import Capture, NetworkCount, WhiteList, wanted_by
from longstop.fetching.browser.modes import (
    LADDER,
    Mode,
    ModeState,
    after_failure,
    after_refusal,
    after_success,
    allowing,
)
from longstop.fetching.browser.proxies import ProxyRing, credential
from longstop.fetching.browser.session import Session, SessionPlan
from longstop.fetching.browser.tab import Answer, Tab
from longstop.fetching.guards import FetchPolicy
from longstop.sources.challenge import is_challenge
from longstop.telemetry.bus import Bus

MakeHttp = Callable[[SessionPlan], Fetcher]
_DIRECT = "direct"
#: What a browser may take for a new session.
SESSION_SECONDS = 10.0


class BrowserPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How one source is read with a browser."""

    #: The ways that may be used; navigation always may.
    modes: tuple[Mode, ...] = LADDER
    #: Paths of JSON that is taken from a page though nobody has asked for it yet.
    paths: tuple[str, ...] = ()
    is_style_blocked: bool = True
    #: From the question to the answer, whichever way.
    page_seconds: float = 30.0
    #: Until a page that is loaded gives its first answer.
    navigation_seconds: float = 30.0
    #: How long an open page is listened to before it is asked.
    passive_seconds: float = 10.0
    #: A page that was loaded so recently is not loaded again for another answer of the same load.
    fresh_seconds: float = 2.0
    idle_seconds: float = 60.0
    max_tabs: int = 64
    #: Pages that are loaded at one time.
    max_loads: int = 4
    probe_seconds: float = 2.0


class BrowserFetcher:
    """Brings pages of one source by its bulkhead."""

    def __init__(
        self,
        source: str,
        *,
        bulkhead: Bulkhead,
        policy: FetchPolicy,
        browsing: BrowserPolicy,
        make_http: MakeHttp,
        clock: Clock,
        bus: Bus,
        proxies: ProxyRing | None = None,
        dice: int = 0,
    ) -> None:
        self._source = source
        self._bulkhead = bulkhead
        self._policy = policy
        self._browsing = browsing
        self._make_http = make_http
        self._clock = clock
        self._bus = bus
        self._proxies = proxies
        self._dice = dice
        self._state = allowing(browsing.modes)
        self._sessions: dict[str, Session] = {}
        self._http: dict[str, Fetcher] = {}
        #: Cookies of sessions whose browser is replaced; in memory only.
        self._jars: dict[str, list[Cookie]] = {}
        self._opening = asyncio.Lock()
        self._loading = asyncio.Semaphore(browsing.max_loads)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False
        self._tidied_at = clock.monotonic()
        #: Called when an open page is told by its site that something has changed.
        self.on_signal: Callable[[], None] | None = None
        bulkhead.on_loss.append(self._lose)
        bulkhead.on_farewell.append(self._keep_cookies)

    @property
    def mode(self) -> Mode:
        """The way in which the next page is read."""
        return self._state.mode

    @property
    def sessions(self) -> tuple[Session, ...]:
        return tuple(self._sessions.values())

    async def fetch(self, request: FetchRequest) -> Page:
        with belonging_to(request.source, str(request)):
            if self._is_closed:
                raise BrowserLost("the fetcher was closed")
            for url in (request.url, request.page or request.url):
                allowed_target(url, self._policy.hosts, self._policy.allow_private_addresses)
            started = self._clock.monotonic()
            async with self._bulkhead.engine() as engine, self._session(engine) as session:
                answer = await self._judged(request, session)
                seconds = self._clock.monotonic() - started
                engine.latencies.add(seconds)
            return Page(
                request=request,
                status=answer.status,
                headers=answer.headers,
                body=answer.body,
                elapsed_seconds=seconds,
                wire_bytes=answer.wire_bytes,
            )

    async def aclose(self) -> None:
        """Close the sessions; the browser belongs to the bulkhead."""
        if self._is_closed:
            return
        self._is_closed = True
        self._bulkhead.on_loss.remove(self._lose)
        self._bulkhead.on_farewell.remove(self._keep_cookies)
        sessions, self._sessions = self.sessions, {}
        await asyncio.gather(*(session.aclose() for session in sessions))
        for http in self._http.values():
            await http.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _judged(self, request: FetchRequest, session: Session) -> Answer:
        """Bring an answer the way that is due, and learn from how it went."""
        mode = self._state.mode
        try:
            answer = await self._within(request, session, mode)
        except FetchError as error:
            self._learn_from(error, session)
            raise
        session.engine.timeouts = 0
        self._move(after_success(self._state, self._clock.monotonic()), "success")
        self._tidy(session)
        if self._proxies is not None:
            self._proxies.succeeded(session.plan.name)
        return answer

    async def _within(self, request: FetchRequest, session: Session, mode: Mode) -> Answer:
        """Bring an answer within its deadline; what did not answer is looked into by itself, nobody waits for that."""
        seconds = self._browsing.page_seconds
        try:
            async with asyncio.timeout(seconds):
                answer = await self._by(mode, request, session)
        except TimeoutError:
            self._spawn(self._look_into(session))
            raise FetchTimeout(f"no whole answer within {seconds:g} s") from None
        except asyncio.CancelledError:
            self._spawn(self._look_into(session))
            raise
        except PlaywrightError as error:
            self._spawn(self._look_into(session))
            raise translated(error) from None
        except BrowserLost:
            self._spawn(self._look_into(session))
            raise
        wrong = self._wrong_with(answer)
        if wrong is not None:
            raise wrong
        return answer

    def _wrong_with(self, answer: Answer) -> FetchError | None:
        if answer.status == 407:
            return ProxyFailed("the proxy does not know us")
        if is_challenge(answer.body):
            return SourceChallenged("the page wants proof of a person")
        return error_of(answer.status, answer.headers, self._clock.now())

    async def _by(self, mode: Mode, request: FetchRequest, session: Session) -> Answer:
        match mode:
            case Mode.HTTP:
                return await self._by_http(request, session)
            case Mode.PAGE:
                return await self._from_inside(request, session)
            case Mode.PASSIVE if request.page:
                return await self._listening(request, session)
            case _:
                return await self._navigating(request, session)

    async def _navigating(self, request: FetchRequest, session: Session) -> Answer:
        """Load the page, unless it was loaded just now, and take what it gets."""
        asked_at = asyncio.get_running_loop().time()
        address = request.page or request.url
        wanted = wanted_by(request)
        async with self._using(session, address) as tab:
            tab.heard.want(wanted)
            async with tab.lock, self._counted(request, Mode.NAVIGATE, tab):
                after = tab.handed(wanted)
                if not (request.page and tab.is_ready and asked_at - tab.loaded_at < self._browsing.fresh_seconds):
                    after = tab.heard.number
                    async with self._loading:
                        await tab.load(address, self._browsing.navigation_seconds)
                capture = await (tab.answer(wanted, after) if request.page else tab.document())
        return self._answer_of(capture, session)

    async def _listening(self, request: FetchRequest, session: Session) -> Answer:
        """Take what an open page gets by itself; what it never asks for is asked from inside it."""
        wanted = wanted_by(request)
        tab = session.open_tab(request.page)
        if tab is None:
            return await self._navigating(request, session)
        if wanted in tab.silent:
            return await self._from_inside(request, session)
        tab.heard.want(wanted)
        try:
            async with self._held(tab), self._counted(request, Mode.PASSIVE, tab):
                async with asyncio.timeout(self._browsing.passive_seconds):
                    return self._answer_of(await tab.answer(wanted, tab.handed(wanted)), session)
        except TimeoutError:
            if not await tab.probe(self._browsing.probe_seconds):
                raise BrowserLost("the page does not answer") from None
            tab.silent.add(wanted)
            return await self._from_inside(request, session)

    async def _from_inside(self, request: FetchRequest, session: Session) -> Answer:
        address = request.page or request.url
        tab = session.warm_tab(address)
        if tab is None:
            return await self._navigating(request, session)
        tab.heard.want(wanted_by(request))
        async with self._held(tab), self._counted(request, Mode.PAGE, tab):
            answer = await tab.ask(request)
        capture = tab.heard.newest(wanted_by(request))
        if capture is not None and session.manners(request.url) is None:
            session.learn_manners(capture.url, capture.asked_with)
        return answer

    async def _by_http(self, request: FetchRequest, session: Session) -> Answer:
        """Ask by HTTP as the page would: its headers, its cookies, its proxy."""
        manners = session.manners(request.url)
        if manners is None:
            return await self._from_inside(request, session)
        cookies = "; ".join(f"{each.get('name')}={each.get('value')}" for each in await session.cookies(request.url))
        headers = {**manners, "Accept-Language": session.profile.accept_language, **request.headers}
        if cookies:
            headers["Cookie"] = cookies
        asked = msgspec.structs.replace(request, headers=headers)
        page = await self._http_of(session).fetch(asked)
        self._tell(request, Mode.HTTP, NetworkCount(requests_total=1, bytes_in_est=page.wire_bytes, captured=1))
        return Answer(status=page.status, headers=page.headers, body=page.body, wire_bytes=page.wire_bytes)

    def _answer_of(self, capture: Capture, session: Session) -> Answer:
        session.learn_manners(capture.url, capture.asked_with)
        if capture.failure:
            raise broken_off(capture.failure)
        if capture.body is None:
            raise BodyTooLarge(f"more than {self._policy.max_body_bytes} bytes after decompression")
        return Answer(status=capture.status, headers=capture.headers, body=capture.body, wire_bytes=capture.wire_bytes)

    @asynccontextmanager
    async def _session(self, engine: Engine) -> AsyncIterator[Session]:
        """Lend the session that is due, in this engine."""
        name = self._due()
        async with self._opening:
            session = self._sessions.get(name)
            if session is None or session.is_closed or session.engine is not engine:
                if session is not None and not session.is_closed:
                    await self._keep_cookies(session.engine)
                async with self._foreign("open a session", engine):
                    session = await Session.open(self._plan(name), engine, self._clock, self._jars.pop(name, None))
                self._sessions[name] = session
        yield session

    def _due(self) -> str:
        """Return the name of the session to use next, and let go of those that are over."""
        if self._proxies is None:
            return _DIRECT
        now = self._clock.monotonic()
        chosen = self._proxies.pick(now).name
        for name in [name for name in self._sessions if not self._proxies.has(name, now) and name != chosen]:
            self._spawn(self._end(self._sessions.pop(name)))
        return chosen

    def _plan(self, name: str) -> SessionPlan:
        account = self._proxies.account if self._proxies else None
        return SessionPlan(
            name=name,
            policy=self._policy,
            white_list=WhiteList(hosts=self._policy.hosts, paths=self._browsing.paths),
            is_style_blocked=self._browsing.is_style_blocked,
            max_tabs=self._browsing.max_tabs,
            dice=self._dice,
            account=account,
            credential=credential(account, name) if account else None,
        )

    def _http_of(self, session: Session) -> Fetcher:
        name = session.plan.name
        if name not in self._http:
            self._http[name] = self._make_http(session.plan)
        return self._http[name]

    @asynccontextmanager
    async def _using(self, session: Session, address: str) -> AsyncIterator[Tab]:
        tab = await session.tab(address)
        tab.heard.on_signal = self._signal
        async with self._held(tab):
            yield tab

    @asynccontextmanager
    async def _held(self, tab: Tab) -> AsyncIterator[None]:
        tab.users += 1
        try:
            yield
        except (asyncio.CancelledError, TimeoutError):
            tab.is_suspect = True
            raise
        finally:
            tab.users -= 1

    @asynccontextmanager
    async def _counted(self, request: FetchRequest, mode: Mode, tab: Tab) -> AsyncIterator[None]:
        before = msgspec.structs.replace(tab.heard.count)
        try:
            yield
        finally:
            self._tell(request, mode, tab.heard.count.since(before))

    @asynccontextmanager
    async def _foreign(self, what: str, engine: Engine) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(SESSION_SECONDS):
                yield
        except TimeoutError:
            self._spawn(self._bulkhead.suspect(engine))
            raise BrowserLost(f"the browser did not {what} within {SESSION_SECONDS:g} s") from None
        except PlaywrightError as error:
            self._spawn(self._bulkhead.suspect(engine))
            raise BrowserLost(translated(error).reason) from None

    async def _look_into(self, session: Session) -> None:
        """After a wait in vain: pages that do not answer are closed, then their session, then their browser."""
        if not await self._bulkhead.suspect(session.engine):
            return
        for tab in session.tabs:
            if (tab.is_suspect or tab.lost) and not await tab.probe(self._browsing.probe_seconds):
                self._bus.emit(PageDiscarded(source=self._source, reason=tab.lost or "it does not answer"))
                if not await session.discard(tab):
                    self._forget(session)
                    return
            tab.is_suspect = False

    async def _end(self, session: Session) -> None:
        """Close a session that is not used again, with its connections."""
        http = self._http.pop(session.plan.name, None)
        if not await session.aclose():
            self._bulkhead.condemn(session.engine, "a session could not be closed")
        if http is not None:
            await http.aclose()

    def _tidy(self, session: Session) -> None:
        """Close pages that are no longer used, now and then."""
        now = self._clock.monotonic()
        if now - self._tidied_at > self._browsing.idle_seconds / 2:
            self._tidied_at = now
            self._spawn(session.close_idle(self._browsing.idle_seconds))

    async def _keep_cookies(self, engine: Engine) -> None:
        """Take the cookies of the sessions in an engine that is replaced: the next ones go on with them."""
        for session in self.sessions:
            if session.engine is engine and not session.is_closed:
                with suppress(PlaywrightError, TimeoutError):
                    async with asyncio.timeout(self._browsing.probe_seconds):
                        self._jars[session.plan.name] = await session.cookies()

    def _learn_from(self, error: FetchError, session: Session) -> None:
        now = self._clock.monotonic()
        if isinstance(error, FetchTimeout):
            session.engine.timeouts += 1
        elif not isinstance(error, BrowserLost):
            session.engine.timeouts = 0  # it was answered, if not well
        if isinstance(error, SourceRefused):
            self._move(after_refusal(self._state, now), type(error).__name__)
            self._forget(session)
        elif not isinstance(error, PageNotFound | ForbiddenTarget | BrowserLost):
            self._move(after_failure(self._state, now), type(error).__name__)
        if self._proxies is not None:
            self._learn_about_proxy(error, session.plan.name, now)

    def _learn_about_proxy(self, error: FetchError, name: str, now: float) -> None:
        assert self._proxies is not None  # noqa: S101 - asked just before
        reason = type(error).__name__
        if isinstance(error, SourceRefused):
            is_rotated = self._proxies.refused(name, now)
        elif isinstance(error, FetchTimeout):
            is_rotated = self._proxies.timed_out(name, now)
        else:
            is_rotated = False
            rest = self._proxies.failed(name, now) if isinstance(error, ProxyFailed) else None
            if rest is not None:
                self._bus.emit(ProxyQuarantined(source=self._source, session=name, reason=reason, seconds=rest))
        if is_rotated:
            self._bus.emit(ProxyRotated(source=self._source, session=name, reason=reason))

    def _forget(self, session: Session) -> None:
        """Drop what a refused session has gathered: cookies, pages and all."""
        name = session.plan.name
        self._jars.pop(name, None)
        if self._sessions.get(name) is session:
            del self._sessions[name]
            self._spawn(self._end(session))

    def _move(self, state: ModeState, reason: str) -> None:
        before, self._state = self._state, state
        if state.mode is not before.mode:
            self._bus.emit(ModeChanged(source=self._source, before=before.mode, after=state.mode, reason=reason))

    def _lose(self, engine: Engine, reason: str) -> None:
        """Tell everybody who waits in an engine that is given up."""
        for session in self.sessions:
            if session.engine is engine:
                session.is_closed = True
                for tab in session.tabs:
                    tab.lose(reason)

    def _tell(self, request: FetchRequest, mode: Mode, count: NetworkCount) -> None:
        self._bus.emit(
            PageMeasured(
                source=self._source,
                request=str(request),
                mode=mode,
                bytes_in_est=count.bytes_in_est,
                requests_total=count.requests_total,
                requests_blocked=count.requests_blocked,
                captured=count.captured,
            )
        )

    def _signal(self) -> None:
        if self.on_signal is not None:
            self.on_signal()

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def new_session_name() -> str:
    """Return a name for a session with the proxy."""
    return token_hex(4)
