"""Limits on connections and on what each may send, so that no client harms another: see "A hostile client" in the docs.

uvicorn parses and answers requests. It bounds neither connections nor heads, pipelined requests or waiting times.
"""

import asyncio
import errno
import os
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum, auto
from ipaddress import ip_address, ip_network
from typing import Any, Protocol, TypeVar

import httptools
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from longstop.api.json_and_error_responses import error_response
from longstop.api.metrics_limits_and_errors_middleware import IN_RESERVE, MAX_BODY_BYTES, MAX_TARGET_BYTES
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ConnectionsRefused

MAX_HEADERS = 100
MAX_HEAD_BYTES = 64 * 1024
#: Longer URLs are not even read to their end. Shorter ones are refused by the app, which keeps the connection.
MAX_URL_BYTES = 4 * MAX_TARGET_BYTES
#: A request as sent: small chunks take more than their content.
MAX_REQUEST_BYTES = MAX_HEAD_BYTES + 4 * MAX_BODY_BYTES
#: Requests that wait on one connection for the answer to an earlier one.
MAX_PIPELINED = 32
#: Answers that clients have not read yet; beyond it, the connections with the most are cut off, and no further large
#: answer is made.
MAX_UNSENT_BYTES = 32 * 1024 * 1024
#: A client makes progress if it takes this much of an answer within the time limit, …
PROGRESS_BYTES = 64 * 1024
#: … and may be cut off for others if it has made none for this time.
BLOCKED_SECONDS = 2.0
#: How long a refused client may go on sending: a connection closed before would lose the refusal on its way.
LINGER_SECONDS = 1.0

#: Connections beyond the limit, for probes only.
RESERVE = 16
#: Descriptors for files, or half of them if there are few; connections get the rest.
OWN_DESCRIPTORS = 64
BACKLOG = 2048
#: Further ones wait until other work of the loop is done.
ACCEPTED_AT_ONCE = 16
#: Waits after a failure to accept: a connection was closed to make room, or there was none to close.
RETRY_SECONDS, BACK_OFF_SECONDS = 0.05, 1.0
REPORTED_EVERY_SECONDS = 60.0

DAMAGED = HTTPException(400, "This is not an HTTP request that can be read.")
_TOO_SLOW = HTTPException(408, "The request took too long to arrive.")
_LONG_URL = HTTPException(414, f"The URL is longer than {MAX_TARGET_BYTES} bytes.")
_LARGE_BODY = HTTPException(413, f"The body is larger than {MAX_BODY_BYTES} bytes.")
_LARGE_HEAD = HTTPException(431, f"The headers have more than {MAX_HEAD_BYTES} bytes or {MAX_HEADERS} fields.")
_PIPELINED = HTTPException(400, f"More than {MAX_PIPELINED} requests wait for an answer on this connection.")


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    connections: int = 512
    per_address: int = 128
    request_seconds: float = 10.0
    write_seconds: float = 30.0
    idle_seconds: float = 30.0

    def within(self, descriptors: int) -> "ConnectionLimits":
        """Return these limits for a process that may open this number of descriptors."""
        own = min(OWN_DESCRIPTORS, descriptors // 2)
        return replace(self, connections=max(1, min(self.connections, descriptors - own - RESERVE)))


class Stage(Enum):
    """What a connection waits for."""

    FIRST_BYTE = auto()
    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    NEXT_REQUEST = auto()
    #: It was refused: what it still sends is thrown away.
    END = auto()


class Evictable(Protocol):
    """What decides which connection makes room."""

    #: When its stage began.
    since: float

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its client and has nothing to send."""

    @property
    def blocked_since(self) -> float | None:
        """Since when its client has taken nothing of an answer."""


AnyConnection = TypeVar("AnyConnection", bound=Evictable)


def to_evict(connections: Iterable[AnyConnection], now: float) -> AnyConnection | None:
    """Return the connection that has waited longest for its client, else one whose client does not read."""
    waiting: AnyConnection | None = None
    blocked: AnyConnection | None = None
    for each in connections:
        if each.is_waiting:
            if waiting is None or each.since < waiting.since:
                waiting = each
        elif (since := each.blocked_since) is not None and now - since >= BLOCKED_SECONDS:
            blocked = blocked or each
    return waiting or blocked


def address_group(host: str) -> str:
    """Return what counts as one address: a client owns a whole /64 of IPv6."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return host
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))


# --- one connection ---------------------------------------------------------------------------------------------------


