"""An HTTP proxy as a provider sells it: credentials, a count for each of them, and faults. It leads to this machine."""

import asyncio
import base64
import binascii
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from longstop.errors import UsageError
from longstop_lab.simulator.http import BadRequest, Request, Response, failure, read_request, to_json

_READ_BYTES = 65_536
_HEAD_BYTES = 65_536
_SECONDS_TO_CONNECT = 10.0
_SECONDS_TO_ASK = 75.0
#: A proxy that hangs gives up at last, so that no test leaves a connection behind.
_SECONDS_TO_HANG = 120.0
_MOST_CREDENTIALS = 10_000
_ASK_FOR_CREDENTIALS = b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="proxy"\r\n'
_ASK_FOR_CREDENTIALS += b"Content-Length: 0\r\nConnection: close\r\n\r\n"
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
#: Linger "on" for no time at all: closing sends a reset.
_NO_LINGER = struct.pack("ii", 1, 0)
#: Headers between a client and its proxy, which are not forwarded.
_HOP_BY_HOP = ("proxy-authorization", "proxy-connection", "connection", "keep-alive")

Address = tuple[str, int]


class ProxyFaultKind(StrEnum):
    #: The credential is refused.
    REFUSED = "407"
    #: The connection is reset.
    RESET = "reset"
    #: Nothing is answered.
    HANG = "hang"


class ProxyFault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong, and for which requests."""

    kind: ProxyFaultKind
    #: As `user:password`; `None` is everybody.
    credential: str | None = None
    #: How often; `None` is until it is taken away.
    times: Annotated[int, Meta(ge=1)] | None = None


class Usage(Struct, kw_only=True):
    """What one credential has used."""

    #: Requests in plain HTTP.
    requests: int = 0
    #: Lines to a host, through which the proxy sees bytes only: HTTPS, WebSockets.
    tunnels: int = 0
    refused: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    #: How often each target was asked for, as `host:port`.
    targets: Counter[str] = msgspec.field(default_factory=Counter)


def read_faults(body: bytes) -> list[ProxyFault]:
    """Read a list of faults as it is put over HTTP."""
    try:
        return msgspec.json.decode(body, type=list[ProxyFault])
    except msgspec.MsgspecError as error:
        raise UsageError(f"these are no faults: {error}") from error


class _Asked(Struct, frozen=True, kw_only=True):
    """The head of a request to the proxy."""

    method: str
    target: str
    version: str
    fields: tuple[tuple[str, str], ...]

    @property
    def credential(self) -> str:
        """Return `user:password`; empty when there is none, or none that can be read."""
        for name, value in self.fields:
            kind, _, encoded = value.partition(" ")
            if name.lower() == "proxy-authorization" and kind.lower() == "basic":
                with suppress(binascii.Error, UnicodeDecodeError):
                    return base64.b64decode(encoded, validate=True).decode()
        return ""

    @property
    def address(self) -> Address:
        """Return the host and port that are meant."""
        try:
            parts = urlsplit(f"//{self.target}" if self.method == "CONNECT" else self.target)
            port = parts.port or 80
        except ValueError as error:
            raise BadRequest("the target is no address") from error
        if not parts.hostname or (self.method != "CONNECT" and parts.scheme != "http"):
            raise BadRequest("a proxy is asked for http://host/path, or to CONNECT host:port")
        return parts.hostname, port

    def onward(self) -> bytes:
        """Return the head as the target gets it; one request a connection, so that each is counted."""
        parts = urlsplit(self.target)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        kept = [f"{name}: {value}" for name, value in self.fields if name.lower() not in _HOP_BY_HOP]
        return "\r\n".join((f"{self.method} {path} {self.version}", *kept, "Connection: close", "", "")).encode(
            "latin-1"
        )


class ForwardProxy:
    """Forwards requests with a valid credential, counts them, and fails as configured.

    `names` lead from a host, as `host:port`, to where it is on this machine; any other target must be loopback.
    `accepted` are the credentials it knows, by their beginning, since sessions are named by what follows; without any
    it takes all.
    """

    def __init__(self, *, names: Mapping[str, Address] | None = None, accepted: Iterable[str] = ()) -> None:
        self.usage: dict[str, Usage] = {}
        self.faults: list[ProxyFault] = []
        self.port = 0
        self._names = dict(names or {})
        self._accepted = tuple(accepted)
        self._struck: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=_HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def change(self, faults: Iterable[ProxyFault]) -> None:
        """Set the faults; those that were set before are gone."""
        self.faults = list(faults)
        self._struck.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except BadRequest as error:
            writer.write(failure(400, str(error)).encode(keeps_alive=False))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one side closed, or the proxy is closing: there is nothing to send
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request that a connection is good for."""
        asked = await _read_head(reader)
        if asked is None:
            return
        usage = self._usage_of(asked.credential)
        fault = self._fault_for(asked.credential)
        if fault is ProxyFaultKind.HANG:
            await asyncio.sleep(_SECONDS_TO_HANG)
        elif fault is ProxyFaultKind.RESET:
            _reset(writer)
        elif fault is ProxyFaultKind.REFUSED or not self._is_known(asked.credential):
            usage.refused += 1
            writer.write(_ASK_FOR_CREDENTIALS)
            await writer.drain()
        else:
            await self._pass_on(asked, usage, reader, writer)

    async def _pass_on(
        self, asked: _Asked, usage: Usage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        host, port = asked.address
        usage.targets[f"{host}:{port}"] += 1
        place = self._names.get(f"{host}:{port}") or _loopback(host, port)
        if place is None:
            writer.write(failure(403, "this proxy leads to this machine only").encode(keeps_alive=False))
            return
        async with asyncio.timeout(_SECONDS_TO_CONNECT):
            far_reader, far_writer = await asyncio.open_connection(*place)
        try:
            if asked.method == "CONNECT":
                usage.tunnels += 1
                writer.write(_ESTABLISHED)
            else:
                usage.requests += 1
                head = asked.onward()
                usage.bytes_up += len(head)
                far_writer.write(head)
            await _join(usage, (reader, writer), (far_reader, far_writer))
        finally:
            far_writer.close()

    def _usage_of(self, credential: str) -> Usage:
        if credential not in self.usage and len(self.usage) >= _MOST_CREDENTIALS:
            raise BadRequest("there are too many credentials to count")
        return self.usage.setdefault(credential, Usage())

    def _is_known(self, credential: str) -> bool:
        return bool(credential) and (not self._accepted or credential.startswith(self._accepted))

    def _fault_for(self, credential: str) -> ProxyFaultKind | None:
        for nth, fault in enumerate(self.faults):
            is_spent = fault.times is not None and self._struck[nth] >= fault.times
            if fault.credential in (None, credential) and not is_spent:
                self._struck[nth] += 1
                return fault.kind
        return None


_End = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _read_head(reader: asyncio.StreamReader) -> _Asked | None:
    try:
        async with asyncio.timeout(_SECONDS_TO_ASK):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest("the head of the request is too long") from error
    line, *lines = head.decode("latin-1").split("\r\n")[:-2]
    parts = line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest("the request line is not one of HTTP/1.1")
    fields = tuple((name.strip(), value.strip()) for name, _, value in (text.partition(":") for text in lines))
    method, target, version = parts
    return _Asked(method=method, target=target, version=version, fields=fields)


async def _join(usage: Usage, near: _End, far: _End) -> None:
    """Pass bytes both ways until the target is done."""
    up = asyncio.create_task(_flow(near[0], far[1], usage, "bytes_up"))
    try:
        await _flow(far[0], near[1], usage, "bytes_down")
    finally:
        up.cancel()
        await asyncio.gather(up, return_exceptions=True)


async def _flow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, usage: Usage, counter: str) -> None:
    while chunk := await reader.read(_READ_BYTES):
        setattr(usage, counter, getattr(usage, counter) + len(chunk))
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _loopback(host: str, port: int) -> Address | None:
    if host == "localhost":
        return "127.0.0.1", port
    try:
        return (host, port) if ip_address(host).is_loopback else None
    except ValueError:
        return None


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()


