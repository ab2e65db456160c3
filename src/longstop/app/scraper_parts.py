"""The parts of a scraper: one `Runtime` that all of them share, and one `SourceRuntime` for each source."""

from collections.abc import Mapping
from math import inf
from pathlib import Path

from msgspec import Struct

from longstop.app.browsers import browser_fetcher
from longstop.clock import Clock, Moment
from longstop.errors import SettingsError
from longstop.fetching.base import Fetcher
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool
from longstop.fetching.guarded_and_replaceable_fetcher import (
    FetchPolicy,
    GuardedFetcher,
    GuardPolicy,
    ReplaceableFetcher,
)
from longstop.fetching.http import HttpFetcher
from longstop.matches.limits import Limits
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.resilience.adaptive_timeouts import Timeouts
from longstop.resilience.breaker import match_policy, source_policy, target_policy
from longstop.resilience.retry_policy import policies
from longstop.settings import Scraper, Settings
from longstop.sources.base import SourceConfig
from longstop.sources.load_sources import enabled_sources, make_source
from longstop.sports.registry import sport_named
from longstop.storage.base import HotWriter, Operations
from longstop.storage.error_pages_and_screenshots import ErrorScreenshots
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ReloadFailed
from longstop.watching.feed_polling import WatchContext
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.poll_intervals_and_frozen_pages import Cadence, WatchRules
from longstop.watching.screenshots import Screenshots
from longstop.watching.source_and_layout_breakers import ErrorPageStore, SourceAdmission
from longstop.watching.source_scheduler import Scheduler
from longstop.watching.stored_pauses import StoredPauses

#: Restarts of watches reconnect a source, and reload its configuration, at most this often.
RECONNECT_EVERY_SECONDS = 60.0


class Runtime(Struct, frozen=True, kw_only=True):
    """What all parts of a scraper share; `scraper.py` fills it."""

    settings: Settings
    clock: Clock
    bus: Bus
    matches: LiveMatches
    hot: HotWriter
    ops: Operations
    browsers: BrowserPool
    dispatcher: Dispatcher
    pages: ErrorPageStore
    memory_check: MemoryCheck
    #: Loaded: sources continue the pauses of an earlier run.
    pauses: StoredPauses
    #: The folder of screenshots; `None` when error pages are not saved.
    screenshots: Path | None = None
    #: The last accepted poll of each match by an earlier run, by match id.
    former: Mapping[int, Moment] = {}

    @property
    def node(self) -> str:
        return self.matches.node


