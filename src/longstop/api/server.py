"""Builds the app from its routes, and serves it."""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from msgspec import Struct

from longstop import __version__
from longstop.api.admin_routes import AdminRoutes
from longstop.api.docs_and_metrics_routes import add_pages
from longstop.api.health_and_recovery_routes import HealthRoutes
from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.large_answers import LargeAnswers
from longstop.api.limited_connection import ConnectionLimits, LimitedConnection
from longstop.api.match_routes import MatchRoutes
from longstop.api.metrics_limits_and_errors_middleware import RequestMetrics, add_middleware
from longstop.api.open_connections_and_acceptor import Acceptor, Connections
from longstop.api.tokens import Secret
from longstop.clock import Clock
from longstop.doctor.holders import listener_on
from longstop.errors import UsageError
from longstop.sports.registry import sports
from longstop.storage.base import CommandStore, HealthLogStore, HotReader, MatchReader
from longstop.telemetry.bus import Bus

#: How long running requests may take on shutdown; with the ticks of uvicorn that stays under 5 s.
GRACE_SECONDS = 4
SEND_BUFFER_BYTES = 256 * 1024
#: uvicorn ticks ten times a second.
SWEPT_EVERY_TICKS = 5


class Stores(Struct, frozen=True, kw_only=True):
    matches: MatchReader
    hot: HotReader
    commands: CommandStore
    #: For the admin routes. It must not answer on the event loop: a hung file must not delay data routes.
    admin_matches: MatchReader
    #: For answers that may be large. It must not answer on the event loop.
    large_matches: MatchReader
    health_log: HealthLogStore

    async def aclose(self) -> None:
        matches = (self.matches, self.admin_matches, self.large_matches)
        stores = (*matches, self.hot, self.commands, self.health_log)
        await asyncio.gather(*(each.aclose() for each in stores))


def build_app(
    stores: Stores,
    *,
    secret: Secret,
    clock: Clock,
    health: HealthCache,
    lag: Callable[[], float | None] = lambda: None,
    bus: Bus | None = None,
    stopping: asyncio.Event | None = None,
    unsent_bytes: Callable[[], int] = lambda: 0,
) -> FastAPI:
    """Return the app. The caller closes the stores.

    Commands wait for no answer once `stopping` is set. Large answers wait until clients have taken what is unsent.
    """
    app = FastAPI(
        title="Longstop",
        version=__version__,
        summary="Live matches, with their age.",
        # The built-in documentation pages load scripts from a CDN.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    large = LargeAnswers(unsent_bytes)
    for sport in sports():
        MatchRoutes(
            reader=stores.matches,
            large_reader=stores.large_matches,
            large=large,
            hot=stores.hot,
            secret=secret,
            clock=clock,
            sport=sport,
            is_store_unusable=health.is_store_unusable,
        ).add_to(app)
    HealthRoutes(cache=health, log=stores.health_log, large=large, secret=secret, clock=clock, lag=lag).add_to(app)
    AdminRoutes(stores.commands, reader=stores.admin_matches, secret=secret, clock=clock, stopping=stopping).add_to(app)
    metrics = RequestMetrics()
    add_pages(app, metrics)
    add_middleware(app, bus or Bus(), metrics)
    return app


async def run_server(
    app: FastAPI,
    host: str,
    port: int,
    *,
    on_ready: Callable[[int], None],
    connections: Connections | None = None,
    stopping: asyncio.Event | None = None,
) -> None:
    """Serve until cancelled, then set `stopping` and let running requests finish.

    `on_ready` gets the port (0: any free one).
    """
    with bound_socket(host, port) as listener:
        if connections is None:
            connections = Connections(ConnectionLimits(), Bus())
        server = _Server(_config(app), connections, on_ready=on_ready)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="api")
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            if stopping is not None:
                stopping.set()
            server.should_exit = True
            await serving
            raise


class _Server(uvicorn.Server):
    """A server with limits that reports its port and does not handle signals."""

    def __init__(self, config: uvicorn.Config, connections: Connections, *, on_ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self._connections = connections
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        # uvicorn only closes them and waits for that.
        acceptors: list[Any] = [Acceptor(each, self._connections, self._connect) for each in sockets or []]
        self.servers = acceptors
        self.started = True
        for listener in sockets or []:
            self._on_ready(listener.getsockname()[1])

    async def on_tick(self, counter: int) -> bool:
        if counter % SWEPT_EVERY_TICKS == 0:
            self._connections.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def _connect(self, address: str, is_in_reserve: bool) -> LimitedConnection:
        return LimitedConnection(
            address=address,
            is_in_reserve=is_in_reserve,
            limits=self._connections.limits,
            on_lost=self._connections.remove,
            config=self.config,
            server_state=self.server_state,
        )


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


def bound_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
        # Connections inherit it. Otherwise a body waits up to 40 ms for the client's acknowledgement of the head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The system would let this grow to megabytes for each client that does not read.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        return listener
    except OSError as error:
        raise _cannot_listen(host, port, error) from error


def _cannot_listen(host: str, port: int, error: OSError) -> UsageError:
    holder = listener_on(host, port) if error.errno == errno.EADDRINUSE else None
    why = f"it is taken by {holder}; stop that process, or choose" if holder else f"{error.strerror}; choose"
    is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
    option = "--port or LONGSTOP_API_PORT" if is_port else "LONGSTOP_API_HOST"
    return UsageError(f"the API cannot listen on {host} port {port}: {why} another with {option}")
