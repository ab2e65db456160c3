"""A small HTTP/1.1 server of our own, because faults need the socket itself."""

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol

from longstop.clock import Clock
from longstop_lab.simulator.control import ABOUT, PREFIX, Control
from longstop_lab.simulator.fault_responses import FaultInjector, Site, WorldT
from longstop_lab.simulator.faults import Choice, Fault, FaultKind, FaultRules
from longstop_lab.simulator.http import BadRequest, Request, Response, failure, read_request, to_json
from longstop_lab.simulator.pages.hostile import PREFIX as HOSTILE
from longstop_lab.simulator.pages.hostile import hostile_answer
from longstop_lab.simulator.request_log import RequestLog
from longstop_lab.simulator.timeline import Timeline
from longstop_lab.simulator.websocket import accept, wants_channel

#: Idle connections are closed after this many seconds.
_IDLE_SECONDS = 75
#: Linger "on" for no time at all: closing sends a reset.
_NO_LINGER = struct.pack("ii", 1, 0)


class Channel(Protocol):
    """Serves a connection after its upgrade from HTTP."""

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...


OpenChannel = Callable[[Request], Channel | None]


class SimulatorServer(Generic[WorldT]):
    """Serves a site and the control paths on one port; `others` are frozen with this world."""

    def __init__(
        self,
        world: WorldT,
        faults: FaultRules,
        clock: Clock,
        make_site: Callable[[WorldT], Site],
        *,
        others: Sequence[Timeline[Any, Any]] = (),
        open_channel: OpenChannel = lambda _request: None,
    ) -> None:
        self._worlds: tuple[Timeline[Any, Any], ...] = (world, *others)
        self._faults = faults
        self._clock = clock
        self._injector = FaultInjector(world, make_site)
        self._open_channel = open_channel
        self._requests = RequestLog()
        self._control = Control(self._worlds, faults, self._requests)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port: the one given, or a free one for 0."""
        self._server = await asyncio.start_server(self._accept, host, port, backlog=1024)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def aclose(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None  # noqa: S101
        self._connections.add(connection)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            pass  # the client closed, was idle too long, or the server is closing: there is nothing to send
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                async with asyncio.timeout(_IDLE_SECONDS):
                    request = await read_request(reader)
            except BadRequest as error:
                writer.write(failure(400, str(error)).encode(keeps_alive=False))
                return
            if request is None or not await self._respond(request, reader, writer):
                return

    async def _respond(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer, and return whether the connection goes on."""
        now = self._clock.now()
        for world in self._worlds:
            world.advance(now)
        if request.path.startswith(PREFIX):
            return await _send(self._control.respond(request, now), request, writer)
        choice = self._faults.choose(request, now)
        self._requests.note(request, choice, now)
        if choice.delay_seconds:
            await asyncio.sleep(choice.delay_seconds)
        if request.path.startswith(HOSTILE):
            return await _send(hostile_answer(request), request, writer)
        if request.path == "/" and choice.rule is None:
            return await _send(to_json({"simulator": ABOUT}), request, writer)
        if wants_channel(request) and choice.rule is None and (channel := self._open_channel(request)):
            writer.write(accept(request))
            await channel.run(reader, writer)
            return False
        return await self._send_spoilt(choice, request, writer)

    async def _send_spoilt(self, choice: Choice, request: Request, writer: asyncio.StreamWriter) -> bool:
        match choice.fault:
            case Fault(kind=FaultKind.DROP):
                pass
            case Fault(kind=FaultKind.RESET):
                _reset(writer)
            case Fault(kind=FaultKind.TRUNCATED):
                whole = self._injector.answer(request)
                encoded = whole.encode(keeps_alive=False)
                writer.write(encoded[: len(encoded) - len(whole.body) // 2 - 1])
            case Fault(kind=FaultKind.DRIP) as fault:
                await _drip(self._injector.answer(request), writer, fault.seconds)
            case _:
                return await _send(self._injector.answer(request, choice.rule), request, writer)
        return False


async def _send(response: Response, request: Request, writer: asyncio.StreamWriter) -> bool:
    writer.write(response.encode(keeps_alive=request.keeps_alive))
    await writer.drain()
    return request.keeps_alive


async def _drip(response: Response, writer: asyncio.StreamWriter, pause_seconds: float) -> None:
    encoded = response.encode(keeps_alive=False)
    head = len(encoded) - len(response.body)
    writer.write(encoded[:head])
    for byte in response.body:
        writer.write(bytes((byte,)))
        await writer.drain()
        await asyncio.sleep(pause_seconds)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()
