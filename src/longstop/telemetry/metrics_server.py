"""Samples the metrics once a second, and serves them at `/metrics` over plain HTTP.

prometheus_client's own server uses a thread for each connection and does not limit slow clients. This one runs on the
event loop and limits connections, request size and time.
"""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Coroutine
from math import inf

from longstop.clock import Clock, Moment
from longstop.doctor.holders import listener_on
from longstop.settings import Prometheus
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import MetricsServed, MetricsUnavailable
from longstop.telemetry.metrics import Metrics, ScraperState

SAMPLE_SECONDS = 1.0
MAX_HEAD_BYTES = 8192
#: From the connection to the last byte of the response.
RESPOND_WITHIN = 10.0
MAX_CONNECTIONS = 16
#: A port in use is tried again after so long.
RETRY_SECONDS = 30.0
#: After a connection that could not be accepted.
ACCEPT_AGAIN_SECONDS = 1.0
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

ReadState = Callable[[], ScraperState]
MakePage = Callable[[], Awaitable[bytes]]


def metrics_tasks(
    settings: Prometheus, metrics: Metrics, read_state: ReadState, *, bus: Bus, clock: Clock
) -> list[Coroutine[None, None, None]]:
    """Return what has to run next to the schedulers; nothing if metrics are disabled."""
    if not settings.enabled:
        return []

    rendering, rendered, rendered_at = asyncio.Lock(), b"", -inf

    async def page() -> bytes:
        nonlocal rendered, rendered_at
        async with rendering:
            now = Moment.of(clock)
            if now.monotonic - rendered_at >= SAMPLE_SECONDS:
                # The state is read on the event loop, which is quick, and formatted in a thread.
                rendered = await asyncio.to_thread(metrics.page, read_state(), now)
                rendered_at = now.monotonic
        return rendered

    return [_sample(metrics, read_state, bus, clock), serve_metrics(settings.host, settings.port, page, bus)]


async def _sample(metrics: Metrics, read_state: ReadState, bus: Bus, clock: Clock) -> None:
    while True:
        try:
            metrics.sample(read_state().records, Moment.of(clock))
        except Exception as error:  # a bug in the metrics must not stop polling
            bus.emit(failure_of(error, "metrics"))
        await asyncio.sleep(SAMPLE_SECONDS)


async def serve_metrics(host: str, port: int, page: MakePage, bus: Bus) -> None:
    """Serve `/metrics` until cancelled. A port that cannot be opened is reported once and retried."""
    handler = _Handler(page, bus)
    listener = await _listen(host, port, bus)
    bus.emit(MetricsServed(host=host, port=listener.getsockname()[1]))
    try:
        await _accept(listener, handler)
    finally:
        listener.close()
        handler.close()


async def _accept(listener: socket.socket, handler: "_Handler") -> None:
    """Accept one connection after the other. The loop's own server logs a traceback for each that it cannot accept."""
    loop, running = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    while True:
        try:
            client, _address = await loop.sock_accept(listener)
        except OSError:  # reported elsewhere: out of descriptors
            await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
            continue
        task = asyncio.create_task(handler.handle(client))
        running.add(task)
        task.add_done_callback(running.discard)
        await asyncio.sleep(0)  # those accepted before come first


async def _listen(host: str, port: int, bus: Bus) -> socket.socket:
    is_reported = False
    while True:
        try:
            listener = await asyncio.to_thread(_bound_socket, host, port)
            listener.setblocking(False)
            return listener
        except OSError as error:
            if not is_reported:
                reason = await asyncio.to_thread(_why_unavailable, host, port, error)
                bus.emit(MetricsUnavailable(host=host, port=port, reason=reason))
                is_reported = True
            await asyncio.sleep(RETRY_SECONDS)


def _bound_socket(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, port), family=family)


def _why_unavailable(host: str, port: int, error: OSError) -> str:
    """Return why the port cannot be opened, which process has it, and what to do."""
    holder = listener_on(host, port) if error.errno == errno.EADDRINUSE else None
    if holder:
        return f"it is in use by {holder}; stop that process, or set another port with PROMETHEUS_PORT"
    return f"{error.strerror or error}; set another port with PROMETHEUS_PORT"


class _Handler:
    """Answers one request for each connection."""

    def __init__(self, page: MakePage, bus: Bus) -> None:
        self._page = page
        self._bus = bus
        #: The oldest first.
        self._open: dict[asyncio.StreamWriter, None] = {}

    def close(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def handle(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client, limit=MAX_HEAD_BYTES)
        if len(self._open) >= MAX_CONNECTIONS:
            # A scrape takes milliseconds: the oldest connection is the least likely to be one.
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        # `drain` then waits until the kernel has all of it: a client that never reads must not keep it in our memory.
        writer.transport.set_write_buffer_limits(0)
        try:
            async with asyncio.timeout(RESPOND_WITHIN):
                writer.write(await self._response(reader))
                await writer.drain()
            writer.close()
        except (OSError, EOFError, asyncio.LimitOverrunError):
            writer.transport.abort()  # the client disconnected, was too slow, or sent too much
        finally:
            self._open.pop(writer, None)

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        match head.partition(b"\r\n")[0].split(b" "):
            case [b"GET", target, _version] if target.partition(b"?")[0] == b"/metrics":
                return await self._metrics()
            case [b"GET", _target, _version]:
                return _http("404 Not Found", b"Metrics are at /metrics.\n")
            case [_method, _target, _version]:
                return _http("405 Method Not Allowed", b"Only GET is supported.\n", "Allow: GET\r\n")
            case _:
                return _http("400 Bad Request", b"Not an HTTP request.\n")

    async def _metrics(self) -> bytes:
        try:
            return _http("200 OK", await self._page())
        except Exception as error:  # a bug in the metrics must not stop polling
            self._bus.emit(failure_of(error, "metrics"))
            return _http("500 Internal Server Error", b"Internal error; see task.failed in the log.\n")


def _http(status: str, body: bytes, more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{more}Connection: close\r\n\r\n"
    )
    return head.encode() + body
