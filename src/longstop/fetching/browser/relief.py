"""Relief: a page that has been answered much is opened a second time, and the new one takes its place.

Chromium keeps what a page was answered for as long as the page shows the same document, for those who look into it as
Playwright does; nothing but another document ends that. Whoever reads the page meanwhile notices nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from playwright.async_api import Error as PlaywrightError

from longstop.errors import FetchError, FetchTimeout, ProxyRefused, SourceRefused
from longstop.fetching.browser.errands import Errands
from longstop.fetching.browser.events import PageRotated, PageRotationFailed
from longstop.fetching.browser.foreign import translated
from longstop.fetching.browser.policy import BrowserPolicy
from longstop.fetching.browser.session import Session
from longstop.fetching.browser.tab import Tab
from longstop.telemetry.bus import Bus


class Relief:
    """Relieves worn pages of one source, one at a time and with pauses, so that no crowd of them is loaded."""

    def __init__(
        self,
        source: str,
        *,
        browsing: BrowserPolicy,
        load: Callable[[Tab, str], Awaitable[None]],
        on_refusal: Callable[[FetchError, Session], None],
        bus: Bus,
    ) -> None:
        self._source = source
        self._browsing = browsing
        self._load = load
        #: Told of a refusal, which counts whoever it is that was refused.
        self._on_refusal = on_refusal
        self._bus = bus
        self._next_at = float("-inf")
        self._errands = Errands()

    def consider(self, session: Session) -> None:
        """Begin to relieve the page of a session that is worn most, unless another one was just now."""
        now = asyncio.get_running_loop().time()
        if now < self._next_at:
            return
        worn = {address: tab for address, tab in session.open_tabs.items() if self._is_worn(tab)}
        if worn:
            self._next_at = now + self._browsing.page_seconds
            address = max(worn, key=lambda each: worn[each].heard.flows.decoded_bytes)
            self._errands.run(self._relieve(session, address, worn[address]))

    async def aclose(self) -> None:
        await self._errands.aclose()

    def _is_worn(self, tab: Tab) -> bool:
        flows = tab.heard.flows
        return flows.answers >= self._browsing.max_answers or flows.decoded_bytes >= self._browsing.max_answer_bytes

    async def _relieve(self, session: Session, address: str, worn: Tab) -> None:
        """Relieve a page; one that cannot be loaded now goes on as it is, unless that is a refusal."""
        flows = worn.heard.flows
        event = PageRotated(source=self._source, answers=flows.answers, decoded_bytes=flows.decoded_bytes)
        try:
            is_relieved = await self._within_its_time(session, address, worn)
        except FetchError as error:
            self._bus.emit(PageRotationFailed(source=self._source, reason=f"{type(error).__name__}: {error.reason}"))
            if isinstance(error, SourceRefused | ProxyRefused):
                self._on_refusal(error, session)
            return
        self._next_at = asyncio.get_running_loop().time() + self._browsing.relief_seconds
        if is_relieved:
            self._bus.emit(event)

    async def _within_its_time(self, session: Session, address: str, worn: Tab) -> bool:
        seconds = self._browsing.page_seconds
        try:
            async with asyncio.timeout(seconds):
                return await session.relieve(address, worn, self._loaded)
        except TimeoutError:
            raise FetchTimeout(f"the page was not there again within {seconds:g} s") from None
        except PlaywrightError as error:
            raise translated(error) from None

    async def _loaded(self, tab: Tab, address: str) -> None:
        await self._load(tab, address)
        await tab.arrived()