class LimitedConnection(HttpToolsProtocol):
    """A connection that bounds what its client may send, and for how long it may keep it waiting."""

    def __init__(self, *, address: str, is_in_reserve: bool, registry: "Connections", **server: Any) -> None:
        super().__init__(**server, app_state={IN_RESERVE: True} if is_in_reserve else {})
        self.address = address
        self.is_in_reserve = is_in_reserve
        self.stage, self.since = Stage.FIRST_BYTE, self.loop.time()
        self._limits = registry.limits
        self._registry = registry
        self._is_cut_off = False
        self._request_bytes = 0
        self._body_bytes = 0
        self._answered = 0
        #: When a client began to take nothing, the bytes that waited then, and the answers sent until then.
        self._mark: tuple[float, int, int] | None = None

    @property
    def is_waiting(self) -> bool:
        return not (self.is_answering or self.unsent_bytes)

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.disconnected

    @property
    def unsent_bytes(self) -> int:
        return self.transport.get_write_buffer_size() if self.transport else 0

    @property
    def blocked_since(self) -> float | None:
        return self._mark[0] if self._mark else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._is_cut_off:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._registry.remove(self)

    def cut_off(self) -> None:
        """Close the connection at once, whatever waits to be sent."""
        self._is_cut_off = True  # it may not have a transport yet
        if self.transport:
            self.transport.abort()

    def check(self, now: float) -> None:
        """Close or refuse the connection if it waits for its client for too long."""
        if not self.transport:
            return
        if unsent := self.unsent_bytes:
            self._check_progress(now, unsent)
            return
        self._mark = None
        seconds = now - self.since
        match self.stage:
            case Stage.HEAD | Stage.BODY if seconds > self._limits.request_seconds:
                self._refuse(_TOO_SLOW)
            case Stage.FIRST_BYTE if seconds > self._limits.request_seconds:
                self.transport.close()
            case Stage.NEXT_REQUEST if seconds > self._limits.idle_seconds:
                self.transport.close()
            case Stage.END if seconds > LINGER_SECONDS:
                self.transport.close()

    def _check_progress(self, now: float, unsent: int) -> None:
        mark = self._mark
        if mark is None or unsent <= mark[1] - PROGRESS_BYTES or self._answered > mark[2]:
            self._mark = (now, unsent, self._answered)
        elif now - mark[0] > self._limits.write_seconds:
            self.cut_off()

    # --- what the parser finds; an exception ends the request ---

    def data_received(self, data: bytes) -> None:
        if self.stage is Stage.END:
            return
        self._request_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # it is answered as a request without an upgrade
        except httptools.HttpParserError as error:
            reason = error.__context__
            self._refuse(reason if isinstance(reason, HTTPException) else DAMAGED)
            return
        if self.stage is Stage.HEAD and self._request_bytes > MAX_HEAD_BYTES:
            self._refuse(_LARGE_HEAD)
        elif self._request_bytes > MAX_REQUEST_BYTES:
            self._refuse(_LARGE_BODY)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._body_bytes = 0
        self._enter(Stage.HEAD)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL_BYTES:
            raise _LONG_URL

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.stage is not Stage.HEAD:
            return  # after the body: it must not pass for a header
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            raise _LARGE_HEAD

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise _PIPELINED
        if sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            raise _LARGE_HEAD
        super().on_headers_complete()
        if self.is_in_reserve:
            self.cycle.keep_alive = False
        self._enter(Stage.BODY)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > MAX_BODY_BYTES:
            raise _LARGE_BODY
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._request_bytes = 0
        self._enter(Stage.ANSWER if self.is_answering else Stage.NEXT_REQUEST)

    def on_response_complete(self) -> None:
        """Start the next request that waits. Unlike uvicorn, read further ones only when none waits."""
        self._answered += 1
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        if not self.pipeline:
            self.flow.resume_reading()
        if self.stage is Stage.ANSWER and not self.is_answering:
            self._enter(Stage.NEXT_REQUEST)

    def _enter(self, stage: Stage) -> None:
        self.stage, self.since = stage, self.loop.time()

    def _refuse(self, reason: HTTPException) -> None:
        """Answer with this error and close. An answer that is due or has begun leaves no room for another."""
        is_of_this_request = self.stage is Stage.BODY and not (self.pipeline or self.cycle.response_started)
        if self.is_answering and not is_of_this_request:
            self.transport.close()
            return
        has_answer = self.stage is Stage.BODY and not is_of_this_request
        if self.is_answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._enter(Stage.END)
        if not has_answer:
            self.transport.write(_raw(reason))
        with suppress(OSError):  # the client may be gone
            self.transport.write_eof()
        self.flow.resume_reading()


def _raw(error: HTTPException) -> bytes:
    """Return the bytes of an error response that no app sends."""
    response = error_response(error.status_code, error.detail, {"Connection": "close", "Cache-Control": "no-store"})
    headers = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
    return STATUS_LINE[error.status_code] + headers + b"\r\n" + bytes(response.body)


# --- all connections --------------------------------------------------------------------------------------------------


