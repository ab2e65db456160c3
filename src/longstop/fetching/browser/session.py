"""A session: one browser context with its own profile, cookies and proxy credential, and its open pages."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from playwright.async_api import BrowserContext, Cookie, ProxySettings

from longstop.clock import Clock
from longstop.errors import BrowserLost
from longstop.fetching.base import Fetcher, HttpProxy
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy
from longstop.fetching.browser.closing import CONTEXT_SECONDS, PAGE_SECONDS, closes_within
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.page_request_rules_and_csp import security_policy, security_script
from longstop.fetching.browser.profile_and_stealth_script import Profile, choose_profile, stealth_script
from longstop.fetching.browser.tab import Tab
from longstop.fetching.browser.tasks_and_close_after_last_use import Draining, cancel_safe
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy

#: Request headers that belong to one request and are not repeated.
_NOT_REPEATED = frozenset({"content-length", "content-type", "cookie", "host", "if-none-match", "if-modified-since"})
#: A session remembers the request headers of this many URLs.
_MAX_REMEMBERED = 64


class SessionPlan(Struct, frozen=True, kw_only=True):
    policy: FetchPolicy
    browsing: BrowserPolicy
    #: Makes the fetcher for requests by HTTP, through the proxy if there is one.
    make_http: Callable[[HttpProxy | None], Fetcher]
    #: The proxy's name of the session.
    name: str = "direct"
    #: `None` to connect directly.
    proxy: HttpProxy | None = None
    #: Of the proxy; empty if unknown.
    country: str = ""
    #: Called with all bytes that go through the proxy; `None` without a budget.
    meter: Callable[[int], None] | None = None


class Session:
    def __init__(
        self, plan: SessionPlan, engine: Engine, context: BrowserContext, profile: Profile, clock: Clock
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.profile = profile
        self._clock = clock
        self._context = context
        self._tabs: dict[str, Tab] = {}
        #: Pages that were replaced.
        self._draining = Draining(Tab.aclose, plan.browsing.page_seconds)
        #: Pages that are loading to replace another one.
        self._replacements: set[Tab] = set()
        self._opening = asyncio.Lock()
        #: The headers that the page's script sends to each URL; they are repeated in requests by HTTP.
        self._request_headers: dict[tuple[str, str], Mapping[str, str]] = {}
        self._http: Fetcher | None = None
        self.is_closed = False
        self.users = 0

    @classmethod
    async def open(
        cls, plan: SessionPlan, engine: Engine, clock: Clock, cookies: list[Cookie] | None = None
    ) -> "Session":
        """Create a context that shows its profile and connects only through its proxy."""
        profile = choose_profile(engine.version, plan.country, plan.browsing.profile_seed)
        country, screen = profile.country, {"width": profile.width, "height": profile.height}
        context = await engine.new_context(
            user_agent=profile.user_agent,
            locale=country.locale,
            timezone_id=country.time_zone,
            geolocation={"latitude": country.latitude, "longitude": country.longitude},
            viewport=screen,
            screen=screen,
            accept_downloads=False,
            service_workers="block",
            proxy=_settings_of(plan.proxy),
        )
        session = cls(plan, engine, context, profile, clock)
        try:
            policy = plan.policy
            security = security_policy(policy.hosts, allow_private_addresses=policy.allow_private_addresses)
            await context.add_init_script(f"{security_script(security)}\n{stealth_script(engine.plan.kind)}")
            if cookies:
                await context.add_cookies([_to_add(cookie) for cookie in cookies])
        except BaseException:
            await session.aclose()
            raise
        return session

    @property
    def http(self) -> Fetcher:
        """The fetcher for requests by HTTP with the session's proxy."""
        if self._http is None:
            self._http = self.plan.make_http(self.plan.proxy)
        return self._http

    @property
    def tabs(self) -> tuple[Tab, ...]:
        return tuple(self._tabs.values())

    @property
    def open_tabs(self) -> Mapping[str, Tab]:
        """The loaded pages by URL."""
        return {url: tab for url, tab in self._tabs.items() if tab.is_ready}

    async def tab(self, url: str) -> Tab:
        """Return the page of a URL, opened if necessary."""
        async with self._opening:
            tab = self._tabs.get(url)
            if tab is None or tab.lost:
                await self._close_surplus()
                tab = await cancel_safe(self._new_tab(), Tab.aclose)
                self._tabs[url] = tab
                self.engine.pages += 1
            tab.used_at = monotonic()
            return tab

    def open_tab(self, url: str) -> Tab | None:
        """Return the loaded page of a URL."""
        tab = self._tabs.get(url)
        return tab if tab is not None and tab.is_ready else None

    def same_origin_tab(self, url: str) -> Tab | None:
        """Return a loaded page from which a URL can be requested: its own, or another one of the same origin."""
        origin = urlsplit(url)[:2]
        same_origin = (tab for at, tab in self.open_tabs.items() if urlsplit(at)[:2] == origin)
        return self.open_tab(url) or next(same_origin, None)

    async def rotate(self, url: str, old: Tab, load: Callable[[Tab, str], Awaitable[None]]) -> bool:
        """Load a URL in a new page, which then replaces the old one; return whether it did."""
        new = await cancel_safe(self._new_tab(), Tab.aclose)
        self._replacements.add(new)
        try:
            if self.is_closed:
                raise BrowserLost("the session was closed")
            new.inherit(old)
            await load(new, url)
        except BaseException:
            await new.aclose()
            raise
        finally:
            self._replacements.discard(new)
        if self.is_closed or self._tabs.get(url) is not old:
            await new.aclose()
            return False
        self._tabs[url] = new
        self.engine.pages += 1
        old.on_released = lambda: self._draining.released(old)
        self._draining.add(old)
        return True

    async def discard(self, tab: Tab) -> bool:
        """Close a page; return whether it closed in time."""
        self._tabs = {url: each for url, each in self._tabs.items() if each is not tab}
        return await tab.aclose()

    async def close_idle(self, idle_seconds: float) -> None:
        """Close pages that were not used for a while; the most recently used one stays, for requests from inside."""
        now = monotonic()
        newest = max(self._tabs.values(), key=lambda tab: tab.used_at, default=None)
        for tab in self.tabs:
            if tab is not newest and tab.is_idle and now - tab.used_at > idle_seconds:
                await self.discard(tab)

    async def cookies(self, url: str = "") -> list[Cookie]:
        return await self._context.cookies(url) if url else await self._context.cookies()

    def remember_headers(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if len(self._request_headers) < _MAX_REMEMBERED or (parts.netloc, parts.path) in self._request_headers:
            kept = {name: value for name, value in headers.items() if name.lower() not in _NOT_REPEATED}
            self._request_headers[parts.netloc, parts.path] = kept

    def headers_for(self, url: str) -> Mapping[str, str] | None:
        """Return the headers that the page sends to a URL, or else to another URL of the same host."""
        parts = urlsplit(url)
        own = self._request_headers.get((parts.netloc, parts.path))
        same_host = (headers for (host, _), headers in self._request_headers.items() if host == parts.netloc)
        return own if own is not None else next(same_host, None)

    def lose(self, reason: str) -> None:
        """Give the session up, and wake all waiting requests with the reason."""
        self.is_closed = True
        for tab in (*self.tabs, *self._replacements, *self._draining.all):
            tab.lose(reason)

    async def aclose(self) -> bool:
        """Close the context with all of its pages; return whether it closed in time."""
        self.lose("the session was closed")
        self._tabs.clear()
        is_closed = await closes_within(self._context.close(), CONTEXT_SECONDS)
        await self._draining.aclose()
        if self._http is not None:
            await self._http.aclose()
        return is_closed

    async def _new_tab(self) -> Tab:
        plan = self.plan
        page = await self._context.new_page()
        try:
            tab = await Tab.open(page, plan.policy, plan.browsing, self.profile, self._clock)
            tab.interception.traffic.on_bytes = plan.meter
            return tab
        except BaseException:
            await closes_within(page.close(), PAGE_SECONDS)
            raise

    async def _close_surplus(self) -> None:
        """Close lost pages, and the least recently used ones above the limit. Pages in use may exceed it."""
        for tab in [tab for tab in self._tabs.values() if tab.lost]:
            await self.discard(tab)
        # Chosen one by one: while a page closes, another one may come into use.
        while len(self._tabs) >= self.plan.browsing.max_tabs and (
            idle := [tab for tab in self._tabs.values() if tab.is_idle]
        ):
            await self.discard(min(idle, key=lambda tab: tab.used_at))


def _settings_of(proxy: HttpProxy | None) -> ProxySettings | None:
    if proxy is None:
        return None
    # By default Chromium bypasses the proxy for addresses of this machine.
    password = proxy.password.get_secret_value()
    return ProxySettings(server=proxy.server, bypass="<-loopback>", username=proxy.username, password=password)


def _to_add(cookie: Cookie) -> Any:
    return {name: value for name, value in cookie.items() if name != "partitionKey"}
