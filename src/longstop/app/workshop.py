"""Makes what one source needs: its fetcher behind the guards, its gate, its road, its scheduler."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf

from longstop.app.browsers import browser_fetcher
from longstop.clock import Clock, Moment
from longstop.errors import SettingsError
from longstop.fetching.base import Fetcher
from longstop.fetching.browser.pool import BrowserPool
from longstop.fetching.guards import FetchPolicy, GuardedFetcher, GuardPolicy, RenewableFetcher
from longstop.fetching.http import HttpFetcher
from longstop.model.match import Sport
from longstop.pipeline.ask import Asker
from longstop.pipeline.football.run import FootballRoad
from longstop.pipeline.road import MatchRoad
from longstop.pipeline.run import Road
from longstop.resilience.breaker import match_policy, source_policy, target_policy
from longstop.resilience.retry import policies
from longstop.resilience.timeouts import Timeouts
from longstop.settings import Scraper, Settings
from longstop.sources.base import SourceConfig
from longstop.sources.registry import enabled_sources, make_source
from longstop.storage.base import HotWriter, MatchStore
from longstop.supervision.room import Room
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.upkeep import ReloadFailed
from longstop.watching.cadence import Cadence, WatchRules
from longstop.watching.camera import Camera, KeepsPictures, TakesPictures
from longstop.watching.dispatcher import Dispatcher
from longstop.watching.doorman import Doorman
from longstop.watching.gate import KeepsPages, SourceGate
from longstop.watching.restarts import RestartPolicy
from longstop.watching.scheduler import Renew, Scheduler
from longstop.watching.watcher import Surroundings

#: Each sport has its own road from a page to the store; whoever watches knows none of them.
ROADS: dict[Sport, Callable[..., MatchRoad]] = {Sport.CRICKET: Road, Sport.FOOTBALL: FootballRoad}
#: However many watches begin anew, a source's connections and description are made afresh at most once in this time.
RENEW_EVERY_SECONDS = 60.0


class Workshop:
    """Puts the sources together, each with a scheduler of its own, all with one dispatcher."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: MatchStore,
        hot: HotWriter,
        pages: KeepsPages,
        bus: Bus,
        clock: Clock,
        node: str,
        browsers: BrowserPool,
        pictures: KeepsPictures | None = None,
        room: Room | None = None,
        former: Mapping[int, Moment] | None = None,
    ) -> None:
        self._sources = settings.sources
        self._settings = settings.scraper
        self._store = store
        self._hot = hot
        self._pages = pages
        self._bus = bus
        self._clock = clock
        self._node = node
        self._browsers = browsers
        self._pictures = pictures
        self._room = room
        self._former = former or {}
        self._cameras: list[Camera] = []
        self.dispatcher = Dispatcher(clock=clock, bus=bus, cap=settings.scraper.fetching.concurrency_cap)

    @asynccontextmanager
    async def schedulers(self, configs: tuple[SourceConfig, ...]) -> AsyncIterator[dict[str, Scheduler]]:
        """Make a scheduler for each source, and close its connections in the end."""
        descriptions = [_Description(config) for config in configs]
        schedulers: dict[str, Scheduler] = {}
        fetchers = [RenewableFetcher(self._making(each, schedulers)) for each in descriptions]
        try:
            for description, fetcher in zip(descriptions, fetchers, strict=True):
                schedulers[description.config.domain_id] = self._scheduler(description, fetcher)
            yield schedulers
        finally:
            for camera in self._cameras:
                await camera.aclose()
            for fetcher in fetchers:
                await fetcher.aclose()

    def _making(self, description: "_Description", schedulers: Mapping[str, Scheduler]) -> Callable[[], Fetcher]:
        """Return what makes the fetcher that a source's description asks for, as it is then."""

        def make() -> Fetcher:
            config = description.config
            if config.browser is None:
                return HttpFetcher(self._policy(config), self._clock)
            return browser_fetcher(
                config.domain_id,
                config.browser,
                settings=self._settings.browser,
                pool=self._browsers,
                policy=self._policy(config),
                clock=self._clock,
                bus=self._bus,
                modes=config.modes,
                calls=make_source(config).calls,
                on_signal=lambda page: schedulers[config.domain_id].hear_of(page),
            )

        return make

    def _scheduler(self, description: "_Description", fetcher: RenewableFetcher) -> Scheduler:
        config, guarded = description.config, self._guarded(description.config, fetcher)
        gate = self._gate(config, self._camera(config, fetcher))
        asker = Asker(make_source(config), guarded, gate, is_browsed=config.browser is not None)
        make_road = ROADS[asker.sport]
        around = Surroundings(
            road=make_road(asker=asker, store=self._store, bus=self._bus, clock=self._clock, scraper_id=self._node),
            store=self._store,
            hot=self._hot,
            bus=self._bus,
            clock=self._clock,
            node=self._node,
            rules=watch_rules(self._settings),
            former=self._former,
        )
        return Scheduler(
            config.domain_id,
            asker=asker,
            around=around,
            dispatcher=self.dispatcher,
            renew=self._renewing(description, asker, guarded, fetcher),
            door=self._door(config),
        )

    def _door(self, config: SourceConfig) -> Doorman | None:
        room = self._room
        return None if room is None else Doorman(config.domain_id, room=room, clock=self._clock, bus=self._bus)

    def _renewing(
        self, description: "_Description", asker: Asker, guarded: GuardedFetcher, fetcher: RenewableFetcher
    ) -> Renew:
        """Return what makes a source's connections afresh, and reads again what the operator says of it."""
        renewed_at = -inf

        async def renew(is_wanted: bool) -> None:
            nonlocal renewed_at
            if not is_wanted and self._clock.monotonic() - renewed_at < RENEW_EVERY_SECONDS:
                return
            before = description.config
            renewed_at = self._clock.monotonic()
            try:
                config = self._described_now(description.config)
                asker.read_by(make_source(config))
                description.config, guarded.policy = config, self._policy(config)
            except SettingsError as error:
                self._bus.emit(ReloadFailed(source=description.config.domain_id, reason=str(error)))
            # One match that is stuck is no reason to close the open pages of all the others.
            if is_wanted or description.config.browser is None or description.config != before:
                await fetcher.renew()

        return renew

    def _described_now(self, config: SourceConfig) -> SourceConfig:
        described = {each.domain_id: each for each in enabled_sources(self._sources)}
        if config.domain_id not in described:
            raise SettingsError(f"source {config.domain_id} is no longer enabled: restart the scraper to let it go")
        return described[config.domain_id]

    def _policy(self, config: SourceConfig) -> FetchPolicy:
        fetching = self._settings.fetching
        return FetchPolicy(
            hosts=config.hosts,
            allow_private_addresses=config.allow_private_addresses,
            deadline_seconds=fetching.timeout,
            max_body_bytes=fetching.max_body_bytes,
            max_connections=fetching.concurrency_cap,
        )

    def _guarded(self, config: SourceConfig, fetcher: RenewableFetcher) -> GuardedFetcher:
        breaker, retry = self._settings.resilience.circuit_breaker, self._settings.resilience.retry
        guards = GuardPolicy(
            retry=policies(retry.max_attempts, retry.base_delay, retry.max_delay).live,
            breaker=target_policy(breaker.threshold, breaker.timeout, breaker.success_threshold, breaker.slow),
            canary_seconds=breaker.canary_interval,
            timeouts=self._timeouts(config),
        )
        return GuardedFetcher(fetcher, self._policy(config), clock=self._clock, bus=self._bus, guards=guards)

    def _timeouts(self, config: SourceConfig) -> Timeouts:
        """Return how long a source is waited for; a page that a browser has to load takes longer than an answer."""
        browser, fetch = self._settings.browser.timeouts, self._settings.fetching.timeout
        return Timeouts(
            page=browser.page, navigation=browser.navigation, fetch=fetch if config.browser is None else browser.page
        )

    def _camera(self, config: SourceConfig, fetcher: RenewableFetcher) -> Camera | None:
        """Return what takes pictures of a source's pages; `None` when none are kept, or there is nothing to see."""
        if self._pictures is None or config.browser is None:
            return None

        async def picture(address: str) -> bytes | None:
            current = fetcher.current
            return await current.picture(address) if isinstance(current, TakesPictures) else None

        camera = Camera(config.domain_id, picture=picture, album=self._pictures, clock=self._clock, bus=self._bus)
        self._cameras.append(camera)
        return camera

    def _gate(self, config: SourceConfig, camera: Camera | None) -> SourceGate:
        breaker = self._settings.resilience.circuit_breaker
        return SourceGate(
            config.domain_id,
            policy=source_policy(breaker.source_timeout),
            probe_seconds=breaker.layout_probe,
            pages=self._pages,
            camera=camera,
            clock=self._clock,
            bus=self._bus,
        )


class _Description:
    """What the operator says of a source; read again when a watch begins anew."""

    def __init__(self, config: SourceConfig) -> None:
        self.config = config


def watch_rules(settings: Scraper) -> WatchRules:
    """Return the rules of watching that the settings make."""
    lifecycle, breaker = settings.lifecycle, settings.resilience.circuit_breaker
    return WatchRules(
        cadence=Cadence(
            live=lifecycle.polling_interval,
            busy=lifecycle.busy_interval,
            paused_play=lifecycle.break_interval,
            break_after=lifecycle.break_after,
            completed=lifecycle.completed_interval,
            discovery=lifecycle.discovery_interval,
            calm_after=lifecycle.calm_after_errors,
            not_found=lifecycle.not_found_memory,
        ),
        restarts=RestartPolicy(
            lifetime_seconds=lifecycle.max_lifetime_hours * 3600, stale_seconds=lifecycle.staleness_threshold
        ),
        breaker=match_policy(breaker.pause_threshold, breaker.cool_down),
        max_errors=settings.monitoring.error_rate_threshold,
        important=tuple(word.strip().lower() for word in lifecycle.important.split(",") if word.strip()),
    )
