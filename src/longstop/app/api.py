"""The API process: serves the store and the live view, and never scrapes."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from functools import partial

from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.limited_connection import ConnectionLimits
from longstop.api.open_connections_and_acceptor import Connections, descriptor_limit
from longstop.api.server import Stores, build_app, run_server
from longstop.api.tokens import load_secret
from longstop.app.process_lifetime import process_lifetime, return_freed_memory, run_until_stopped
from longstop.app.sinks import make_bus
from longstop.clock import Clock, Moment, SystemClock
from longstop.settings import Api, Settings
from longstop.storage.directory import DataDirectory, is_disk_full
from longstop.storage.sqlite.connection import BUSY_TIMEOUT_MS
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader
from longstop.storage.sqlite.matches import SqliteMatchReader
from longstop.storage.sqlite.operations_tables import SqliteAudit, SqliteCommands, SqliteHealthLog
from longstop.supervision.event_loop_and_clock_watch import LoopWatch
from longstop.telemetry.bus import Bus

#: A read on the event loop delays all requests: it waits at most this long for a file locked by another process.
LOOP_BUSY_TIMEOUT_MS = 50


async def run_api(settings: Settings, *, on_ready: Callable[[int], None]) -> None:
    """Serve until a signal asks to stop."""
    clock = SystemClock()
    bus = make_bus("api", settings, clock)
    directory = DataDirectory.open(settings.data)
    stores = Stores(
        matches=SqliteMatchReader(directory.matches_db, LOOP_BUSY_TIMEOUT_MS),
        hot=SqliteHotReader(directory.hot_db, LOOP_BUSY_TIMEOUT_MS),
        commands=SqliteCommands(directory.ops_db, clock),
        admin_matches=SqliteMatchReader(directory.matches_db),
        large_matches=SqliteMatchReader(directory.matches_db),
        health_log=SqliteHealthLog(directory.ops_db),
    )
    health, lag = _health_cache(directory, settings, clock, bus), LoopWatch(bus, clock.monotonic)
    secret, stopping = load_secret(settings), asyncio.Event()
    return_freed_memory()
    with process_lifetime(bus, "api"), health.polling():
        connections = Connections(_limits(settings.api).within(descriptor_limit()), bus)
        app = build_app(
            stores,
            secret=secret,
            clock=clock,
            health=health,
            lag=lambda: lag.lag_seconds,
            bus=bus,
            stopping=stopping,
            unsent_bytes=connections.unsent_bytes,
        )
        async with aclosing(stores):
            host, port = settings.api.host, settings.api.port
            serving = run_server(app, host, port, on_ready=on_ready, connections=connections, stopping=stopping)
            await run_until_stopped(serving, lag.run())


def _limits(api: Api) -> ConnectionLimits:
    return ConnectionLimits(
        connections=api.connections,
        per_address=api.connections_per_address,
        request_seconds=api.request_timeout,
        write_seconds=api.write_timeout,
        idle_seconds=api.idle_timeout,
    )


def _health_cache(directory: DataDirectory, settings: Settings, clock: Clock, bus: Bus) -> HealthCache:
    """Return the health cache, with its own connections: its threads may wait for a file."""
    return HealthCache(
        reader=SqliteMatchReader(directory.matches_db, BUSY_TIMEOUT_MS),
        hot=SqliteHotReader(directory.hot_db, BUSY_TIMEOUT_MS),
        audit=SqliteAudit(directory.ops_db),
        clock=clock,
        started=Moment.of(clock),
        config={
            "concurrency_cap": settings.scraper.fetching.concurrency_cap,
            "polling_interval_seconds": settings.scraper.lifecycle.polling_interval,
            "staleness_threshold_seconds": settings.scraper.lifecycle.staleness_threshold,
            "stall_seconds": settings.supervision.stalled_after,
            "pause_threshold": settings.scraper.resilience.circuit_breaker.pause_threshold,
        },
        bus=bus,
        is_disk_full=partial(is_disk_full, directory.path),
    )
