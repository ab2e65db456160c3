"""One connection of a client: what it may send, and for how long it may keep the API waiting.

uvicorn parses and answers requests. It bounds neither heads nor pipelined requests or waiting times.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Any

import httptools
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from longstop.api.json_and_error_responses import error_response
from longstop.api.metrics_limits_and_errors_middleware import IN_RESERVE, MAX_BODY_BYTES, MAX_TARGET_BYTES

MAX_HEADERS = 100
MAX_HEAD_BYTES = 64 * 1024
#: Longer URLs are not even read to their end. Shorter ones are refused by the app, which keeps the connection.
MAX_URL_BYTES = 4 * MAX_TARGET_BYTES
#: A request as sent: small chunks take more than their content.
MAX_REQUEST_BYTES = MAX_HEAD_BYTES + 4 * MAX_BODY_BYTES
#: Requests that wait on one connection for the answer to an earlier one.
MAX_PIPELINED = 32
#: A client makes progress if it takes this much of an answer within the time limit.
PROGRESS_BYTES = 64 * 1024
#: How long a refused client may go on sending: a connection closed before would lose the refusal on its way.
LINGER_SECONDS = 1.0

#: Connections beyond the limit, for probes only.
RESERVE = 16
#: Descriptors for files, or half of them if there are few; connections get the rest.
OWN_DESCRIPTORS = 64

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


class LimitedConnection(HttpToolsProtocol):
    """A connection that bounds what its client may send, and for how long it may keep it waiting."""

    def __init__(
        self,
        *,
        address: str,
        is_in_reserve: bool,
        limits: ConnectionLimits,
        on_lost: "Callable[[LimitedConnection], None]",
        **server: Any,
    ) -> None:
        super().__init__(**server, app_state={IN_RESERVE: True} if is_in_reserve else {})
        self.address = address
        self.is_in_reserve = is_in_reserve
        self.stage, self.since = Stage.FIRST_BYTE, self.loop.time()
        self._limits = limits
        self._on_lost = on_lost
        self._is_cut_off = False
        self._request_bytes = 0
        self._body_bytes = 0
        self._answered = 0
        #: When the client was last seen to take enough, the bytes that waited then, and the answers sent until then.
        self._mark: tuple[float, int, int] | None = None
        #: Since when the client has taken too little of an answer.
        self.blocked_since: float | None = None

    @property
    def is_waiting(self) -> bool:
        return not (self.is_answering or self.unsent_bytes)

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.disconnected

    @property
    def unsent_bytes(self) -> int:
        return self.transport.get_write_buffer_size() if self.transport else 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._is_cut_off:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_lost(self)

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
        self._mark = self.blocked_since = None
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
            self._mark, self.blocked_since = (now, unsent, self._answered), None
            return
        self.blocked_since = mark[0]
        if now - mark[0] > self._limits.write_seconds:
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
