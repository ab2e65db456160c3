"""The browser behind the fetch seam: the cheapest way that works brings the page."""

import asyncio
from collections.abc import Callable
from secrets import token_hex

from playwright.async_api import Error as PlaywrightError

from longstop.clock import Clock
from longstop.errors import (
    BrowserLost,
    BudgetSpent,
    FetchError,
    FetchTimeout,
    ProxyRefused,
    SourceRefused,
    belonging_to,
)
from longstop.fetching.addresses import allowed_target
from longstop.fetching.base import FetchRequest, Page
from longstop.fetching.browser.base import Mode
from longstop.fetching.browser.bulkhead import Bulkhead
from longstop.fetching.browser.foreign import translated
from longstop.fetching.browser.judging import wrong_with
from longstop.fetching.browser.learning import Learning
from longstop.fetching.browser.meter import ProxyMeter
from longstop.fetching.browser.policy import BrowserPolicy
from longstop.fetching.browser.proxies import ProxyRing
from longstop.fetching.browser.session import Session
from longstop.fetching.browser.sessions import MakeHttp, Sessions
from longstop.fetching.browser.tab import Answer
from longstop.fetching.browser.ways import Ways
from longstop.fetching.guards import FetchPolicy
from longstop.model.match import Priority
from longstop.telemetry.bus import Bus

#: Who gives up after this share of the time that an answer may take has waited long enough to call it a time-out.
GIVEN_UP_SHARE = 0.5


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
        meter: ProxyMeter | None = None,
    ) -> None:
        self._policy = policy
        self._browsing = browsing
        self._clock = clock
        self._meter = meter
        self._sessions = Sessions(
            bulkhead=bulkhead,
            policy=policy,
            browsing=browsing,
            make_http=make_http,
            clock=clock,
            bus=bus,
            proxies=proxies,
            dice=dice,
            meter=meter.count if meter is not None else None,
        )
        self._ways = Ways(source, browsing=browsing, http_of=self._sessions.http_of, on_refusal=self._failed, bus=bus)
        self._learning = Learning(source, browsing.modes, proxies, bus)
        self._is_closed = False

    @property
    def mode(self) -> Mode:
        """The way in which the next page is read."""
        return self._learning.mode

    @property
    def sessions(self) -> tuple[Session, ...]:
        return self._sessions.all

    @property
    def on_signal(self) -> Callable[[str], None] | None:
        """Called with the address of an open page that is told by its site that something has changed."""
        return self._ways.on_signal

    @on_signal.setter
    def on_signal(self, call: Callable[[str], None] | None) -> None:
        self._ways.on_signal = call

    async def fetch(self, request: FetchRequest) -> Page:
        with belonging_to(request.source, str(request)):
            if self._is_closed:
                raise BrowserLost("the fetcher was closed")
            self._afford(request)
            for url in (request.url, request.page or request.url):
                allowed_target(url, self._policy.hosts, self._policy.allow_private_addresses)
            started = self._clock.monotonic()
            deadline = asyncio.get_running_loop().time() + self._browsing.page_seconds
            async with self._sessions.lent(deadline) as session:
                answer = await self._judged(request, session, deadline)
                seconds = self._clock.monotonic() - started
            return Page(
                request=request,
                status=answer.status,
                headers=answer.headers,
                body=answer.body,
                elapsed_seconds=seconds,
                wire_bytes=answer.wire_bytes,
            )

    async def picture(self, address: str) -> bytes | None:
        """Return a PNG of the page that is open at an address; `None` when there is none, or it does not answer."""
        open_tabs = (session.open_tab(address) for session in self.sessions)
        tab = next((tab for tab in open_tabs if tab is not None), None)
        return await tab.picture(self._browsing.picture_seconds) if tab is not None else None

    async def aclose(self) -> None:
        """Close the sessions; the browser belongs to the bulkhead."""
        if not self._is_closed:
            self._is_closed = True
            await self._ways.aclose()
            await self._sessions.aclose()

    async def _judged(self, request: FetchRequest, session: Session, deadline: float) -> Answer:
        """Bring an answer the way that is due, and learn from how it went."""
        started = self._clock.monotonic()
        try:
            answer = await self._within(request, session, deadline)
        except FetchError as error:
            self._failed(error, session)
            raise
        except asyncio.CancelledError:
            # The guards' own deadline, which a fast site is given less of, ends an attempt in this way.
            waited = self._clock.monotonic() - started
            if self._is_long(waited):
                self._failed(FetchTimeout(f"given up after {waited:.1f} s"), session)
            raise
        self._succeeded(request, session, len(answer.body))
        return answer

    async def _within(self, request: FetchRequest, session: Session, deadline: float) -> Answer:
        """Bring an answer by its deadline; what did not answer is looked into by itself, nobody waits for that."""
        left = deadline - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(deadline):
                answer = await self._ways.bring(self.mode, request, session)
        except TimeoutError:
            self._sessions.look_into(session)
            raise self._too_late(left) from None
        except PlaywrightError as error:
            self._sessions.look_into(session)
            raise translated(error) from None
        except (asyncio.CancelledError, BrowserLost):
            self._sessions.look_into(session)
            raise
        wrong = wrong_with(answer.status, answer.headers, answer.body, self._clock.now())
        if wrong is not None:
            raise wrong
        return answer

    def _too_late(self, left: float) -> FetchError:
        """Return whose fault it is that nothing came by the deadline: the page had only what was left of the time."""
        if self._is_long(left):
            return FetchTimeout(f"no whole answer within {self._browsing.page_seconds:g} s")
        return BrowserLost(f"the browser was ready too late: {left:.1f} s were left for the page")

    def _is_long(self, seconds: float) -> bool:
        return seconds >= GIVEN_UP_SHARE * self._browsing.page_seconds

    def _afford(self, request: FetchRequest) -> None:
        """Raise when the month's bytes are not for this request; once they are spent, open pages stop as well."""
        if self._meter is None or self._meter.may_spend(request.priority):
            return
        if not self._meter.may_spend(Priority.LIVE):
            for session in self.sessions:
                self._sessions.forget(session)
        raise BudgetSpent(
            f"the month's bytes through the proxy are not for {request.priority.name.lower()} matches now"
        )

    def _succeeded(self, request: FetchRequest, session: Session, size: int) -> None:
        name, now = session.plan.name, self._clock.monotonic()
        session.engine.timeouts = 0
        if request.is_rendered:
            self._learning.answered(name)
            self._sessions.tidy(session)
            return
        self._learning.succeeded(name, now)
        if self._learning.is_distrusted(name, request.url, size, now):
            self._sessions.forget(session)
        else:
            self._sessions.tidy(session)

    def _failed(self, error: FetchError, session: Session) -> None:
        if isinstance(error, FetchTimeout):
            session.engine.timeouts += 1
        elif not isinstance(error, BrowserLost):
            session.engine.timeouts = 0  # it was answered, if not well
        self._learning.failed(error, session.plan.name, self._clock.monotonic())
        # A credential that was refused once is not shown again by the same context, though the proxy may know it now.
        if isinstance(error, SourceRefused | ProxyRefused):
            self._sessions.forget(session)


def new_session_name() -> str:
    """Return a name for a session with the proxy."""
    return token_hex(4)