class _Control:
    """The proxy's own port: `/counts` (GET, DELETE) and `/faults` (GET, PUT, DELETE)."""

    def __init__(self, proxy: ForwardProxy) -> None:
        self._proxy = proxy

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, TimeoutError):
            try:
                async with asyncio.timeout(_SECONDS_TO_ASK):
                    request = await read_request(reader)
                answer = self._answer(request) if request else failure(400, "nothing was asked")
            except BadRequest as error:
                answer = failure(400, str(error))
            writer.write(answer.encode(keeps_alive=False))
            await writer.drain()
        writer.close()

    def _answer(self, request: Request) -> Response:
        match request.method, request.path:
            case "DELETE", "/counts":
                self._proxy.usage.clear()
            case "DELETE", "/faults":
                self._proxy.change([])
            case "PUT", "/faults":
                try:
                    self._proxy.change(read_faults(request.body))
                except UsageError as error:
                    return failure(400, str(error))
            case "GET", ("/counts" | "/faults"):
                pass
            case _:
                return failure(404, f"there is no {request.method} {request.path}")
        shown: Any = self._proxy.usage if request.path == "/counts" else self._proxy.faults
        return to_json(shown)


class RunningForwardProxy(Struct, frozen=True, kw_only=True):
    """A running proxy: `url` is for clients, `control_url` for its counters."""

    url: str
    port: int
    control_url: str
    proxy: ForwardProxy


@asynccontextmanager
async def running_forward_proxy(
    *, names: Mapping[str, Address] | None = None, accepted: Iterable[str] = ()
) -> AsyncIterator[RunningForwardProxy]:
    """Be a proxy while the block runs."""
    proxy = ForwardProxy(names=names, accepted=accepted)
    await proxy.listen()
    control = await asyncio.start_server(_Control(proxy).serve, "127.0.0.1", 0)
    port = control.sockets[0].getsockname()[1]
    try:
        yield RunningForwardProxy(
            url=f"http://127.0.0.1:{proxy.port}",
            port=proxy.port,
            control_url=f"http://127.0.0.1:{port}",
            proxy=proxy,
        )
    finally:
        control.close()
        await proxy.aclose()
