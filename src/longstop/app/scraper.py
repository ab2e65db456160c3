"""The scraper process: owns matches, looks at them, stores what changed."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

from longstop.app.browsers import browser_pool, scratch_of
from longstop.app.caring import Caring, recycling
from longstop.app.common import life, make_bus, run_until_stopped
from longstop.app.listeners import Listeners
from longstop.app.metrics import metrics_work, watching
from longstop.app.ordering import taking_orders
from longstop.app.workshop import Workshop
from longstop.clock import SystemClock
from longstop.errors import StorageError
from longstop.model.match import MatchRef
from longstop.settings import Settings
from longstop.sources.registry import enabled_sources
from longstop.storage.base import HotWriter, MatchStore
from longstop.storage.directory import DataDirectory
from longstop.storage.error_pages import ErrorPages, ErrorPictures, NoPages
from longstop.storage.sqlite.hot import SqliteHotWriter, former_polls
from longstop.storage.sqlite.matches import SqliteMatchStore
from longstop.supervision.parent import parent_fd
from longstop.supervision.room import MeasuredRoom
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.upkeep import HotViewFailed, StoreFailed
from longstop.watching.ownership import take_over
from longstop.watching.scheduler import Scheduler


async def run_scraper(settings: Settings) -> None:
    """Watch the matches of all enabled sources until asked to stop."""
    clock = SystemClock()
    configs = enabled_sources(settings.sources)
    directory = DataDirectory.open(settings.data)
    listeners = Listeners(settings, directory, clock)
    bus = make_bus("scraper", settings, clock, *listeners.sinks)
    with directory.lock(), life(bus, "scraper"), scratch_of(directory) as scratch:
        former = await asyncio.to_thread(former_polls, directory.hot_db)
        async with listeners.at_work(bus), _open_store(directory) as store, _open_hot(directory, bus) as hot:
            is_kept = settings.scraper.monitoring.keep_error_pages
            pages = ErrorPages(directory.storage / "error_pages") if is_kept else NoPages()
            pictures = ErrorPictures(directory.storage / "errors") if is_kept else None
            node = directory.node_id
            room = MeasuredRoom(settings.scraper.resources.memory.min_available_mb << 20)
            browsers = browser_pool(settings.scraper.browser, directory, scratch, bus)
            workshop = Workshop(
                settings,
                store=store,
                hot=hot,
                pages=pages,
                pictures=pictures,
                bus=bus,
                clock=clock,
                node=node,
                browsers=browsers,
                room=room,
                former=former,
            )
            async with (
                aclosing(browsers),
                workshop.schedulers(configs) as schedulers,
                taking_orders(
                    directory, schedulers, recycle=recycling(schedulers, browsers), room=room, bus=bus, clock=clock
                ) as orders,
            ):
                await _adopt_all(schedulers, store, hot, bus, node)
                caring = Caring(
                    directory,
                    schedulers=schedulers,
                    browsers=browsers,
                    dispatcher=workshop.dispatcher,
                    recycle=recycling(schedulers, browsers),
                    listeners=listeners,
                    hot=hot,
                    bus=bus,
                    clock=clock,
                    stall_after=settings.supervision.stalled_after,
                    is_supervised=parent_fd(os.environ) is not None,
                )
                watched = watching(
                    schedulers.values(), workshop.dispatcher, browsers, node, lambda: caring.lag.lag_seconds
                )
                async with caring.at_work():
                    await run_until_stopped(
                        caring.run(),
                        caring.lag.run(),
                        *metrics_work(
                            settings.scraper.monitoring.prometheus, listeners.metrics, watched, bus=bus, clock=clock
                        ),
                        browsers.run(),
                        orders.run(),
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
        ref = state.row.ref
        if not schedulers[ref.source].is_left_alone(ref.source_id):
            schedulers[ref.source].adopt(state)
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
