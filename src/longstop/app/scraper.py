"""The scraper process: owns matches, looks at them, stores what changed."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import psutil

from longstop.app.common import life, make_bus, run_until_stopped
from longstop.app.metrics import metrics_work, watching
from longstop.clock import Clock, SystemClock
from longstop.errors import StorageError
from longstop.fetching.guards import FetchPolicy, guarded
from longstop.fetching.http import HttpFetcher
from longstop.hot.sqlite import SqliteHotWriter
from longstop.model.match import MatchRef
from longstop.pipeline.ask import Asker
from longstop.pipeline.run import Road
from longstop.settings import Settings
from longstop.sources.base import SourceConfig
from longstop.sources.registry import enabled_sources, make_source
from longstop.storage.base import HotWriter, MatchStore, NodeBeat
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite import SqliteMatchStore
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import HotViewFailed, StoreFailed
from longstop.telemetry.metrics import Metrics
from longstop.telemetry.rate import ErrorRate
from longstop.watching.cadence import Cadence
from longstop.watching.ownership import take_over
from longstop.watching.scheduler import Scheduler

#: How often a scraper says that it is alive; the API calls it down after 15 s of silence.
BEAT_SECONDS = 1.0


async def run_scraper(settings: Settings) -> None:
    """Watch the matches of all enabled sources until asked to stop."""
    clock = SystemClock()
    errors, metrics, prometheus = ErrorRate(clock), Metrics(), settings.scraper.monitoring.prometheus
    bus = make_bus("scraper", settings, clock, errors, *([metrics] if prometheus.enabled else []))
    configs = enabled_sources(settings.sources)
    directory = DataDirectory.open(settings.data)
    with directory.lock(), life(bus, "scraper"):
        async with _open_store(directory) as store, _open_hot(directory, bus) as hot:
            workshop = _Workshop(settings, store=store, hot=hot, bus=bus, clock=clock, node=directory.node_id)
            async with workshop.schedulers(configs) as schedulers:
                await _adopt_all(schedulers, store, hot, bus, directory.node_id)
                await run_until_stopped(
                    _beat(hot, errors, clock, directory.node_id, schedulers),
                    *metrics_work(
                        prometheus,
                        metrics,
                        watching(schedulers.values(), directory.node_id),
                        bus=bus,
                        clock=clock,
                    ),
                    *(scheduler.run() for scheduler in schedulers.values()),
                )


async def _adopt_all(
    schedulers: Mapping[str, Scheduler], store: MatchStore, hot: HotWriter, bus: Bus, node: str
) -> None:
    """Go on with every match that is stored; one that cannot be read is told, and does not stop the others."""

    def tell(ref: MatchRef, error: StorageError) -> None:
        bus.emit(StoreFailed(ref=str(ref), error_type=type(error).__name__, error_message=str(error)))

    adopted = set()
    async for state in take_over(store, node, schedulers, tell):
        schedulers[state.row.ref.source].adopt(state)
        adopted.add(state.row.match_id)
    # What is watched no more, since its source was switched off, must not look live for ever.
    hot.keep_only(adopted)


class _Workshop:
    """Makes what one source needs: its fetcher behind the guards, its road, its scheduler."""

    def __init__(
        self, settings: Settings, *, store: MatchStore, hot: HotWriter, bus: Bus, clock: Clock, node: str
    ) -> None:
        self._settings = settings.scraper
        self._store = store
        self._hot = hot
        self._bus = bus
        self._clock = clock
        self._node = node
        self._slots = asyncio.Semaphore(settings.scraper.fetching.concurrency_cap)

    @asynccontextmanager
    async def schedulers(self, configs: tuple[SourceConfig, ...]) -> AsyncIterator[dict[str, Scheduler]]:
        fetchers = {config.domain_id: HttpFetcher(self._policy(config), self._clock) for config in configs}
        try:
            yield {config.domain_id: self._scheduler(config, fetchers[config.domain_id]) for config in configs}
        finally:
            for fetcher in fetchers.values():
                await fetcher.aclose()

    def _policy(self, config: SourceConfig) -> FetchPolicy:
        fetching = self._settings.fetching
        return FetchPolicy(
            hosts=config.hosts,
            allow_private_addresses=config.allow_private_addresses,
            deadline_seconds=fetching.timeout,
            max_body_bytes=fetching.max_body_bytes,
            max_connections=fetching.concurrency_cap,
        )

    def _scheduler(self, config: SourceConfig, fetcher: HttpFetcher) -> Scheduler:
        asker = Asker(make_source(config), guarded(fetcher, self._policy(config)))
        road = Road(asker=asker, store=self._store, bus=self._bus, clock=self._clock, scraper_id=self._node)
        lifecycle = self._settings.lifecycle
        return Scheduler(
            config.domain_id,
            asker=asker,
            road=road,
            store=self._store,
            hot=self._hot,
            bus=self._bus,
            clock=self._clock,
            cadence=Cadence(live=lifecycle.polling_interval, discovery=lifecycle.discovery_interval),
            slots=self._slots,
            node=self._node,
        )


@asynccontextmanager
async def _open_store(directory: DataDirectory) -> AsyncIterator[SqliteMatchStore]:
    store = await SqliteMatchStore.open(directory.matches_db)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def _open_hot(directory: DataDirectory, bus: Bus) -> AsyncIterator[SqliteHotWriter]:
    hot = SqliteHotWriter(directory.hot_db, on_failure=lambda error: bus.emit(HotViewFailed(error_message=str(error))))
    try:
        yield hot
    finally:
        await asyncio.to_thread(hot.close)


async def _beat(
    hot: HotWriter, errors: ErrorRate, clock: Clock, node: str, schedulers: Mapping[str, Scheduler]
) -> None:
    started_at = clock.now()
    process = psutil.Process()
    while True:
        hot.beat(
            NodeBeat(
                node=node,
                pid=process.pid,
                started_at=started_at,
                beat_at=clock.now(),
                rss_bytes=process.memory_info().rss,
                errors_last_minute=errors.last_minute(),
                listed_at={source: scheduler.listed_at for source, scheduler in schedulers.items()},
            )
        )
        await asyncio.sleep(BEAT_SECONDS)
