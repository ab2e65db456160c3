"""Builds the app from its routes, and serves it."""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from msgspec import Struct

from longstop import __version__
from longstop.api.admin_routes import AdminRoutes
from longstop.api.auth import TokenVerifier
from longstop.api.health_cache import HealthCache
from longstop.api.health_routes import HealthRoutes
from longstop.api.match_routes import MatchRoutes
from longstop.api.middleware import RequestMetrics, add_middleware
from longstop.api.pages import add_pages
from longstop.clock import Clock
from longstop.doctor.holders import listener_on
from longstop.errors import UsageError
from longstop.sports.registry import sports
from longstop.storage.base import CommandStore, HealthLogReader, HotReader, MatchReader
from longstop.telemetry.bus import Bus

#: How long running requests may take on shutdown; with the ticks of uvicorn that stays under 5 s.
GRACE_SECONDS = 4


class Stores(Struct, frozen=True, kw_only=True):
    """What the app reads from."""

    matches: MatchReader
    hot: HotReader
    #: Without it there are no admin routes.
    commands: CommandStore | None = None
    #: For the admin routes. It must not answer on the event loop: a hung file must not delay data routes.
    admin_matches: MatchReader | None = None
    #: Without it there is no `/status/history`.
    health_log: HealthLogReader | None = None

    async def aclose(self) -> None:
        stores = (self.matches, self.hot, self.commands, self.admin_matches, self.health_log)
        await asyncio.gather(*(each.aclose() for each in stores if each is not None))


def build_app(
    stores: Stores,
    *,
    verifier: TokenVerifier,
    clock: Clock,
    health: HealthCache,
    lag: Callable[[], float | None] = lambda: None,
    bus: Bus | None = None,
) -> FastAPI:
    """Return the app. The caller closes the stores."""
    app = FastAPI(
        title="Longstop",
        version=__version__,
        summary="Live matches, with their age.",
        # The built-in documentation pages load scripts from a CDN.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for sport in sports():
        MatchRoutes(
            reader=stores.matches,
            hot=stores.hot,
            verifier=verifier,
            clock=clock,
            sport=sport,
            is_hanging=health.is_hanging,
        ).add_to(app)
    HealthRoutes(health, log=stores.health_log, verifier=verifier, clock=clock, lag=lag).add_to(app)
    if stores.commands is not None:
        reader = stores.admin_matches or stores.matches
        AdminRoutes(stores.commands, reader=reader, verifier=verifier, clock=clock).add_to(app)
    metrics = RequestMetrics()
    add_pages(app, metrics)
    add_middleware(app, bus or Bus(), metrics)
    return app


async def run_server(app: FastAPI, host: str, port: int, *, on_ready: Callable[[int], None]) -> None:
    """Serve until cancelled, then let running requests finish. `on_ready` gets the port (0: any free one)."""
    with _bound_socket(host, port) as listener:
        server = _Server(_config(app), on_ready=on_ready)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="api")
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            await serving
            raise


class _Server(uvicorn.Server):
    """A server that reports its port and does not handle signals."""

    def __init__(self, config: uvicorn.Config, *, on_ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for listener in sockets or []:
            self._on_ready(listener.getsockname()[1])


def _config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        # Our own telemetry is JSON lines; uvicorn's lines would mix with them.
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


@contextmanager
def _bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    try:
        # Without the port: getaddrinfo silently wraps one above 65535, bind rejects it.
        family, kind, protocol, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(host, port, error) from error
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address[0], port, *address[2:]))
            listener.listen()
        except (OSError, OverflowError) as error:
            raise _cannot_listen(host, port, error) from error
        yield listener


def _cannot_listen(host: str, port: int, error: OSError | OverflowError) -> UsageError:
    reason, holder = getattr(error, "strerror", None) or str(error), None
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        holder = listener_on(host, port)
    why = f"it is taken by {holder}; stop that process, or choose" if holder else f"{reason}; choose"
    return UsageError(f"the API cannot listen on {host} port {port}: {why} another port with LONGSTOP_API_PORT")
