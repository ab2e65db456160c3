"""Browsers for a suite: a pool, and what brings pages by it, with no more around them than a bench needs."""

import os
from pathlib import Path

from longstop.clock import SystemClock
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, BrowserPolicy, Egress
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.proxy_sessions import ProxyRing
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http import HttpFetcher
from longstop.telemetry.bus import Bus


def make_pool(home: Path, executable: str = "") -> BrowserPool:
    """Return a pool with the product's defaults; it is not maintained until `run` is awaited."""
    plan = PoolPlan(
        registry=home / "browsers.json", node=home.name, executable=executable, environment=dict(os.environ)
    )
    return BrowserPool(plan, Bus())


def make_fetcher(
    pool: BrowserPool, name: str, *, host: str, browsing: BrowserPolicy, proxies: ProxyRing | None = None
) -> BrowserFetcher:
    """Return what reads a host in a browser of its own."""
    egress = Egress(hosts=(proxies.account.host,), is_proxied=True) if proxies else Egress(hosts=(host,))
    policy = FetchPolicy(hosts=(host,), allow_private_addresses=True)
    return BrowserFetcher(
        pool.browser(name, BrowserKind.SHELL, egress),
        policy=policy,
        browsing=browsing,
        make_http=lambda proxy: HttpFetcher(policy, SystemClock(), proxy=proxy),
        clock=SystemClock(),
        bus=Bus(),
        proxies=proxies,
    )
