"""The four modes of fetching with a browser, and reading a rendered page. The mode policy decides which one to use."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import msgspec
from playwright.async_api import Error as PlaywrightError

from longstop import errors
from longstop.fetching.base import FetchRequest, RawResponse
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.error_and_response_mapping import map_network_error, map_playwright_error
from longstop.fetching.browser.intercept import Capture, ResponsePattern, pattern_of
from longstop.fetching.browser.session import Session
from longstop.fetching.browser.tab import Tab
from longstop.fetching.browser.tasks_and_close_after_last_use import TaskSet
from longstop.fetching.browser.traffic import NetworkCount, request_bytes
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.browsers import PageMeasured, PageRotated, PageRotationFailed


class ModeReader:
    """Reads responses of one source in a session, in a given mode, and replaces pages that have received much."""

    def __init__(
        self,
        source: str,
        browsing: BrowserPolicy,
        bus: Bus,
        *,
        on_refusal: Callable[[errors.FetchError, Session], None],
    ) -> None:
        self._source = source
        self._browsing = browsing
        self._bus = bus
        #: Called if the site refuses a page that is loaded to replace another one; in a request the error is raised.
        self._on_refusal = on_refusal
        #: Called with the URL of an open page when its site signals a change.
        self.on_signal: Callable[[str], None] = lambda _: None
        self._loading = asyncio.Semaphore(browsing.max_loads)
        self._next_rotation_at = float("-inf")
        self._rotations = TaskSet()

    async def read(self, mode: Mode, request: FetchRequest, session: Session) -> RawResponse:
        """Return a response in this mode, or in a more expensive one where this one is not possible."""
        self._rotate_if_due(session)
        if request.is_rendered:
            return await self._read_rendered(request, session)
        match mode:
            case Mode.HTTP:
                return await self._by_http(request, session)
            case Mode.PAGE:
                return await self._from_inside(request, session)
            case Mode.PASSIVE if request.page:
                return await self._passively(request, session)
            case _:
                return await self._by_navigation(request, session)

    async def aclose(self) -> None:
        await self._rotations.aclose()

    async def _by_navigation(self, request: FetchRequest, session: Session) -> RawResponse:
        """Load the page, unless it was loaded just now, and capture what it receives."""
        requested_at = asyncio.get_running_loop().time()
        url = request.page or request.url
        pattern = pattern_of(request)
        async with self._using(session, url) as tab:
            tab.interception.expect(pattern)
            async with tab.lock, self._measured(request, Mode.NAVIGATE, tab):
                after = tab.last_returned(pattern)
                is_fresh = request.page and tab.is_ready and requested_at - tab.loaded_at < self._browsing.fresh_seconds
                if not is_fresh or (after > tab.loaded_after and not await self._updates_soon(tab, pattern, after)):
                    after = tab.interception.number
                    await self._load(tab, url)
                if request.page and not self._is_requested_by_page(request):
                    await tab.check_loaded()
                    return await tab.fetch(request)
                capture = await (tab.response(pattern, after) if request.page else tab.document())
        return _response_of(capture, session)

    async def _updates_soon(self, tab: Tab, pattern: ResponsePattern, after: int) -> bool:
        """Return whether a page that was loaded just now soon receives another such response by itself."""
        try:
            async with asyncio.timeout(self._browsing.fresh_seconds):
                await tab.wait_for(pattern, after)
        except TimeoutError:
            return False
        return True

    async def _read_rendered(self, request: FetchRequest, session: Session) -> RawResponse:
        """Read the rendered HTML of an open page; an inactive page is loaded again first."""
        url = request.page or request.url
        async with self._using(session, url) as tab, tab.lock, self._measured(request, Mode.NAVIGATE, tab):
            if not tab.is_active(self._browsing.active_seconds):
                await self._load(tab, url)
            return await tab.rendered(self._browsing.settle_seconds)

    async def _passively(self, request: FetchRequest, session: Session) -> RawResponse:
        """Capture what an open page requests by itself; what it never requests is requested from inside it."""
        pattern = pattern_of(request)
        tab = session.open_tab(request.page)
        if tab is None:
            return await self._by_navigation(request, session)
        if pattern in tab.never_requested or tab.is_outdated(pattern) or not self._is_requested_by_page(request):
            return await self._from_inside(request, session)
        tab.interception.expect(pattern)
        after = tab.last_returned(pattern, max_age_seconds=self._browsing.max_capture_age_seconds)
        async with tab.in_use(), self._measured(request, Mode.PASSIVE, tab):
            try:
                async with asyncio.timeout(self._browsing.passive_seconds):
                    return _response_of(await tab.response(pattern, after), session)
            except TimeoutError:
                # Probed while in use: a page that was replaced closes after its last user.
                if not await tab.probe(self._browsing.probe_seconds):
                    raise errors.BrowserLost("the page does not respond") from None
                tab.never_requested.add(pattern)
        return await self._from_inside(request, session)

    async def _from_inside(self, request: FetchRequest, session: Session) -> RawResponse:
        """Send the request from inside an open page of the same origin, as its own script would."""
        tab = session.same_origin_tab(request.page or request.url)
        if tab is None:
            return await self._by_navigation(request, session)
        pattern = pattern_of(request)
        are_headers_known = session.headers_for(request.url) is not None
        if not are_headers_known:
            tab.interception.expect(pattern)
        async with tab.in_use():
            response = await tab.fetch(request)
        # Other requests use the same page at the same time: only this one is counted.
        self._report(request, Mode.PAGE, NetworkCount(requests_total=1, bytes_in_est=response.wire_bytes, captured=1))
        capture = None if are_headers_known else tab.interception.latest(pattern)
        if capture is not None:
            session.remember_headers(capture.url, capture.request_headers)
        return response

    def _is_requested_by_page(self, request: FetchRequest) -> bool:
        """Return whether the page sends this request by itself. Two POSTs to one URL cannot be distinguished."""
        calls, path = self._browsing.calls, urlsplit(request.url).path
        return request.method == "GET" and (not calls or any(fnmatchcase(path, each) for each in calls))

    async def _by_http(self, request: FetchRequest, session: Session) -> RawResponse:
        """Send the request by HTTP with the page's headers, cookies and proxy."""
        page_headers = session.headers_for(request.url)
        if page_headers is None:
            return await self._from_inside(request, session)
        cookies = "; ".join(f"{each.get('name')}={each.get('value')}" for each in await session.cookies(request.url))
        headers = {**page_headers, "Accept-Language": session.profile.accept_language, **request.headers}
        if cookies:
            headers["Cookie"] = cookies
        page = await session.http.fetch(msgspec.structs.replace(request, headers=headers))
        if session.plan.meter is not None:
            session.plan.meter(page.wire_bytes + request_bytes(request.method, request.url, headers))
        self._report(request, Mode.HTTP, NetworkCount(requests_total=1, bytes_in_est=page.wire_bytes, captured=1))
        return RawResponse(status=page.status, headers=page.headers, body=page.body, wire_bytes=page.wire_bytes)

    async def _load(self, tab: Tab, url: str) -> None:
        async with self._turn():
            tab.loaded_after = tab.interception.number
            await tab.load(url, self._browsing.navigation_seconds)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn to load a page. A full queue is our own doing, so it counts as no failure of the site."""
        try:
            async with asyncio.timeout(self._browsing.queue_seconds):
                await self._loading.acquire()
        except TimeoutError:
            raise errors.BrowserBusy(f"{self._browsing.max_loads} pages are loading already") from None
        try:
            yield
        finally:
            self._loading.release()

    @asynccontextmanager
    async def _using(self, session: Session, url: str) -> AsyncIterator[Tab]:
        tab = session.open_tab(url)
        if tab is None:
            async with self._turn():
                tab = await session.tab(url)
        tab.interception.on_signal = lambda: self.on_signal(url)
        async with tab.in_use():
            yield tab

    @asynccontextmanager
    async def _measured(self, request: FetchRequest, mode: Mode, tab: Tab) -> AsyncIterator[None]:
        before = msgspec.structs.replace(tab.interception.traffic.count)
        try:
            yield
        finally:
            self._report(request, mode, tab.interception.traffic.count.since(before))

    def _report(self, request: FetchRequest, mode: Mode, count: NetworkCount) -> None:
        counts = msgspec.structs.asdict(count)
        self._bus.emit(PageMeasured(source=self._source, request=str(request), mode=mode, **counts))

    # --- rotation --------------------------------------------------------------------------------------------

    def _rotate_if_due(self, session: Session) -> None:
        """Start to replace the page of a session that has received most, one at a time and with pauses.

        While a page shows the same document, Chromium keeps all of its responses in memory for the debugging protocol.
        Only another document frees them. Requests in the old page are not interrupted.
        """
        now = asyncio.get_running_loop().time()
        if now < self._next_rotation_at:
            return
        due = {url: tab for url, tab in session.open_tabs.items() if self._is_due(tab)}
        if due:
            self._next_rotation_at = now + self._browsing.page_seconds
            url = max(due, key=lambda each: due[each].interception.traffic.decoded_bytes)
            self._rotations.start(self._rotate(session, url, due[url]))

    def _is_due(self, tab: Tab) -> bool:
        traffic, policy = tab.interception.traffic, self._browsing
        return traffic.responses >= policy.max_responses or traffic.decoded_bytes >= policy.max_response_bytes

    async def _rotate(self, session: Session, url: str, old: Tab) -> None:
        """Replace a page; if it cannot be loaded now the old one stays in use, unless the site refused."""
        traffic, seconds = old.interception.traffic, self._browsing.page_seconds
        event = PageRotated(source=self._source, answers=traffic.responses, decoded_bytes=traffic.decoded_bytes)
        try:
            async with asyncio.timeout(seconds):
                is_rotated = await session.rotate(url, old, self._load_and_check)
        except TimeoutError:
            self._rotation_failed(session, errors.FetchTimeout(f"the new page did not load within {seconds:g} s"))
        except PlaywrightError as error:
            self._rotation_failed(session, map_playwright_error(error))
        except errors.FetchError as error:
            self._rotation_failed(session, error)
        else:
            self._next_rotation_at = asyncio.get_running_loop().time() + self._browsing.rotation_seconds
            if is_rotated:
                self._bus.emit(event)

    def _rotation_failed(self, session: Session, error: errors.FetchError) -> None:
        self._bus.emit(PageRotationFailed(source=self._source, reason=f"{type(error).__name__}: {error.reason}"))
        if isinstance(error, errors.SourceRefused | errors.ProxyRefused):
            self._on_refusal(error, session)

    async def _load_and_check(self, tab: Tab, url: str) -> None:
        await self._load(tab, url)
        await tab.check_loaded()


def _response_of(capture: Capture, session: Session) -> RawResponse:
    session.remember_headers(capture.url, capture.request_headers)
    if capture.failure:
        raise map_network_error(capture.failure)
    if capture.body is None:
        raise errors.BodyTooLarge(f"more than {session.plan.policy.max_body_bytes} bytes after decompression")
    return RawResponse(status=capture.status, headers=capture.headers, body=capture.body, wire_bytes=capture.wire_bytes)
