"""The app is put together here, and served."""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from msgspec import Struct

from longstop import __version__
from longstop.api.admin import AdminRoutes
from longstop.api.auth import TokenVerifier
from longstop.api.guard import guard
from longstop.api.history import HistoryRoutes
from longstop.api.matches import Lookup, MatchRoutes
from longstop.api.outlook import Outlook
from longstop.api.past import PastRoutes
from longstop.api.probes import Probes
from longstop.clock import Clock
from longstop.doctor.holders import listener_on
from longstop.errors import UsageError
from longstop.sports.registry import sports
from longstop.storage.base import CommandStore, HealthLogReader, HotReader, MatchReader
from longstop.telemetry.bus import Bus

#: Running answers get this long when we are asked to stop; with the server's own ticks that stays under 5 s.
GRACE_SECONDS = 4


class Stores(Struct, frozen=True, kw_only=True):
    """What an app answers from."""

    matches: MatchReader
    hot: HotReader
    #: Without it, nobody can give orders through the API.
    commands: CommandStore | None = None
    #: Finds the matches that orders name. It should not answer on the loop: then one that hangs delays no data route.
    ordered: MatchReader | None = None
    #: Without it, nobody sees how it went.
    health_log: HealthLogReader | None = None

    async def aclose(self) -> None:
        stores = (self.matches, self.hot, self.commands, self.ordered, self.health_log)
        await asyncio.gather(*(each.aclose() for each in stores if each is not None))


def build_app(
    stores: Stores,
    *,
    verifier: TokenVerifier,
    clock: Clock,
    outlook: Outlook,
    lag: Callable[[], float | None] = lambda: None,
    bus: Bus | None = None,
) -> FastAPI:
    """Return the app. It holds what it was given and nothing else; closing the stores is up to the caller."""
    app = FastAPI(
        title="Longstop",
        version=__version__,
        summary="Live matches, with their age.",
        # The documentation pages would load scripts from elsewhere; /openapi.json serves any viewer.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for sport in sports():
        lookup = Lookup(
            reader=stores.matches,
            hot=stores.hot,
            verifier=verifier,
            clock=clock,
            sport=sport,
            is_hanging=outlook.is_hanging,
        )
        MatchRoutes(lookup).add_to(app)
        HistoryRoutes(lookup).add_to(app)
    Probes(outlook, verifier=verifier, clock=clock, lag=lag).add_to(app)
    if stores.health_log is not None:
        PastRoutes(stores.health_log, verifier=verifier, clock=clock).add_to(app)
    if stores.commands is not None:
        reader = stores.ordered or stores.matches
        AdminRoutes(stores.commands, reader=reader, verifier=verifier, clock=clock).add_to(app)
    guard(app, bus or Bus())
    return app


async def run_server(app: FastAPI, host: str, port: int, *, on_ready: Callable[[int], None]) -> None:
    """Serve until cancelled, then let running answers finish; `on_ready` gets the port (0 lets the system choose)."""
    with _listening(host, port) as listener:
        server = _Server(_config(app), on_ready=on_ready)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="api")
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            await serving
            raise


class _Server(uvicorn.Server):
    """A server that says when it listens and leaves signals to the process."""

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
        # What is worth saying goes to telemetry, as JSON; uvicorn's own lines would stand between ours.
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        # Without the port: the lookup would quietly wrap one above 65535, where bind refuses it.
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
    why = f"it is taken by {holder}; end that process, or choose" if holder else f"{reason}; choose"
    return UsageError(f"the API cannot listen on {host} port {port}: {why} another port with LONGSTOP_API_PORT")
