"""The scraper process: polls matches, and stores what changed."""

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, nullcontext, suppress

from longstop.app.browsers import browser_pool, scratch_of
from longstop.app.complete_files import completing_files
from longstop.app.process_lifetime import process_lifetime, run_until_stopped
from longstop.app.scraper_monitoring import SelfMonitoring
from longstop.app.scraper_parts import Runtime, SourceRuntime
from longstop.app.sinks import ScraperSinks, make_bus
from longstop.clock import SystemClock
from longstop.errors import StorageError
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.model.command_and_standing_order import StandingKind, StandingOrder
from longstop.model.match import MatchRef
from longstop.settings import Settings
from longstop.sources.load_sources import enabled_sources
from longstop.storage.base import CommandStore
from longstop.storage.directory import DataDirectory
from longstop.storage.error_pages_and_screenshots import ErrorPages, NoPages
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter, former_polls
from longstop.storage.sqlite.matches import SqliteMatchStore
from longstop.storage.sqlite.operations_tables import check_operations, open_operations
from longstop.supervision.lifeline_and_heartbeat_pipes import parent_fd
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import HotViewFailed, HotViewRebuilt, OrderUnmatched, StoreFailed
from longstop.telemetry.metrics_server import metrics_tasks
from longstop.watching.commands import CommandLoop
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.source_scheduler import Scheduler
from longstop.watching.stored_pauses import StoredPauses

#: A hung disk must not block the start.
PROTECT_WITHIN_SECONDS = 5.0


async def run_scraper(settings: Settings) -> None:
    """Watch the matches of all enabled sources until a stop signal."""
    clock = SystemClock()
    configs = enabled_sources(settings.sources)
    directory = DataDirectory.open(settings.data)
    ops = open_operations(directory.ops_db, clock)
    sinks = ScraperSinks(settings, directory, ops, clock)
    bus = make_bus("scraper", settings, clock, *sinks.all)
    pauses = StoredPauses(ops.pauses, clock=clock)
    is_supervised = parent_fd(os.environ) is not None
    with directory.lock(), process_lifetime(bus, "scraper"), scratch_of(directory) as scratch:
        orders = check_operations(directory.ops_db)
        async with aclosing(SqliteHotReader(directory.hot_db)) as before:
            former = await former_polls(before)
        async with (
            # Last, when nothing of this process reads them any more. A supervisor does it when the API has ended, too.
            nullcontext() if is_supervised else completing_files(directory, bus, is_locked=True),
            aclosing(ops),
            sinks.running(bus),
            aclosing(await SqliteMatchStore.open(directory.matches_db)) as store,
            aclosing(_open_hot(directory, bus)) as hot,
        ):
            await _protect(orders, ops.commands, {config.domain_id for config in configs}, bus)
            # Sources that are created below continue them.
            await pauses.load(bus)
            is_kept = settings.scraper.monitoring.keep_error_pages
            runtime = Runtime(
                settings=settings,
                clock=clock,
                bus=bus,
                matches=LiveMatches(store, directory.node_id),
                hot=hot,
                ops=ops,
                browsers=browser_pool(settings.scraper.browser, directory, scratch, bus),
                dispatcher=Dispatcher(
                    clock=clock, bus=bus, cap=settings.scraper.fetching.concurrency_cap, sources=len(configs)
                ),
                pages=ErrorPages(directory.storage / "error_pages") if is_kept else NoPages(),
                screenshots=directory.storage / "errors" if is_kept else None,
                memory_check=MemoryCheck(settings.scraper.resources.memory.min_available_mb << 20),
                pauses=pauses,
                former=former,
            )
            async with aclosing(runtime.browsers), pauses.writing(bus), AsyncExitStack() as sources:
                schedulers = {}
                for config in configs:
                    source = await sources.enter_async_context(aclosing(SourceRuntime(config, runtime)))
                    schedulers[config.domain_id] = source.scheduler
                await _watch(runtime, schedulers, sinks, directory, is_supervised=is_supervised)


async def _protect(orders: Iterable[StandingOrder], store: CommandStore, sources: Collection[str], bus: Bus) -> None:
    """Report orders that no source obeys, and protect those of an earlier version; if that fails, at the next start."""
    for order in orders:
        is_source = order.kind is StandingKind.PAUSED_SOURCE
        if (order.subject if is_source else MatchRef.parse(order.subject).source) not in sources:
            bus.emit(OrderUnmatched(kind=order.kind, subject=order.subject))
    with suppress(StorageError, TimeoutError):
        async with asyncio.timeout(PROTECT_WITHIN_SECONDS):
            await store.protect_orders()


async def _watch(
    runtime: Runtime,
    schedulers: Mapping[str, Scheduler],
    sinks: ScraperSinks,
    directory: DataDirectory,
    *,
    is_supervised: bool,
) -> None:
    """Run all loops of the scraper until a stop signal."""
    commands = CommandLoop(
        runtime.ops.commands,
        schedulers,
        recycle_browsers=runtime.browsers.recycle,
        memory_check=runtime.memory_check,
        bus=runtime.bus,
        clock=runtime.clock,
    )
    # Standing orders apply before the first match is adopted.
    await commands.begin()
    if directory.ops_db.exists():  # with the store, which is open
        directory.remember_databases()
    await _adopt_all(runtime, schedulers)
    monitoring = SelfMonitoring(runtime, schedulers=schedulers, sinks=sinks, is_supervised=is_supervised)
    prometheus = runtime.settings.scraper.monitoring.prometheus
    async with monitoring.active():
        await run_until_stopped(
            monitoring.run(),
            monitoring.watch_store(),
            monitoring.lag.run(),
            *metrics_tasks(prometheus, sinks.metrics, monitoring.state, bus=runtime.bus, clock=runtime.clock),
            runtime.browsers.run(),
            commands.run(),
            runtime.dispatcher.run(),
            *(scheduler.run() for scheduler in schedulers.values()),
        )


async def _adopt_all(runtime: Runtime, schedulers: Mapping[str, Scheduler]) -> None:
    """Resume all stored matches. One that cannot be loaded is reported, and does not stop the others."""

    def report(ref: MatchRef, error: Exception) -> None:
        runtime.bus.emit(StoreFailed(ref=str(ref), error_type=type(error).__name__, error_message=str(error)))

    adopted = set()
    async for match in runtime.matches.take_over(schedulers, report):
        for ref in (each for each in match.refs if each.source in schedulers):
            try:
                if await schedulers[ref.source].adopt(match, ref):
                    adopted.add(match.row.match_id)
            except Exception as error:
                report(ref, error)
    # A match of a disabled source must not appear live.
    runtime.hot.keep_only(adopted)


def _open_hot(directory: DataDirectory, bus: Bus) -> SqliteHotWriter:
    return SqliteHotWriter(
        directory.hot_db,
        on_failure=lambda error: bus.emit(HotViewFailed(error_message=str(error))),
        on_rebuilt=lambda reason, moved_to: bus.emit(HotViewRebuilt(error_message=reason, moved_to=moved_to)),
    )
