"""A session: one context with its own look, cookies and way through the proxy, and the pages open in it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from playwright.async_api import BrowserContext, Cookie, ProxySettings

from longstop.clock import Clock
from longstop.errors import BrowserLost
from longstop.fetching.browser.blocking import security_policy, security_script
from longstop.fetching.browser.closing import CONTEXT_SECONDS, PAGE_SECONDS, went
from longstop.fetching.browser.departures import Departures
from longstop.fetching.browser.disguise import disguise_script
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.intercept import WhiteList
from longstop.fetching.browser.owning import owned
from longstop.fetching.browser.profile import Profile, choose_profile
from longstop.fetching.browser.proxies import Credential, ProxyAccount
from longstop.fetching.browser.tab import Tab
from longstop.fetching.guards import FetchPolicy

#: Headers of a page's own question that belong to that one question alone.
_NOT_TO_REPEAT = frozenset({"content-length", "content-type", "cookie", "host", "if-none-match", "if-modified-since"})
#: A session knows the headers of so many addresses.
_MAX_MANNERS = 64


class SessionPlan(Struct, frozen=True, kw_only=True):
    """What a session is made of."""

    name: str
    policy: FetchPolicy
    white_list: WhiteList
    is_style_blocked: bool = True
    #: Pages open at one time.
    max_tabs: int = 64
    #: How long those who use a page may go on once another one has taken its place.
    drain_seconds: float = 60.0
    #: The dice of its look.
    dice: int = 0
    account: ProxyAccount | None = None
    credential: Credential | None = None
    #: Told of all bytes that go through the proxy; `None` where nobody pays for them.
    meter: Callable[[int], None] | None = None


class Session:
    """One context and its pages."""

    def __init__(
        self, plan: SessionPlan, engine: Engine, context: BrowserContext, profile: Profile, clock: Clock
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.profile = profile
        self._clock = clock
        self._context = context
        self._tabs: dict[str, Tab] = {}
        #: Pages whose place another one has taken.
        self._leaving = Departures(Tab.aclose, plan.drain_seconds)
        #: Pages that are being loaded to take another one's place.
        self._relieving: set[Tab] = set()
        self._opening = asyncio.Lock()
        #: How the page's own script asks each address: what it is asked with when we ask by HTTP.
        self._manners: dict[tuple[str, str], Mapping[str, str]] = {}
        self.is_closed = False
        #: How many are in it now.
        self.users = 0

    @classmethod
    async def open(
        cls, plan: SessionPlan, engine: Engine, clock: Clock, cookies: list[Cookie] | None = None
    ) -> "Session":
        """Make a context that looks like its profile and leaves through its proxy only."""
        return await owned(cls._open(plan, engine, clock, cookies), cls.aclose)

    @classmethod
    async def _open(cls, plan: SessionPlan, engine: Engine, clock: Clock, cookies: list[Cookie] | None) -> "Session":
        country = plan.account.country if plan.account else ""
        profile = choose_profile(engine.version, country, plan.dice)
        context = await engine.new_context(
            user_agent=profile.user_agent,
            locale=profile.locale,
            timezone_id=profile.time_zone,
            geolocation={"latitude": profile.latitude, "longitude": profile.longitude},
            viewport={"width": profile.width, "height": profile.height},
            screen={"width": profile.width, "height": profile.height},
            accept_downloads=False,
            service_workers="block",
            proxy=_proxy_of(plan),
        )
        session = cls(plan, engine, context, profile, clock)
        try:
            security = security_script(_security_policy(plan.policy))
            await context.add_init_script(f"{security}\n{disguise_script(engine.plan.kind)}")
            if cookies:
                await context.add_cookies([_to_add(cookie) for cookie in cookies])
        except BaseException:
            await session.aclose()
            raise
        return session

    @property
    def pages(self) -> int:
        """How many pages the context has open, ours or not."""
        return len(self._context.pages)

    @property
    def tabs(self) -> tuple[Tab, ...]:
        return tuple(self._tabs.values())

    @property
    def open_tabs(self) -> Mapping[str, Tab]:
        """The pages that were loaded, by their addresses."""
        return {address: tab for address, tab in self._tabs.items() if tab.is_ready}

    async def tab(self, address: str) -> Tab:
        """Return the page for an address: the one that is open, or a new one."""
        async with self._opening:
            tab = self._tabs.get(address)
            if tab is None or tab.lost:
                await self._make_room()
                tab = await owned(self._new_tab(), Tab.aclose)
                self._tabs[address] = tab
                self.engine.served()
            tab.used_at = monotonic()
            return tab

    def open_tab(self, address: str) -> Tab | None:
        """Return the page that is open for an address and was loaded."""
        tab = self._tabs.get(address)
        return tab if tab is not None and tab.is_ready else None

    def warm_tab(self, address: str) -> Tab | None:
        """Return an open page from which an address's site can be asked: its own, or another of the same origin."""
        own = self.open_tab(address)
        if own is not None:
            return own
        origin = urlsplit(address)[:2]
        alike = (tab for at, tab in self._tabs.items() if urlsplit(at)[:2] == origin and tab.is_ready)
        return next(alike, None)

    async def relieve(self, address: str, worn: Tab, load: Callable[[Tab, str], Awaitable[None]]) -> bool:
        """Open a page a second time, and let it take the first one's place once it is loaded; return whether it did."""
        fresh = await owned(self._new_tab(), Tab.aclose)
        self._relieving.add(fresh)
        try:
            if self.is_closed:
                raise BrowserLost("its session was closed")
            fresh.take_over(worn)
            await load(fresh, address)
        except BaseException:
            await fresh.aclose()
            raise
        finally:
            self._relieving.discard(fresh)
        if self.is_closed or self._tabs.get(address) is not worn:
            await fresh.aclose()
            return False
        self._tabs[address] = fresh
        self.engine.served()
        worn.on_left = lambda: self._leaving.left(worn)
        self._leaving.see_off(worn)
        return True

    async def discard(self, tab: Tab) -> bool:
        """Close a page; return whether it went when asked to."""
        self._tabs = {address: each for address, each in self._tabs.items() if each is not tab}
        return await tab.aclose()

    async def close_idle(self, idle_seconds: float) -> None:
        """Close pages that nobody has used for a while; the one used last stays, to ask from."""
        now = monotonic()
        newest = max(self._tabs.values(), key=lambda tab: tab.used_at, default=None)
        for tab in self.tabs:
            if tab is not newest and tab.is_idle and now - tab.used_at > idle_seconds:
                await self.discard(tab)

    async def cookies(self, url: str = "") -> list[Cookie]:
        return await self._context.cookies(url) if url else await self._context.cookies()

    def learn_manners(self, url: str, headers: Mapping[str, str]) -> None:
        """Remember how the page asks an address."""
        parts = urlsplit(url)
        if len(self._manners) < _MAX_MANNERS or (parts.netloc, parts.path) in self._manners:
            kept = {name: value for name, value in headers.items() if name.lower() not in _NOT_TO_REPEAT}
            self._manners[parts.netloc, parts.path] = kept

    def manners(self, url: str) -> Mapping[str, str] | None:
        """Return how an address is asked: as the page asks it, or another one on the same host."""
        parts = urlsplit(url)
        own = self._manners.get((parts.netloc, parts.path))
        alike = (headers for (host, _), headers in self._manners.items() if host == parts.netloc)
        return own if own is not None else next(alike, None)

    def lose(self, reason: str) -> None:
        """Give it up; whoever waits in it hears why."""
        self.is_closed = True
        for tab in (*self.tabs, *self._relieving, *self._leaving.all):
            tab.lose(reason)

    async def aclose(self) -> bool:
        """Close the context with all of its pages; return whether it went when asked to."""
        self.lose("its session was closed")
        self._tabs.clear()
        is_gone = await went(self._context.close(), CONTEXT_SECONDS)
        await self._leaving.aclose()
        return is_gone

    async def _new_tab(self) -> Tab:
        plan = self.plan
        page = await self._context.new_page()
        try:
            tab = await Tab.open(
                page,
                self._context,
                plan.policy,
                plan.white_list,
                is_style_blocked=plan.is_style_blocked,
                profile=self.profile,
                clock=self._clock,
            )
            tab.heard.flows.on_bytes = plan.meter
            return tab
        except BaseException:
            await went(page.close(), PAGE_SECONDS)
            raise

    async def _make_room(self) -> None:
        """Close those that are lost, and those used longest ago; where all are in use there is one more for a while."""
        for tab in [tab for tab in self._tabs.values() if tab.lost]:
            await self.discard(tab)
        # Each is chosen anew: while one is closed, another may be taken into use.
        while len(self._tabs) >= self.plan.max_tabs and (idle := [tab for tab in self._tabs.values() if tab.is_idle]):
            await self.discard(min(idle, key=lambda tab: tab.used_at))


def _proxy_of(plan: SessionPlan) -> ProxySettings | None:
    if plan.account is None or plan.credential is None:
        return None
    # Chromium leaves out the proxy for this machine's own addresses unless it is told not to.
    return ProxySettings(
        server=plan.account.server,
        bypass="<-loopback>",
        username=plan.credential.username,
        password=plan.credential.password.get_secret_value(),
    )


def _security_policy(policy: FetchPolicy) -> str:
    return security_policy(policy.hosts, allow_private_addresses=policy.allow_private_addresses)


def _to_add(cookie: Cookie) -> Any:
    return {name: value for name, value in cookie.items() if name != "partitionKey"}