class Connections:
    """All open connections. Admits new ones, makes room for them, and closes those that wait for too long."""

    def __init__(self, limits: ConnectionLimits, bus: Bus) -> None:
        self.limits = limits
        self._bus = bus
        self._open: set[LimitedConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._in_reserve = 0
        self._refused: Counter[str] = Counter()
        self._reported_at = -REPORTED_EVERY_SECONDS

    def admit(self, address: str, now: float) -> bool | None:
        """Return whether a new connection is one of the reserve; `None` if it must be closed."""
        normal = [each for each in self._open if not each.is_in_reserve]
        if self._by_address[address] >= self.limits.per_address:
            has_room = self.make_room([each for each in normal if each.address == address], now)
        else:
            has_room = len(normal) < self.limits.connections or self.make_room(normal, now)
        if has_room:
            return False
        self.count_refused("the limit of connections is reached")
        if self._in_reserve < RESERVE or self.make_room([each for each in self._open if each.is_in_reserve], now):
            return True
        return None

    def make_room(self, among: Iterable[LimitedConnection], now: float) -> bool:
        """Close the connection that others miss least; return whether there was one."""
        found = to_evict(among, now)
        if found is None:
            return False
        found.cut_off()
        self.remove(found)  # the loop reports its end only later
        return True

    def make_room_anywhere(self, now: float) -> bool:
        return self.make_room(self._open, now)

    def add(self, connection: LimitedConnection) -> None:
        self._open.add(connection)
        if connection.is_in_reserve:
            self._in_reserve += 1
        else:
            self._by_address[connection.address] += 1

    def remove(self, connection: LimitedConnection) -> None:
        if connection not in self._open:
            return
        self._open.remove(connection)
        if connection.is_in_reserve:
            self._in_reserve -= 1
        else:
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def count_refused(self, reason: str) -> None:
        self._refused[reason] += 1

    def sweep(self, now: float) -> None:
        """Close what waits for too long, and report what was refused."""
        for each in list(self._open):
            each.check(now)
        self._bound_unsent(now)
        if self._refused and now - self._reported_at >= REPORTED_EVERY_SECONDS:
            reasons = " and ".join(sorted(self._refused))
            self._bus.emit(
                ConnectionsRefused(refused=self._refused.total(), reason=reasons, connections=len(self._open))
            )
            self._refused.clear()
            self._reported_at = now

    def unsent_bytes(self) -> int:
        """Return how much of all answers their clients have not taken yet."""
        return sum(each.unsent_bytes for each in self._open)

    def _bound_unsent(self, now: float) -> None:
        unsent = self.unsent_bytes()
        if unsent <= MAX_UNSENT_BYTES:
            return
        for each in sorted(self._open, key=lambda one: one.unsent_bytes, reverse=True):
            if unsent > MAX_UNSENT_BYTES and each.blocked_since is not None and now > each.blocked_since:
                unsent -= each.unsent_bytes
                each.cut_off()


class Acceptor:
    """Accepts connections in place of the loop's server, which logs a traceback for each one that it cannot accept."""

    def __init__(
        self, listener: socket.socket, connections: Connections, connect: Callable[[str, bool], LimitedConnection]
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._starting: set[asyncio.Task[Any]] = set()
        #: Given up for a moment when the descriptors run out, to accept a connection and close it.
        self._spare: int | None = None
        self._resuming: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._resume()

    def close(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
        self._loop.remove_reader(self._listener)
        if self._spare is not None:
            os.close(self._spare)

    async def wait_closed(self) -> None:
        """Nothing is left to wait for after `close`; the server of uvicorn asks for it."""

    def _resume(self) -> None:
        if self._spare is None:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                client, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._back_off(error)
                return
            self._take(client, address_group(address[0]))

    def _take(self, client: socket.socket, address: str) -> None:
        is_in_reserve = self._connections.admit(address, self._loop.time())
        if is_in_reserve is None:
            client.close()
            return
        client.setblocking(False)
        connection = self._connect(address, is_in_reserve)
        self._connections.add(connection)
        starting = self._loop.create_task(self._start(client, connection))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)

    async def _start(self, client: socket.socket, connection: LimitedConnection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, client)
        except OSError:
            self._connections.remove(connection)
            client.close()

    def _back_off(self, error: OSError) -> None:
        """Make room, or refuse one connection; then leave the others in the queue of the system for a moment."""
        self._connections.count_refused(error.strerror or errno.errorcode.get(error.errno or 0, "error"))
        self._loop.remove_reader(self._listener)
        now, seconds = self._loop.time(), RETRY_SECONDS
        if sum(self._connections.make_room_anywhere(now) for _ in range(ACCEPTED_AT_ONCE)) == 0:
            seconds = BACK_OFF_SECONDS
            if self._spare is not None:
                os.close(self._spare)
                self._spare = None
                with suppress(OSError):
                    self._listener.accept()[0].close()
        self._resuming = self._loop.call_later(seconds, self._resume)


def descriptor_limit() -> int:
    """Return how many descriptors this process may open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
