"""The API process: serves what the store and the hot view hold; it never scrapes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from longstop.api.auth import Permission, TokenVerifier, issue_token
from longstop.api.clerks import Clerks
from longstop.api.outlook import Outlook
from longstop.api.secret import Secret
from longstop.api.server import build_app, run_server
from longstop.app.common import life, make_bus, run_until_stopped
from longstop.clock import Clock, Moment, SystemClock
from longstop.settings import Settings
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot import SqliteHotReader
from longstop.storage.sqlite.matches import SqliteMatchReader
from longstop.storage.sqlite.ops import CommandBook, HealthLogReader, RecoveryReader
from longstop.supervision.lag import LoopWatch
from longstop.telemetry.bus import Bus

#: Whoever reads on the loop makes everybody wait: not longer than this for a file that somebody holds.
LOOP_PATIENCE_MS = 50
#: A file that hangs must not keep the process from ending; it is closed with it, and nothing is lost.
CLOSE_WITHIN_SECONDS = 1.0


class Closes(Protocol):
    def close(self) -> None: ...


async def run_api(settings: Settings, *, on_ready: Callable[[int], None]) -> None:
    """Serve what the store holds until asked to stop; it never scrapes."""
    clock = SystemClock()
    bus = make_bus("api", settings, clock)
    directory = DataDirectory.open(settings.data)
    reader = SqliteMatchReader(directory.matches_db, LOOP_PATIENCE_MS)
    hot = SqliteHotReader(directory.hot_db, LOOP_PATIENCE_MS)
    outlook, lag = _outlook(directory, settings, clock, bus), LoopWatch(bus, clock.monotonic)
    commands, health_log = CommandBook(directory.ops_db, clock), HealthLogReader(directory.ops_db)
    order_reader = SqliteMatchReader(directory.matches_db)
    app = build_app(
        reader=reader,
        hot=hot,
        verifier=TokenVerifier(load_secret(settings)),
        clock=clock,
        outlook=outlook,
        lag=lambda: lag.lag_seconds,
        bus=bus,
        commands=commands,
        order_reader=order_reader,
        health_log=health_log,
    )
    try:
        with life(bus, "api"), outlook.looking():
            serving = run_server(app, settings.api.host, settings.api.port, on_ready=on_ready)
            await run_until_stopped(serving, lag.run())
    finally:
        await _close(reader, hot, commands, order_reader, health_log)


async def _close(*files: Closes) -> None:
    """Close each in a thread of its own: whoever hangs in a file holds its lock, and would keep us here for ever."""
    clerks = Clerks("closing", count=len(files), patience_seconds=CLOSE_WITHIN_SECONDS)

    async def close(file: Closes) -> None:
        with suppress(TimeoutError):
            await clerks.ask(file.close)

    await asyncio.gather(*(close(each) for each in files))


def _outlook(directory: DataDirectory, settings: Settings, clock: Clock, bus: Bus) -> Outlook:
    """Return how it goes, seen through connections of its own: nobody who asks for data waits behind them."""
    return Outlook(
        reader=SqliteMatchReader(directory.matches_db),
        hot=SqliteHotReader(directory.hot_db),
        recoveries=RecoveryReader(directory.ops_db),
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
