"""One open page: loading it, hearing what its script gets, asking from inside it, and closing it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from math import inf
from time import monotonic
from typing import Any

from msgspec import Struct
from playwright.async_api import BrowserContext, CDPSession, JSHandle, Page
from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import BodyTooLarge, BrowserLost, FetchError, ForbiddenTarget
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.blocking import blocked_patterns, paused_patterns
from longstop.fetching.browser.closing import PAGE_SECONDS, went
from longstop.fetching.browser.errands import Errands
from longstop.fetching.browser.foreign import translated
from longstop.fetching.browser.intercept import Capture, Interception, Wanted, WhiteList, wanted_by
from longstop.fetching.browser.judging import wrong_with
from longstop.fetching.browser.profile import Profile
from longstop.fetching.guards import FetchPolicy

#: Reads no more than the cap, whatever the site sends.
_ASK = """async ([url, method, body, headers, cap, stop]) => {
  const sent = body === null ? undefined : body;
  const answer = await fetch(url, {method, body: sent, headers, cache: 'no-store', signal: stop.signal});
  const reader = answer.body ? answer.body.getReader() : null;
  const parts = [];
  let size = 0;
  while (reader) {
    const {done, value} = await reader.read();
    if (done) break;
    size += value.length;
    if (size > cap) { await reader.cancel(); return {tooLarge: true}; }
    parts.push(value);
  }
  const text = await new Blob(parts).text();
  return {url: answer.url, status: answer.status, headers: Object.fromEntries(answer.headers), text};
}"""
#: Lets the page's script draw what has come: until something is drawn, or a moment in which nothing is.
_A_TURN = """() => new Promise((done) => {
  const drawing = new MutationObserver(() => { drawing.disconnect(); setTimeout(done); });
  drawing.observe(document, {subtree: true, childList: true, characterData: true});
  setTimeout(done, 250);
})"""
#: Measures what is drawn where it is: what is far too large would not come through to us at all.
_IS_LARGER = "(cap) => (document.documentElement?.outerHTML.length ?? 0) > cap"

#: Nobody looks at a page: it has all of its measures, and is drawn as a speck, which costs next to nothing.
_UNSEEN = 0.02


class Answer(Struct, frozen=True, kw_only=True):
    """What came back, whichever way it was asked."""

    status: int
    #: Names in lower case.
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int


class Tab:
    """One page of a session."""

    def __init__(
        self,
        page: Page,
        cdp: CDPSession,
        heard: Interception,
        profile: Profile,
        policy: FetchPolicy,
        clock: Clock,
    ) -> None:
        self._page = page
        self.cdp = cdp
        self._profile = profile
        self._policy = policy
        self._clock = clock
        self.heard = heard
        #: Held while the page is being loaded.
        self.lock = asyncio.Lock()
        #: Why it can no longer be used; empty while it can.
        self.lost = ""
        self.used_at = monotonic()
        #: When it was last loaded, by the loop's clock.
        self.loaded_at = float("-inf")
        #: The number of the newest answer when it was.
        self.loaded_after = 0
        self.is_ready = False
        #: Whether it was closed since more came than the cap allows.
        self._is_cut_off = False
        #: Whether somebody has waited for it in vain.
        self.is_suspect = False
        #: How many use it now.
        self.users = 0
        #: Called when somebody has left it.
        self.on_left: Callable[[], None] | None = None
        #: The newest answer that was handed out, for each that is waited for.
        self._handed: dict[Wanted, int] = {}
        #: What the page does not ask for by itself.
        self.silent: set[Wanted] = set()
        self._errands = Errands()
        heard.on_excess = self._cut_off
        page.on("crash", lambda _: self.lose("the page crashed"))
        page.on("close", lambda _: self.lose("the page was closed"))

    @classmethod
    async def open(
        cls,
        page: Page,
        context: BrowserContext,
        policy: FetchPolicy,
        white_list: WhiteList,
        *,
        is_style_blocked: bool,
        profile: Profile,
        clock: Clock,
    ) -> "Tab":
        """Make a page ready: it listens and blocks before it is sent anywhere."""
        cdp = await context.new_cdp_session(page)
        await cdp.send("Emulation.setUserAgentOverride", profile.user_agent_override)
        heard = Interception(cdp, policy, white_list)
        tab = cls(page, cdp, heard, profile, policy, clock)
        await tab._draw(_UNSEEN)
        blocked = blocked_patterns(
            policy.hosts, allow_private_addresses=policy.allow_private_addresses, is_style_blocked=is_style_blocked
        )
        await heard.begin(blocked=blocked, paused=paused_patterns(is_style_blocked=is_style_blocked))
        return tab

    @property
    def is_idle(self) -> bool:
        return not self.users

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Use it: it is not closed meanwhile, and who waits for it in vain makes it suspect."""
        self.users += 1
        try:
            yield
        except (asyncio.CancelledError, TimeoutError, BrowserLost):
            self.is_suspect = True
            raise
        finally:
            self.users -= 1
            self.used_at = monotonic()
            if self.on_left is not None:
                self.on_left()

    def take_over(self, other: "Tab") -> None:
        """Learn what another page of the same address knows, to be used in its place."""
        self.heard.take_over(other.heard)
        self.silent |= other.silent

    def lose(self, reason: str) -> None:
        """Give the page up; whoever waits for it hears why."""
        self.lost = self.lost or reason
        self.is_ready = False
        self.heard.flows.settle()
        self.heard.wake()

    async def load(self, url: str, seconds: float) -> None:
        """Load an address, and return once its first answer has come. A page that failed to is not used again."""
        self.is_ready = False
        self.heard.start_navigation()
        self.loaded_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(seconds):
                await self._page.goto(url, wait_until="commit", timeout=0)
            self.is_ready = not self.lost
        except PlaywrightError as error:
            raise self._meaning_of(error) from None
        finally:
            if not self.is_ready:
                # What is still under way in it would interrupt the next load.
                self.lose("its page could not be loaded")

    async def document(self) -> Capture:
        """Return the page's own answer."""
        while (document := self.heard.document) is None:
            self._still_here()
            await self.heard.news()
        return document

    async def answer(self, wanted: Wanted, after: int) -> Capture:
        """Return the first answer that fits and came after that one; the page's own refusal ends the wait."""
        capture = await self.heard_after(wanted, after)
        self._handed[wanted] = max(capture.number, self._handed.get(wanted, 0))
        return capture

    async def heard_after(self, wanted: Wanted, after: int) -> Capture:
        """Wait for the first answer that fits and came after that one, and leave it to be handed out."""
        while (capture := self.heard.newest(wanted, after)) is None:
            self._still_here()
            self._not_refused()
            await self.heard.news()
        return capture

    def handed(self, wanted: Wanted, max_age_seconds: float = inf) -> int:
        """Return the number of the newest answer that somebody has got, or that is too old to be given to anybody."""
        newest, oldest = self.heard.newest(wanted), asyncio.get_running_loop().time() - max_age_seconds
        handed = self._handed.get(wanted, 0)
        return max(handed, newest.number) if newest is not None and newest.at < oldest else handed

    def is_told(self, wanted: Wanted) -> bool:
        """Return whether the site has pushed a sign of change since the page got its newest answer."""
        newest = self.heard.newest(wanted)
        return newest is not None and newest.at < self.heard.signalled_at

    async def arrived(self) -> None:
        """Wait for the page's own answer, and raise when it is a refusal."""
        await self.document()
        self._not_refused()

    async def ask(self, request: FetchRequest) -> Answer:
        """Ask from inside the page, as its own script would."""
        body = None if request.body is None else request.body.decode("utf-8")
        headers = dict(request.headers)
        if body is not None and "content-type" not in map(str.lower, headers):
            headers["Content-Type"] = "application/json"
        cap, after = self._policy.max_body_bytes, self.heard.number
        try:
            said = await self._said([request.url, request.method, body, headers, cap])
        except PlaywrightError as error:
            heard = self.heard.newest(wanted_by(request), after)
            if heard is None or heard.body is not None or heard.failure:
                raise self._meaning_of(error) from None
            said = {"tooLarge": True}
        if said.get("tooLarge"):
            raise BodyTooLarge(f"more than {cap} bytes after decompression")
        text = str(said["text"]).encode("utf-8", "surrogatepass")
        return Answer(status=int(said["status"]), headers=said["headers"], body=text, wire_bytes=len(text))

    def is_living(self, seconds: float) -> bool:
        """Return whether the page was loaded, or has got something, so recently that what it shows is worth taking."""
        return (
            self.is_ready and asyncio.get_running_loop().time() - max(self.loaded_at, self.heard.stirred_at) < seconds
        )

    async def drawn(self, seconds: float) -> Answer:
        """Return what the page's script has drawn, once it has what it asked for, or after that time."""
        try:
            return await self._drawn(seconds)
        except BrowserLost:
            if self._is_cut_off:
                raise BodyTooLarge(f"more than {self._policy.max_body_bytes} bytes came for what is drawn") from None
            raise

    async def _drawn(self, seconds: float) -> Answer:
        cap, document = self._policy.max_body_bytes, await self.document()
        self._not_refused()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._settled()
            is_larger = await self._page.evaluate(_IS_LARGER, cap)
            text = b"" if is_larger else (await self._page.content()).encode("utf-8", "surrogatepass")
        except PlaywrightError as error:
            raise self._meaning_of(error) from None
        if is_larger or len(text) > cap:
            raise BodyTooLarge(f"more than {cap} bytes were drawn")
        return Answer(status=document.status, headers=document.headers, body=text, wire_bytes=document.wire_bytes)

    async def picture(self, seconds: float) -> bytes | None:
        """Return a PNG of what the page shows; `None` when it does not answer in time."""
        with suppress(PlaywrightError, TimeoutError):
            async with asyncio.timeout(seconds):
                await self._draw(1)
                picture = await self._page.screenshot(timeout=0)
                await self._draw(_UNSEEN)
                return picture
        return None

    async def probe(self, seconds: float) -> bool:
        """Return whether the page's script still answers."""
        if self.lost:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._page.evaluate("1")
        except TimeoutError:
            return False
        except PlaywrightError:
            pass  # an answer too: it is on its way to another address, or lost, and then that is known
        return not self.lost

    async def aclose(self) -> bool:
        """Close it; return whether it went when asked to."""
        self.lose("the page was closed")
        await self.heard.aclose()
        await self._errands.aclose()
        return await went(self._page.close(), PAGE_SECONDS)

    def _cut_off(self) -> None:
        """Close the page at once: nothing else ends what comes without an end."""
        self._is_cut_off = True
        self.lose("an answer was larger than the cap")
        self._errands.run(went(self._page.close(), PAGE_SECONDS))

    async def _said(self, question: list[Any]) -> dict[str, Any]:
        """Return what the page was answered; a question that is given up must not hold one of its few connections."""
        stop = await self._page.evaluate_handle("new AbortController()")
        try:
            said: dict[str, Any] = await self._page.evaluate(_ASK, [*question, stop])
            return said
        finally:
            self._errands.run(went(_ended(stop), PAGE_SECONDS))

    async def _settled(self) -> None:
        """Wait until the page is read, its script has been answered, and has had a turn to draw that."""
        await self._page.wait_for_load_state("domcontentloaded", timeout=0)
        while True:
            while not self.heard.is_quiet:
                self._still_here()
                await self.heard.news()
            await self._page.evaluate(_A_TURN)
            if self.heard.is_quiet:
                return

    async def _draw(self, scale: float) -> None:
        await self.cdp.send("Emulation.setDeviceMetricsOverride", self._profile.metrics_override(scale))

    def _meaning_of(self, error: PlaywrightError) -> FetchError:
        if self.lost:
            return BrowserLost(self.lost)
        if self.heard.forbidden:
            return ForbiddenTarget(f"{self.heard.forbidden} is not in the source's host list")
        return translated(error)

    def _still_here(self) -> None:
        if self.lost:
            raise BrowserLost(self.lost)

    def _not_refused(self) -> None:
        """Raise when the page itself is a refusal: what is waited for will not come."""
        document = self.heard.document
        if document is None:
            return
        error = wrong_with(document.status, document.headers, document.body, self._clock.now())
        if error is not None:
            raise error


async def _ended(stop: JSHandle) -> None:
    """End a question that may be under way still, and let go of what ends it."""
    await stop.evaluate("(stop) => stop.abort()")
    await stop.dispose()