class SourceRuntime:
    """One source with its fetcher, admission control, pipeline and scheduler."""

    def __init__(self, config: SourceConfig, runtime: Runtime) -> None:
        self.config = config
        self._runtime = runtime
        self._settings = runtime.settings.scraper
        self._reconnected_at = -inf
        self._pauses = runtime.pauses.of(config.domain_id)
        self._fetcher = ReplaceableFetcher(self._make_fetcher)
        self._guarded = GuardedFetcher(
            self._fetcher,
            self._policy,
            clock=runtime.clock,
            bus=runtime.bus,
            guards=self._guards(),
            pauses=self._pauses,
        )
        self._screenshots = self._make_screenshots()
        is_browser_based = config.browser is not None
        self.client = SourceClient(
            make_source(config),
            self._guarded,
            self._admission(),
            is_browser_based=is_browser_based,
            on_suspect=self._distrust_mode,
            limits=Limits(**self._settings.limits.model_dump()),
        )
        self.scheduler = self._scheduler()

    async def aclose(self) -> None:
        if self._screenshots is not None:
            await self._screenshots.aclose()
        await self._fetcher.aclose()

    async def reconnect(self, is_forced: bool) -> None:
        """Restart the source's connections, and reload its configuration.

        Forced at once; watches that restart share one reconnection a minute.
        """
        now = self._runtime.clock.monotonic()
        if not is_forced and now - self._reconnected_at < RECONNECT_EVERY_SECONDS:
            return
        before, self._reconnected_at = self.config, now
        try:
            config = self._reloaded_config()
            self.client.use_source(make_source(config))
            self.config = config
            self._guarded.policy = self._policy
        except SettingsError as error:
            self._runtime.bus.emit(ReloadFailed(source=before.domain_id, reason=str(error)))
        # One stuck match does not justify closing the open pages of all others.
        if is_forced or self.config.browser is None or self.config != before:
            await self._fetcher.replace()

    def _reloaded_config(self) -> SourceConfig:
        name = self.config.domain_id
        enabled = {each.domain_id: each for each in enabled_sources(self._runtime.settings.sources)}
        if name not in enabled:
            raise SettingsError(f"source {name} is no longer enabled: restart the scraper to drop it")
        return enabled[name]

    # --- parts -----------------------------------------------------------------------------------------------

    def _scheduler(self) -> Scheduler:
        runtime, name = self._runtime, self.config.domain_id
        context = WatchContext(
            pipeline=Pipeline(
                sport_named(self.client.source.sport),
                client=self.client,
                store=runtime.matches.store,
                bus=runtime.bus,
                clock=runtime.clock,
                scraper_id=runtime.node,
            ),
            matches=runtime.matches,
            hot=runtime.hot,
            bus=runtime.bus,
            clock=runtime.clock,
            rules=watch_rules(self._settings),
            precedence=self.config.precedence_weight,
            former=runtime.former,
            pauses=self._pauses,
        )
        return Scheduler(
            name,
            client=self.client,
            context=context,
            dispatcher=runtime.dispatcher,
            memory_check=runtime.memory_check,
            reconnect=self.reconnect,
        )

    def _make_fetcher(self) -> Fetcher:
        """Return the fetcher that the source's description asks for, as it is now."""
        config, runtime = self.config, self._runtime
        if config.browser is None:
            return HttpFetcher(self._policy, runtime.clock)
        fetcher = browser_fetcher(
            config,
            config.browser,
            settings=self._settings.browser,
            pool=runtime.browsers,
            policy=self._policy,
            clock=runtime.clock,
            bus=runtime.bus,
        )
        fetcher.on_signal(lambda page: self.scheduler.on_page_signal(page))
        return fetcher

    @property
    def _policy(self) -> FetchPolicy:
        config, fetching = self.config, self._settings.fetching
        return FetchPolicy(
            hosts=config.hosts,
            allow_private_addresses=config.allow_private_addresses,
            deadline_seconds=fetching.timeout,
            max_body_bytes=fetching.max_body_bytes,
            # One is for the listing, which never waits for polls.
            max_connections=fetching.concurrency_cap + 1,
        )

    def _guards(self) -> GuardPolicy:
        breaker, retry = self._settings.resilience.circuit_breaker, self._settings.resilience.retry
        browser, fetch = self._settings.browser.timeouts, self._settings.fetching.timeout
        return GuardPolicy(
            retry=policies(retry.max_attempts, retry.base_delay, retry.max_delay).live,
            breaker=target_policy(breaker.threshold, breaker.timeout, breaker.success_threshold, breaker.slow),
            canary_seconds=breaker.canary_interval,
            timeouts=Timeouts(
                page=browser.page,
                navigation=browser.navigation,
                # A page that a browser has to load takes longer than an answer.
                fetch=fetch if self.config.browser is None else browser.page,
            ),
        )

    def _admission(self) -> SourceAdmission:
        breaker, runtime = self._settings.resilience.circuit_breaker, self._runtime
        return SourceAdmission(
            self.config.domain_id,
            policy=source_policy(breaker.source_timeout),
            probe_seconds=breaker.layout_probe,
            pages=runtime.pages,
            pauses=self._pauses,
            request_screenshot=self._screenshots.request if self._screenshots else None,
            clock=runtime.clock,
            bus=runtime.bus,
        )

    def _make_screenshots(self) -> Screenshots | None:
        """Return `None` when error pages are not saved, or no browser opens the source's pages."""
        runtime, name = self._runtime, self.config.domain_id
        if runtime.screenshots is None or self.config.browser is None:
            return None
        store = ErrorScreenshots(runtime.screenshots, name)
        return Screenshots(name, take=self._screenshot, store=store, clock=runtime.clock, bus=runtime.bus)

    def _distrust_mode(self) -> None:
        """Read the source in another mode after a suspect answer, if it has several."""
        if self.config.browser is None:
            return
        from longstop.fetching.browser.fetcher import BrowserFetcher  # with a browser it is loaded already

        if isinstance(current := self._fetcher.current, BrowserFetcher):
            current.distrust()

    async def _screenshot(self, address: str) -> bytes | None:
        from longstop.fetching.browser.fetcher import BrowserFetcher  # with a browser it is loaded already

        current = self._fetcher.current
        return await current.screenshot(address) if isinstance(current, BrowserFetcher) else None


def watch_rules(settings: Scraper) -> WatchRules:
    lifecycle, breaker = settings.lifecycle, settings.resilience.circuit_breaker
    return WatchRules(
        cadence=Cadence(
            live=lifecycle.polling_interval,
            busy=lifecycle.busy_interval,
            in_break=lifecycle.break_interval,
            break_after=lifecycle.break_after,
            completed=lifecycle.completed_interval,
            discovery=lifecycle.discovery_interval,
            calm_after=lifecycle.calm_after_errors,
            not_found=lifecycle.not_found_memory,
        ),
        lifetime_seconds=lifecycle.max_lifetime_hours * 3600,
        stale_seconds=lifecycle.staleness_threshold,
        breaker=match_policy(breaker.pause_threshold, breaker.cool_down),
        max_errors=settings.monitoring.error_rate_threshold,
        important=tuple(word.strip().lower() for word in lifecycle.important.split(",") if word.strip()),
    )
