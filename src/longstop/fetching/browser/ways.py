"""The four ways to read a page with a browser, and the fifth that reads what is drawn. Which one is due, others say."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import msgspec

from longstop.errors import BodyTooLarge, BrowserBusy, BrowserLost, FetchError
from longstop.fetching.base import Fetcher, FetchRequest
from longstop.fetching.browser.base import Mode
from longstop.fetching.browser.events import PageMeasured
from longstop.fetching.browser.flows import NetworkCount, request_bytes
from longstop.fetching.browser.foreign import broken_off
from longstop.fetching.browser.intercept import Capture, Wanted, wanted_by
from longstop.fetching.browser.policy import BrowserPolicy
from longstop.fetching.browser.relief import Relief
from longstop.fetching.browser.session import Session
from longstop.fetching.browser.tab import Answer, Tab
from longstop.telemetry.bus import Bus


class Ways:
    """Brings answers of one source out of a session."""

    def __init__(
        self,
        source: str,
        *,
        browsing: BrowserPolicy,
        http_of: Callable[[Session], Fetcher],
        on_refusal: Callable[[FetchError, Session], None],
        bus: Bus,
    ) -> None:
        self._source = source
        self._browsing = browsing
        #: Who asks by HTTP as a session would.
        self._http_of = http_of
        self._bus = bus
        self._loading = asyncio.Semaphore(browsing.max_loads)
        self._relief = Relief(source, browsing=browsing, load=self._load, on_refusal=on_refusal, bus=bus)
        #: Called with the address of an open page that is told by its site that something has changed.
        self.on_signal: Callable[[str], None] | None = None

    async def bring(self, mode: Mode, request: FetchRequest, session: Session) -> Answer:
        """Bring an answer in this way, or in a dearer one where this one cannot be gone."""
        self._relief.consider(session)
        if request.is_rendered:
            return await self._drawn(request, session)
        match mode:
            case Mode.HTTP:
                return await self._by_http(request, session)
            case Mode.PAGE:
                return await self._from_inside(request, session)
            case Mode.PASSIVE if request.page:
                return await self._listening(request, session)
            case _:
                return await self._navigating(request, session)

    async def aclose(self) -> None:
        await self._relief.aclose()

    async def _navigating(self, request: FetchRequest, session: Session) -> Answer:
        """Load the page, unless it was loaded just now, and take what it gets."""
        asked_at = asyncio.get_running_loop().time()
        address = request.page or request.url
        wanted = wanted_by(request)
        async with self._using(session, address) as tab:
            tab.heard.want(wanted)
            async with tab.lock, self._counted(request, Mode.NAVIGATE, tab):
                after = tab.handed(wanted)
                is_fresh = request.page and tab.is_ready and asked_at - tab.loaded_at < self._browsing.fresh_seconds
                if not is_fresh or (after > tab.loaded_after and not await self._goes_on(tab, wanted, after)):
                    after = tab.heard.number
                    await self._load(tab, address)
                if request.page and not self._comes_by_itself(request):
                    await tab.arrived()
                    return await tab.ask(request)
                capture = await (tab.answer(wanted, after) if request.page else tab.document())
        return _answer_of(capture, session)

    async def _goes_on(self, tab: Tab, wanted: Wanted, after: int) -> bool:
        """Return whether a page that was loaded just now, and has given its answer, soon gets another by itself."""
        try:
            async with asyncio.timeout(self._browsing.fresh_seconds):
                await tab.heard_after(wanted, after)
        except TimeoutError:
            return False
        return True

    async def _drawn(self, request: FetchRequest, session: Session) -> Answer:
        """Take what the script of an open page has drawn; a page that has stopped is loaded again first."""
        address = request.page or request.url
        async with self._using(session, address) as tab, tab.lock, self._counted(request, Mode.NAVIGATE, tab):
            if not tab.is_living(self._browsing.living_seconds):
                await self._load(tab, address)
            return await tab.drawn(self._browsing.settle_seconds)

    async def _listening(self, request: FetchRequest, session: Session) -> Answer:
        """Take what an open page gets by itself; what it never asks for is asked from inside it."""
        wanted = wanted_by(request)
        tab = session.open_tab(request.page)
        if tab is None:
            return await self._navigating(request, session)
        if wanted in tab.silent or tab.is_told(wanted) or not self._comes_by_itself(request):
            return await self._from_inside(request, session)
        tab.heard.want(wanted)
        after = tab.handed(wanted, max_age_seconds=self._browsing.sitting_seconds)
        async with tab.held(), self._counted(request, Mode.PASSIVE, tab):
            try:
                async with asyncio.timeout(self._browsing.passive_seconds):
                    return _answer_of(await tab.answer(wanted, after), session)
            except TimeoutError:
                # Asked while it is held: a page that another one has relieved is closed when its last user leaves.
                if not await tab.probe(self._browsing.probe_seconds):
                    raise BrowserLost("the page does not answer") from None
                tab.silent.add(wanted)
        return await self._from_inside(request, session)

    async def _from_inside(self, request: FetchRequest, session: Session) -> Answer:
        """Ask from inside an open page of the same origin, as its own script would."""
        tab = session.warm_tab(request.page or request.url)
        if tab is None:
            return await self._navigating(request, session)
        is_known = session.manners(request.url) is not None
        if not is_known:
            tab.heard.want(wanted_by(request))
        async with tab.held():
            answer = await tab.ask(request)
        # Others ask in the same page at the same time: what is counted is this one question.
        self._tell(request, Mode.PAGE, NetworkCount(requests_total=1, bytes_in_est=answer.wire_bytes, captured=1))
        capture = None if is_known else tab.heard.newest(wanted_by(request))
        if capture is not None:
            session.learn_manners(capture.url, capture.asked_with)
        return answer

    def _comes_by_itself(self, request: FetchRequest) -> bool:
        """Return whether the page asks this by itself; of two posts to one address nobody knows which is whose."""
        calls, path = self._browsing.calls, urlsplit(request.url).path
        return request.method == "GET" and (not calls or any(fnmatchcase(path, each) for each in calls))

    async def _by_http(self, request: FetchRequest, session: Session) -> Answer:
        """Ask by HTTP as the page would: its headers, its cookies, its proxy."""
        manners = session.manners(request.url)
        if manners is None:
            return await self._from_inside(request, session)
        cookies = "; ".join(f"{each.get('name')}={each.get('value')}" for each in await session.cookies(request.url))
        headers = {**manners, "Accept-Language": session.profile.accept_language, **request.headers}
        if cookies:
            headers["Cookie"] = cookies
        page = await self._http_of(session).fetch(msgspec.structs.replace(request, headers=headers))
        if session.plan.meter is not None:
            session.plan.meter(page.wire_bytes + request_bytes(request.method, request.url, headers))
        self._tell(request, Mode.HTTP, NetworkCount(requests_total=1, bytes_in_est=page.wire_bytes, captured=1))
        return Answer(status=page.status, headers=page.headers, body=page.body, wire_bytes=page.wire_bytes)

    async def _load(self, tab: Tab, address: str) -> None:
        async with self._turn():
            tab.loaded_after = tab.heard.number
            await tab.load(address, self._browsing.navigation_seconds)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn to load; a queue of our own making is nobody's failure, least of all the site's."""
        try:
            async with asyncio.timeout(self._browsing.queue_seconds):
                await self._loading.acquire()
        except TimeoutError:
            raise BrowserBusy(f"{self._browsing.max_loads} pages are being loaded already") from None
        try:
            yield
        finally:
            self._loading.release()

    @asynccontextmanager
    async def _using(self, session: Session, address: str) -> AsyncIterator[Tab]:
        tab = session.open_tab(address)
        if tab is None:
            async with self._turn():
                tab = await session.tab(address)
        tab.heard.on_signal = lambda: self._signal(address)
        async with tab.held():
            yield tab

    @asynccontextmanager
    async def _counted(self, request: FetchRequest, mode: Mode, tab: Tab) -> AsyncIterator[None]:
        before = msgspec.structs.replace(tab.heard.flows.count)
        try:
            yield
        finally:
            self._tell(request, mode, tab.heard.flows.count.since(before))

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

    def _signal(self, address: str) -> None:
        if self.on_signal is not None:
            self.on_signal(address)


def _answer_of(capture: Capture, session: Session) -> Answer:
    session.learn_manners(capture.url, capture.asked_with)
    if capture.failure:
        raise broken_off(capture.failure)
    if capture.body is None:
        raise BodyTooLarge(f"more than {session.plan.policy.max_body_bytes} bytes after decompression")
    return Answer(status=capture.status, headers=capture.headers, body=capture.body, wire_bytes=capture.wire_bytes)
