"""One open page: loading it, hearing what its script gets, asking from inside it, and closing it."""

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import Any

from msgspec import Struct
from playwright.async_api import BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import BodyTooLarge, BrowserLost, FetchError, ForbiddenTarget, SourceChallenged
from longstop.fetching.answers import error_of
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.blocking import blocked_patterns, paused_patterns
from longstop.fetching.browser.closing import PAGE_SECONDS, went
from longstop.fetching.browser.foreign import translated
from longstop.fetching.browser.intercept import Capture, Interception, Wanted, WhiteList
from longstop.fetching.browser.profile import Profile
from longstop.fetching.guards import FetchPolicy
from longstop.sources.challenge import is_challenge

#: Reads no more than the cap, whatever the site sends.
_ASK = """async ([url, method, body, headers, cap]) => {
  const answer = await fetch(url, {method, body: body === null ? undefined : body, headers, cache: 'no-store'});
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


class Answer(Struct, frozen=True, kw_only=True):
    """What came back, whichever way it was asked."""

    status: int
    #: Names in lower case.
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int


class Tab:
    """One page of a session."""

    def __init__(self, page: Page, cdp: CDPSession, heard: Interception, policy: FetchPolicy, clock: Clock) -> None:
        self._page = page
        self.cdp = cdp
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
        self.is_ready = False
        #: Whether somebody has waited for it in vain.
        self.is_suspect = False
        #: How many use it now.
        self.users = 0
        #: The newest answer that was handed out, for each that is waited for.
        self._handed: dict[Wanted, int] = {}
        #: What the page does not ask for by itself.
        self.silent: set[Wanted] = set()
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
        tab = cls(page, cdp, heard, policy, clock)
        blocked = blocked_patterns(
            policy.hosts, allow_private_addresses=policy.allow_private_addresses, is_style_blocked=is_style_blocked
        )
        await heard.begin(blocked=blocked, paused=paused_patterns(is_style_blocked=is_style_blocked))
        return tab

    @property
    def is_idle(self) -> bool:
        return not self.users

    def lose(self, reason: str) -> None:
        """Give the page up; whoever waits for it hears why."""
        self.lost = self.lost or reason
        self.is_ready = False
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
        while (capture := self.heard.newest(wanted, after)) is None:
            self._still_here()
            self._not_refused()
            await self.heard.news()
        self._handed[wanted] = max(capture.number, self._handed.get(wanted, 0))
        return capture

    def handed(self, wanted: Wanted) -> int:
        """Return the number of the newest answer that somebody has got."""
        return self._handed.get(wanted, 0)

    async def ask(self, request: FetchRequest) -> Answer:
        """Ask from inside the page, as its own script would."""
        body = None if request.body is None else request.body.decode("utf-8")
        headers = dict(request.headers)
        if body is not None and "content-type" not in map(str.lower, headers):
            headers["Content-Type"] = "application/json"
        cap = self._policy.max_body_bytes
        try:
            said: dict[str, Any] = await self._page.evaluate(_ASK, [request.url, request.method, body, headers, cap])
        except PlaywrightError as error:
            raise self._meaning_of(error) from None
        if said.get("tooLarge"):
            raise BodyTooLarge(f"more than {cap} bytes after decompression")
        text = str(said["text"]).encode("utf-8", "surrogatepass")
        return Answer(status=int(said["status"]), headers=said["headers"], body=text, wire_bytes=len(text))

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
        return await went(self._page.close(), PAGE_SECONDS)

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
        if document.body is not None and is_challenge(document.body):
            raise SourceChallenged("the page wants proof of a person")
        error = error_of(document.status, document.headers, self._clock.now())
        if error is not None:
            raise error
