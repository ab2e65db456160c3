"""Samples the metrics once a second, and serves them at `/metrics` over plain HTTP.

prometheus_client's own server uses a thread for each connection and does not limit slow clients. This one runs on the
event loop and limits connections, request size and time.
"""

import asyncio
import errno
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
    server = await _listen(host, port, handler, bus)
    bus.emit(MetricsServed(host=host, port=server.sockets[0].getsockname()[1]))
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        server.close()
        handler.close()


async def _listen(host: str, port: int, handler: "_Handler", bus: Bus) -> asyncio.Server:
    is_reported = False
    while True:
        try:
            return await asyncio.start_server(handler.handle, host, port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            if not is_reported:
                reason = await asyncio.to_thread(_why_unavailable, host, port, error)
                bus.emit(MetricsUnavailable(host=host, port=port, reason=reason))
                is_reported = True
            await asyncio.sleep(RETRY_SECONDS)


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
        self._open: set[asyncio.StreamWriter] = set()

    def close(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(writer)
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
            self._open.discard(writer)

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
