"""One open page: loading it, capturing what its script receives, sending requests from inside it, and closing it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from time import monotonic
from typing import Any

from playwright.async_api import CDPSession, JSHandle, Page
from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import BodyTooLarge, BrowserLost, FetchError, ForbiddenTarget
from longstop.fetching.base import FetchRequest, RawResponse
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy
from longstop.fetching.browser.closing import PAGE_SECONDS, closes_within
from longstop.fetching.browser.error_and_response_mapping import map_playwright_error, response_error
from longstop.fetching.browser.intercept import Capture, Interception, ResponsePattern
from longstop.fetching.browser.profile_and_stealth_script import Profile
from longstop.fetching.browser.tasks_and_close_after_last_use import TaskSet
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy

#: Reads no more than the limit, whatever the site sends.
_FETCH = """async ([url, method, body, headers, limit, stop]) => {
  const sent = body === null ? undefined : body;
  const response = await fetch(url, {method, body: sent, headers, cache: 'no-store', signal: stop.signal});
  const reader = response.body ? response.body.getReader() : null;
  const parts = [];
  let size = 0;
  while (reader) {
    const {done, value} = await reader.read();
    if (done) break;
    size += value.length;
    if (size > limit) { await reader.cancel(); return {tooLarge: true}; }
    parts.push(value);
  }
  const text = await new Blob(parts).text();
  return {url: response.url, status: response.status, headers: Object.fromEntries(response.headers), text};
}"""
#: Lets the page's script render what it received: returns after the next change, or if there is none for a moment.
_AFTER_RENDERING = """() => new Promise((done) => {
  const rendering = new MutationObserver(() => { rendering.disconnect(); setTimeout(done); });
  rendering.observe(document, {subtree: true, childList: true, characterData: true});
  setTimeout(done, 250);
})"""
#: Measures the document inside the browser: one that is far too large could not be transferred at all.
_IS_LARGER = "(limit) => (document.documentElement?.outerHTML.length ?? 0) > limit"

#: The layout has the size of the screen, but is painted at this scale, which costs next to nothing.
_MINIMAL_SCALE = 0.02


class Tab:
    def __init__(
        self,
        page: Page,
        cdp: CDPSession,
        interception: Interception,
        profile: Profile,
        policy: FetchPolicy,
        clock: Clock,
    ) -> None:
        self._page = page
        self.cdp = cdp
        self._profile = profile
        self._policy = policy
        self._clock = clock
        self.interception = interception
        #: Held while the page is loading.
        self.lock = asyncio.Lock()
        #: Why it can no longer be used; empty while it can.
        self.lost = ""
        self.used_at = monotonic()
        #: When it was last loaded, by the event loop's clock.
        self.loaded_at = float("-inf")
        #: The number of the latest response at that time.
        self.loaded_after = 0
        self.is_ready = False
        #: Whether it was closed because a response exceeded the limit.
        self._is_oversized = False
        #: Whether a request that used it has timed out.
        self.is_suspect = False
        self.users = 0
        #: Called when a user has released it.
        self.on_released: Callable[[], None] | None = None
        #: The number of the latest response that was returned, by pattern.
        self._returned: dict[ResponsePattern, int] = {}
        #: What the page does not request by itself.
        self.never_requested: set[ResponsePattern] = set()
        self._tasks = TaskSet()
        interception.on_oversize = self._close_oversized
        page.on("crash", lambda _: self.lose("the page crashed"))
        page.on("close", lambda _: self.lose("the page was closed"))

    @classmethod
    async def open(
        cls, page: Page, policy: FetchPolicy, browsing: BrowserPolicy, profile: Profile, clock: Clock
    ) -> "Tab":
        """Set up a page: it captures and blocks before its first navigation."""
        cdp = await page.context.new_cdp_session(page)
        await cdp.send("Emulation.setUserAgentOverride", profile.user_agent_override)
        tab = cls(page, cdp, Interception(cdp, policy, browsing), profile, policy, clock)
        await tab._set_scale(_MINIMAL_SCALE)
        await tab.interception.start()
        return tab

    @property
    def is_idle(self) -> bool:
        return not self.users

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Use the page: it is not closed meanwhile. A time-out makes it suspect."""
        self.users += 1
        try:
            yield
        except (asyncio.CancelledError, TimeoutError, BrowserLost):
            self.is_suspect = True
            raise
        finally:
            self.users -= 1
            self.used_at = monotonic()
            if self.on_released is not None:
                self.on_released()

    def inherit(self, other: "Tab") -> None:
        """Take over what another page of the same URL has learned, to replace it."""
        self.interception.inherit(other.interception)
        self.never_requested |= other.never_requested

    def lose(self, reason: str) -> None:
        """Give the page up, and wake all waiting requests with the reason."""
        self.lost = self.lost or reason
        self.is_ready = False
        self.interception.traffic.settle()
        self.interception.notify()

    async def load(self, url: str, seconds: float) -> None:
        """Load a URL, and return after its first response. A page that fails to load is not used again."""
        self.is_ready = False
        self.interception.start_navigation()
        self.loaded_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(seconds):
                await self._page.goto(url, wait_until="commit", timeout=0)
            self.is_ready = not self.lost
        except PlaywrightError as error:
            raise self._map_error(error) from None
        finally:
            if not self.is_ready:
                # A navigation that is still under way would interrupt the next one.
                self.lose("the page could not be loaded")

    async def document(self) -> Capture:
        """Return the response to the navigation."""
        while (document := self.interception.document) is None:
            self._check_usable()
            await self.interception.changed()
        return document

    async def response(self, pattern: ResponsePattern, after: int) -> Capture:
        """Return the first matching response with a higher number, and remember that it was returned."""
        capture = await self.wait_for(pattern, after)
        self._returned[pattern] = max(capture.number, self._returned.get(pattern, 0))
        return capture

    async def wait_for(self, pattern: ResponsePattern, after: int) -> Capture:
        """Wait for a matching response with a higher number; raise if the document itself is an error."""
        while (capture := self.interception.latest(pattern, after)) is None:
            self._check_usable()
            self._check_document()
            await self.interception.changed()
        return capture

    def last_returned(self, pattern: ResponsePattern, max_age_seconds: float = inf) -> int:
        """Return the number of the latest response that was returned already, or is too old to be returned."""
        latest, oldest = self.interception.latest(pattern), asyncio.get_running_loop().time() - max_age_seconds
        returned = self._returned.get(pattern, 0)
        return max(returned, latest.number) if latest is not None and latest.at < oldest else returned

    def is_outdated(self, pattern: ResponsePattern) -> bool:
        """Return whether the site has signalled a change since the page received its latest response."""
        latest = self.interception.latest(pattern)
        return latest is not None and latest.at < self.interception.signalled_at

    async def check_loaded(self) -> None:
        """Wait for the document, and raise if it is an error."""
        await self.document()
        self._check_document()

    async def fetch(self, request: FetchRequest) -> RawResponse:
        """Send a request from inside the page, as its own script would."""
        body = None if request.body is None else request.body.decode("utf-8")
        headers = dict(request.headers)
        if body is not None and "content-type" not in map(str.lower, headers):
            headers["Content-Type"] = "application/json"
        limit = self._policy.max_body_bytes
        try:
            received = await self._run_fetch([request.url, request.method, body, headers, limit])
        except PlaywrightError as error:
            raise self._map_error(error) from None
        if received.get("tooLarge"):
            raise BodyTooLarge(f"more than {limit} bytes after decompression")
        text = str(received["text"]).encode("utf-8", "surrogatepass")
        return RawResponse(status=int(received["status"]), headers=received["headers"], body=text, wire_bytes=len(text))

    def is_active(self, seconds: float) -> bool:
        """Return whether the page was loaded, or received something, within this time."""
        active_at = max(self.loaded_at, self.interception.active_at)
        return self.is_ready and asyncio.get_running_loop().time() - active_at < seconds

    async def rendered(self, seconds: float) -> RawResponse:
        """Return the rendered HTML once the page's script has its responses, or after this time."""
        limit, document = self._policy.max_body_bytes, await self.document()
        self._check_document()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._settle()
            is_larger = await self._page.evaluate(_IS_LARGER, limit)
            text = b"" if is_larger else (await self._page.content()).encode("utf-8", "surrogatepass")
        except PlaywrightError as error:
            raise self._map_error(error) from None
        if is_larger or len(text) > limit:
            raise BodyTooLarge(f"the rendered page has more than {limit} bytes")
        return RawResponse(status=document.status, headers=document.headers, body=text, wire_bytes=document.wire_bytes)

    async def screenshot(self, seconds: float) -> bytes | None:
        """Return a screenshot as PNG; `None` if the page does not respond in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._set_scale(1)
                return await self._page.screenshot(timeout=0)
        except (PlaywrightError, TimeoutError):
            return None
        finally:
            # Otherwise every later change of the page would be painted in full size.
            await closes_within(self._set_scale(_MINIMAL_SCALE), PAGE_SECONDS)

    async def probe(self, seconds: float) -> bool:
        """Return whether the page's script still responds."""
        if self.lost:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._page.evaluate("1")
        except TimeoutError:
            return False
        except PlaywrightError:
            pass  # a response as well: it is navigating, or it is lost, which is checked below
        return not self.lost

    async def aclose(self) -> bool:
        """Close the page; return whether it closed in time."""
        self.lose("the page was closed")
        await self.interception.aclose()
        await self._tasks.aclose()
        return await closes_within(self._page.close(), PAGE_SECONDS)

    def _close_oversized(self) -> None:
        """Close the page at once: nothing else stops a response without an end."""
        self._is_oversized = True
        self.lose(f"the page received a response of more than {self._policy.max_body_bytes} bytes")
        self._tasks.start(closes_within(self._page.close(), PAGE_SECONDS))

    async def _run_fetch(self, arguments: list[Any]) -> dict[str, Any]:
        """Run `fetch` in the page. A request that is given up is aborted: a page has only a few connections."""
        controller = await self._page.evaluate_handle("new AbortController()")
        try:
            received: dict[str, Any] = await self._page.evaluate(_FETCH, [*arguments, controller])
            return received
        finally:
            self._tasks.start(closes_within(_abort(controller), PAGE_SECONDS))

    async def _settle(self) -> None:
        """Wait until the document is parsed, and its script has its responses and has rendered them."""
        await self._page.wait_for_load_state("domcontentloaded", timeout=0)
        while True:
            while not self.interception.is_quiet:
                self._check_usable()
                await self.interception.changed()
            await self._page.evaluate(_AFTER_RENDERING)
            if self.interception.is_quiet:
                return

    async def _set_scale(self, scale: float) -> None:
        await self.cdp.send("Emulation.setDeviceMetricsOverride", self._profile.metrics_override(scale))

    def _map_error(self, error: PlaywrightError) -> FetchError:
        if self.lost:
            return self._loss()
        if self.interception.forbidden:
            return ForbiddenTarget(f"{self.interception.forbidden} is not in the source's host list")
        return map_playwright_error(error)

    def _check_usable(self) -> None:
        if self.lost:
            raise self._loss()

    def _loss(self) -> FetchError:
        """Return why the page can no longer be used as an error: a response that is too large is the site's doing."""
        return (BodyTooLarge if self._is_oversized else BrowserLost)(self.lost)

    def _check_document(self) -> None:
        """Raise if the document is an error: what its script would request will not come."""
        document = self.interception.document
        if document is None:
            return
        error = response_error(document.status, document.headers, document.body, self._clock.now())
        if error is not None:
            raise error


async def _abort(controller: JSHandle) -> None:
    """Abort a request that may still be under way, and release the controller."""
    await controller.evaluate("(controller) => controller.abort()")
    await controller.dispose()
