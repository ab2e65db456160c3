"""Fetches pages with a browser, in the cheapest mode that works."""

import asyncio
from collections.abc import Callable

import msgspec
from playwright.async_api import Error as PlaywrightError

from longstop import errors
from longstop.clock import Clock
from longstop.fetching.addresses import allowed_url
from longstop.fetching.base import Fetcher, FetchRequest, HttpProxy, Page, RawResponse
from longstop.fetching.browser.browser_generations import SourceBrowser
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.error_and_response_mapping import map_playwright_error, response_error
from longstop.fetching.browser.fetch_modes import ModeReader
from longstop.fetching.browser.learn_mode_and_proxy_from_responses import ModePolicy
from longstop.fetching.browser.proxy_budget import ProxyMeter
from longstop.fetching.browser.proxy_sessions import ProxyRing
from longstop.fetching.browser.session import Session, SessionPlan
from longstop.fetching.browser.sessions import Sessions
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.model.match import Priority
from longstop.telemetry.bus import Bus

#: A request that waited for this share of its time counts as timed out when it is cancelled.
TIMEOUT_SHARE = 0.5


class BrowserFetcher:
    def __init__(
        self,
        browser: SourceBrowser,
        *,
        policy: FetchPolicy,
        browsing: BrowserPolicy,
        make_http: Callable[[HttpProxy | None], Fetcher],
        clock: Clock,
        bus: Bus,
        proxies: ProxyRing | None = None,
        meter: ProxyMeter | None = None,
    ) -> None:
        self._policy = policy
        self._browsing = browsing
        self._clock = clock
        #: Counts the bytes through the proxy; `None` if they are not counted.
        self._meter = meter
        plan = SessionPlan(
            policy=policy,
            browsing=browsing,
            make_http=make_http,
            country=proxies.account.country if proxies else "",
            meter=meter.count if meter else None,
        )
        self._sessions = Sessions(browser, plan, clock=clock, bus=bus, proxies=proxies)
        self._reader = ModeReader(browser.source, browsing, bus, on_refusal=self._failed)
        self._mode_policy = ModePolicy(browser.source, browsing.modes, proxies, bus)
        self._is_closed = False

    @property
    def mode(self) -> Mode:
        return self._mode_policy.mode

    def distrust(self) -> None:
        """Read the source in a more expensive mode: what it sends in this one may have been altered."""
        self._mode_policy.distrust(self._clock.monotonic())

    def on_signal(self, report: Callable[[str], None]) -> None:
        """Call this with the URL of an open page whenever its site signals a change."""
        self._reader.on_signal = report

    @property
    def sessions(self) -> tuple[Session, ...]:
        return self._sessions.all

    async def fetch(self, request: FetchRequest) -> Page:
        if self._is_closed:
            raise errors.BrowserLost("the fetcher was closed")
        self._check_budget(request)
        for url in (request.url, request.page or request.url):
            allowed_url(url, self._policy.hosts, self._policy.allow_private_addresses)
        deadline = asyncio.get_running_loop().time() + self._browsing.page_seconds
        async with self._sessions.lease(deadline) as session:
            response = await self._read(request, session, deadline)
        return Page(request=request, **msgspec.structs.asdict(response))

    async def screenshot(self, address: str) -> bytes | None:
        """Return a screenshot of an open page as PNG; `None` if it is not open, or does not respond."""
        for session in self.sessions:
            if tab := session.open_tab(address):
                return await tab.screenshot(self._browsing.screenshot_seconds)
        return None

    async def aclose(self) -> None:
        """Close the sessions; the browser belongs to the pool."""
        if not self._is_closed:
            self._is_closed = True
            await self._reader.aclose()
            await self._sessions.aclose()

    async def _read(self, request: FetchRequest, session: Session, deadline: float) -> RawResponse:
        """Read a response in the current mode, and learn from the outcome."""
        started = self._clock.monotonic()
        try:
            response = await self._read_in_time(request, session, deadline)
        except errors.FetchError as error:
            self._failed(error, session)
            raise
        except asyncio.CancelledError:
            # The guards' own deadline, which is shorter for a fast site, cancels a request.
            waited = self._clock.monotonic() - started
            if self._is_long(waited):
                self._failed(errors.FetchTimeout(f"cancelled after {waited:.1f} s"), session)
            raise
        self._succeeded(request, session, len(response.body))
        return response

    async def _read_in_time(self, request: FetchRequest, session: Session, deadline: float) -> RawResponse:
        """Read a response by the deadline. After a time-out the cause is diagnosed in the background."""
        left = deadline - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._reader.read(self.mode, request, session)
        except TimeoutError:
            self._sessions.diagnose(session)
            raise self._timeout_error(left) from None
        except PlaywrightError as error:
            self._sessions.diagnose(session)
            raise map_playwright_error(error) from None
        except (asyncio.CancelledError, errors.BrowserLost):
            self._sessions.diagnose(session)
            raise
        refusal = response_error(response.status, response.headers, response.body, self._clock.now())
        if refusal is not None:
            raise refusal
        return response

    def _timeout_error(self, left: float) -> errors.FetchError:
        """Return the error of a missed deadline: if the browser used up most of the time, the site is not at fault."""
        if self._is_long(left):
            return errors.FetchTimeout(f"no complete response within {self._browsing.page_seconds:g} s")
        return errors.BrowserLost(f"the browser was ready too late: only {left:.1f} s were left for the page")

    def _is_long(self, seconds: float) -> bool:
        return seconds >= TIMEOUT_SHARE * self._browsing.page_seconds

    def _check_budget(self, request: FetchRequest) -> None:
        """Raise if the month's bytes are not available for this request; once all are used, close open pages too."""
        if self._meter is None or self._meter.may_spend(request.priority):
            return
        if not self._meter.may_spend(Priority.LIVE):
            for session in self.sessions:
                self._sessions.discard(session)
        kind = request.priority.name.lower()
        raise errors.BudgetSpent(
            f"the month's bytes through the proxy are used up or reserved: none for {kind} matches"
        )

    def _succeeded(self, request: FetchRequest, session: Session, size: int) -> None:
        session.engine.timeouts = 0
        if self._mode_policy.succeeded(request, session.plan.name, size, self._clock.monotonic()):
            self._sessions.discard(session)
        else:
            self._sessions.close_idle_pages(session)

    def _failed(self, error: errors.FetchError, session: Session) -> None:
        if isinstance(error, errors.FetchTimeout):
            session.engine.timeouts += 1
        elif not isinstance(error, errors.BrowserLost):
            session.engine.timeouts = 0  # the browser did respond
        self._mode_policy.failed(error, session.plan.name, self._clock.monotonic())
        # A context does not send a refused credential again, although the proxy may accept it later.
        if isinstance(error, errors.SourceRefused | errors.ProxyRefused):
            self._sessions.discard(session)
