"""Builds browsers from the settings: the pool of a node, and the browser fetcher of a source."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING

from longstop.clock import Clock, SystemClock
from longstop.errors import SettingsError
from longstop.fetching.browser.browser_generations import SourceBrowserPolicy
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, BrowserPolicy, Egress
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.fetching.browser.proxy_budget import ProxyMeter
from longstop.fetching.browser.proxy_sessions import ProxyAccount, ProxyRing
from longstop.fetching.browser.recycle_and_hang_policy import HangPolicy, RecyclePolicy
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http import HttpFetcher
from longstop.process.browser_registry_and_temp_files import open_scratch
from longstop.settings import Browser, Proxy
from longstop.sources.base import SourceConfig
from longstop.sources.load_sources import make_source
from longstop.storage.directory import DataDirectory
from longstop.telemetry.bus import Bus

if TYPE_CHECKING:
    from longstop.fetching.browser.fetcher import BrowserFetcher

#: The driver's objects are short-lived: Node collects its young generation at 2 MB instead of 16.
DRIVER_OPTIONS = "--max-semi-space-size=2"


@contextmanager
def scratch_of(directory: DataDirectory) -> Iterator[Path]:
    """Provide the node's directory for temporary files, and remove it at the end; after a kill the next start does.

    The driver gets our whole environment, and puts its files where `TMPDIR` says.
    """
    scratch = open_scratch(Path(tempfile.gettempdir()), directory.node_id)
    options = f"{os.environ.get('NODE_OPTIONS', '')} {DRIVER_OPTIONS}".strip()
    try:
        with _environment(TMPDIR=str(scratch), NODE_OPTIONS=options):
            yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def browser_pool(settings: Browser, directory: DataDirectory, scratch: Path, bus: Bus) -> BrowserPool:
    """Return the pool of a node; its `run` sweeps and checks the browsers."""
    life, timeouts = settings.life, settings.timeouts
    recycle = RecyclePolicy(
        max_pages=life.max_pages,
        max_age_seconds=life.max_hours * 3600,
        max_memory_bytes=life.max_memory_mb * 1_000_000,
        max_processes=life.max_processes,
    )
    plan = PoolPlan(
        registry=directory.path / "browsers.json",
        node=directory.node_id,
        executable=settings.executable,
        is_cdp=settings.use_cdp,
        is_process_per_site=settings.process_per_site,
        browser=SourceBrowserPolicy(recycle=recycle, hanging=HangPolicy(hung_seconds=timeouts.hung)),
        sweep_seconds=life.sweep_interval,
        scratch=scratch,
        environment=dict(os.environ),
    )
    return BrowserPool(plan, bus, _meter(settings.proxy, directory, bus))


def browser_fetcher(
    config: SourceConfig,
    kind: BrowserKind,
    *,
    settings: Browser,
    pool: BrowserPool,
    policy: FetchPolicy,
    clock: Clock,
    bus: Bus,
) -> BrowserFetcher:
    """Return the browser fetcher of a source, through the proxy if one is configured."""
    from longstop.fetching.browser.fetcher import BrowserFetcher

    account, proxies, egress = proxy_account(settings.proxy), None, Egress(hosts=policy.hosts)
    if account is not None:
        proxies = ProxyRing(account, sessions=settings.proxy.sessions, new_name=lambda: token_hex(4), now=monotonic())
        egress = Egress(hosts=(account.host,), is_proxied=True)
    if kind is BrowserKind.HEADLESS and not settings.headless:
        kind = BrowserKind.HEADED
    return BrowserFetcher(
        pool.browser(config.domain_id, kind, egress),
        policy=policy,
        browsing=BrowserPolicy(
            modes=config.modes,
            calls=make_source(config).calls,
            page_seconds=settings.timeouts.page,
            navigation_seconds=settings.timeouts.navigation,
            profile_seed=sum(config.domain_id.encode()),
        ),
        make_http=lambda proxy: HttpFetcher(policy, clock, proxy=proxy),
        clock=clock,
        bus=bus,
        proxies=proxies,
        meter=pool.meter,
    )


def proxy_account(settings: Proxy) -> ProxyAccount | None:
    """Return the account at the proxy; `None` for none. An incomplete account is an error: the proxy is not skipped."""
    given = {
        "IPROYAL_HOST": settings.host,
        "IPROYAL_USERNAME": settings.username,
        "IPROYAL_PASSWORD": settings.password.get_secret_value(),
    }
    if not any(given.values()):
        return None
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise SettingsError(f"{missing[0]} is missing: set all of {', '.join(given)} to use a proxy, or none of them")
    return ProxyAccount(
        host=settings.host,
        port=settings.port,
        username=settings.username,
        password=settings.password,
        country=settings.country,
        mode=settings.mode,
        sticky_seconds=settings.sticky_ttl,
    )


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables, and restore them at the end."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _meter(settings: Proxy, directory: DataDirectory, bus: Bus) -> ProxyMeter | None:
    if proxy_account(settings) is None:
        return None
    path = directory.path / "proxy-bytes.json"
    return ProxyMeter(path, budget_bytes=settings.budget_mb * 1_000_000, clock=SystemClock(), bus=bus)
