"""The API process: serves what the store and the hot view hold; it never scrapes."""

from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta

from longstop.api.auth import Permission, TokenVerifier, issue_token
from longstop.api.outlook import Outlook
from longstop.api.secret import Secret
from longstop.api.server import Stores, build_app, run_server
from longstop.app.common import life, make_bus, run_until_stopped
from longstop.clock import Clock, Moment, SystemClock
from longstop.settings import Settings
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.connection import BUSY_TIMEOUT_MS
from longstop.storage.sqlite.hot import SqliteHotReader
from longstop.storage.sqlite.matches import SqliteMatchReader
from longstop.storage.sqlite.ops import SqliteAudit, SqliteCommands, SqliteHealthLog
from longstop.supervision.lag import LoopWatch
from longstop.telemetry.bus import Bus

#: A read on the loop makes all requests wait: not longer than this for a file that another process holds.
LOOP_PATIENCE_MS = 50


async def run_api(settings: Settings, *, on_ready: Callable[[int], None]) -> None:
    """Serve what the store holds until asked to stop; it never scrapes."""
    clock = SystemClock()
    bus = make_bus("api", settings, clock)
    directory = DataDirectory.open(settings.data)
    stores = Stores(
        matches=SqliteMatchReader(directory.matches_db, LOOP_PATIENCE_MS),
        hot=SqliteHotReader(directory.hot_db, LOOP_PATIENCE_MS),
        commands=SqliteCommands(directory.ops_db, clock),
        ordered=SqliteMatchReader(directory.matches_db),
        health_log=SqliteHealthLog(directory.ops_db),
    )
    outlook, lag = _outlook(directory, settings, clock, bus), LoopWatch(bus, clock.monotonic)
    verifier = TokenVerifier(load_secret(settings))
    app = build_app(stores, verifier=verifier, clock=clock, outlook=outlook, lag=lambda: lag.lag_seconds, bus=bus)
    with life(bus, "api"), outlook.looking():
        async with aclosing(stores):
            serving = run_server(app, settings.api.host, settings.api.port, on_ready=on_ready)
            await run_until_stopped(serving, lag.run())


def _outlook(directory: DataDirectory, settings: Settings, clock: Clock, bus: Bus) -> Outlook:
    """Return how it goes, seen through connections of its own, in threads that may wait for a file."""
    return Outlook(
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
    )


def make_token(settings: Settings, subject: str, *, is_admin: bool = False) -> str:
    """Return a token that may read, and give orders if asked so, good for as long as the settings say."""
    ttl = timedelta(hours=settings.api.token_ttl_hours)
    permissions = [Permission.READ, Permission.ADMIN] if is_admin else [Permission.READ]
    return issue_token(
        load_secret(settings), subject=subject, permissions=permissions, ttl=ttl, now=SystemClock().now()
    )


def load_secret(settings: Settings) -> Secret:
    """Return the key that signs tokens, made when there is none yet."""
    return Secret.load_or_create(DataDirectory.open(settings.data).path / "token-secret")
