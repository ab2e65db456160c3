"""The API process: serves what the store and the hot view hold; it never scrapes."""

from collections.abc import Callable
from datetime import timedelta

from longstop.api.auth import Permission, TokenVerifier, issue_token
from longstop.api.secret import Secret
from longstop.api.server import build_app, run_server
from longstop.app.common import life, make_bus, run_until_stopped
from longstop.clock import SystemClock
from longstop.hot.sqlite import SqliteHotReader
from longstop.settings import Settings
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite import SqliteMatchReader


async def run_api(settings: Settings, *, on_ready: Callable[[int], None]) -> None:
    """Serve what the store holds until asked to stop; it never scrapes."""
    clock = SystemClock()
    bus = make_bus("api", settings, clock)
    directory = DataDirectory.open(settings.data)
    reader, hot = SqliteMatchReader(directory.matches_db), SqliteHotReader(directory.hot_db)
    app = build_app(
        reader=reader,
        hot=hot,
        verifier=TokenVerifier(load_secret(settings)),
        clock=clock,
        started_at=clock.now(),
        bus=bus,
    )
    try:
        with life(bus, "api"):
            await run_until_stopped(run_server(app, settings.api.host, settings.api.port, on_ready=on_ready))
    finally:
        reader.close()
        hot.close()


def make_token(settings: Settings, subject: str) -> str:
    """Return a token that may read, good for as long as the settings say."""
    ttl = timedelta(hours=settings.api.token_ttl_hours)
    secret = load_secret(settings)
    return issue_token(secret, subject=subject, permissions=[Permission.READ], ttl=ttl, now=SystemClock().now())


def load_secret(settings: Settings) -> Secret:
    """Return the key that signs tokens, made when there is none yet."""
    return Secret.load_or_create(DataDirectory.open(settings.data).path / "token-secret")
