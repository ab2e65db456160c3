"""The scraper process: owns matches, looks at them, stores what changed."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import psutil

from longstop.app.common import life, make_bus, run_until_stopped
from longstop.app.listeners import Listeners
from longstop.app.metrics import metrics_work, watching
from longstop.app.workshop import Workshop
from longstop.clock import Clock, SystemClock
from longstop.errors import StorageError
from longstop.hot.sqlite import SqliteHotWriter
from longstop.model.match import MatchRef
from longstop.settings import Settings
from longstop.sources.registry import enabled_sources
from longstop.storage.base import HotWriter, MatchStore, NodeBeat
from longstop.storage.directory import DataDirectory
from longstop.storage.error_pages import ErrorPages
from longstop.storage.sqlite import SqliteMatchStore
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import HotViewFailed, StoreFailed
from longstop.telemetry.rate import ErrorRate
from longstop.watching.ownership import take_over
from longstop.watching.scheduler import Scheduler

#: How often a scraper says that it is alive; the API calls it down after 15 s of silence.
BEAT_SECONDS = 1.0


async def run_scraper(settings: Settings) -> None:
    """Watch the matches of all enabled sources until asked to stop."""
    clock = SystemClock()
    configs = enabled_sources(settings.sources)
    directory = DataDirectory.open(settings.data)
    listeners = Listeners(settings, directory, clock)
    bus = make_bus("scraper", settings, clock, *listeners.sinks)
    with directory.lock(), life(bus, "scraper"):
        async with listeners.at_work(bus), _open_store(directory) as store, _open_hot(directory, bus) as hot:
            pages = ErrorPages(directory.storage / "error_pages")
            node = directory.node_id
            workshop = Workshop(settings, store=store, hot=hot, pages=pages, bus=bus, clock=clock, node=node)
            async with workshop.schedulers(configs) as schedulers:
                await _adopt_all(schedulers, store, hot, bus, node)
                watched = watching(schedulers.values(), workshop.dispatcher, node)
                await run_until_stopped(
                    _beat(hot, listeners.errors, clock, node, schedulers),
                    *metrics_work(
                        settings.scraper.monitoring.prometheus, listeners.metrics, watched, bus=bus, clock=clock
                    ),
                    workshop.dispatcher.run(),
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
