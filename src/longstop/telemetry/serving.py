"""A page for whoever collects metrics: one path over plain HTTP, small enough to run beside the watching."""

import asyncio
from collections.abc import Awaitable, Callable

from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import MetricsServed, MetricsUnavailable

#: A request's head; ours has no use for more.
MAX_HEAD_BYTES = 8192
#: From connecting to the last byte of the answer.
ANSWER_WITHIN = 10.0
MAX_CONNECTIONS = 16
#: A taken port is asked for again after so long: its holder may have left.
RETRY_SECONDS = 30.0
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PageMaker = Callable[[], Awaitable[bytes]]
#: Says why a host and port cannot be had, and what to do; it may take its time, in a thread.
Explain = Callable[[str, int, OSError], str]


def plainly(_host: str, _port: int, error: OSError) -> str:
    return error.strerror or str(error)


async def serve_metrics(host: str, port: int, page: PageMaker, bus: Bus, explain: Explain = plainly) -> None:
    """Serve `/metrics` until cancelled; a port that cannot be had is told and waited for, never an error."""
    desk = _Desk(page, bus)
    server = await _listen(host, port, desk, bus, explain)
    bus.emit(MetricsServed(host=host, port=server.sockets[0].getsockname()[1]))
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        server.close()
        desk.close()


async def _listen(host: str, port: int, desk: "_Desk", bus: Bus, explain: Explain) -> asyncio.Server:
    is_told = False
    while True:
        try:
            return await asyncio.start_server(desk.answer, host, port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            if not is_told:
                reason = await asyncio.to_thread(explain, host, port, error)
                bus.emit(MetricsUnavailable(host=host, port=port, reason=reason))
                is_told = True
            await asyncio.sleep(RETRY_SECONDS)


class _Desk:
    """Answers one request a connection."""

    def __init__(self, page: PageMaker, bus: Bus) -> None:
        self._page = page
        self._bus = bus
        self._open: set[asyncio.StreamWriter] = set()

    def close(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(writer)
        # Done means handed to the kernel: a client that never reads must not keep the text in our memory.
        writer.transport.set_write_buffer_limits(0)
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                writer.write(await self._response(reader))
                await writer.drain()
            writer.close()
        except (OSError, EOFError, asyncio.LimitOverrunError):
            writer.transport.abort()  # the client left, was too slow or said too much: its trouble alone
        finally:
            self._open.discard(writer)

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        match head.partition(b"\r\n")[0].split(b" "):
            case [b"GET", target, _version] if target.partition(b"?")[0] == b"/metrics":
                return await self._metrics()
            case [b"GET", _target, _version]:
                return _http("404 Not Found", b"The metrics are at /metrics.\n")
            case [_method, _target, _version]:
                return _http("405 Method Not Allowed", b"This address is only for GET.\n", "Allow: GET\r\n")
            case _:
                return _http("400 Bad Request", b"This is no HTTP request.\n")

    async def _metrics(self) -> bytes:
        try:
            return _http("200 OK", await self._page())
        except Exception as error:  # a bug in the metrics must neither end the watching nor be silent
            self._bus.emit(failure_of(error, "metrics"))
            return _http("500 Internal Server Error", b"Something went wrong here; it has been recorded.\n")


def _http(status: str, body: bytes, more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{more}Connection: close\r\n\r\n"
    )
    return head.encode() + body
