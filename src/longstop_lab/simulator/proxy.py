"""A TCP proxy that does harm on purpose, between any two parts: what is wrong with a line, as data, changed while it
runs."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from random import Random
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from longstop.errors import UsageError
from longstop_lab.simulator.http import BadRequest, Request, Response, failure, read_request, to_json

_READ_BYTES = 65_536
_CONNECT_SECONDS = 10.0
_CONTROL_SECONDS = 10.0
#: Linger "on" for no time at all: closing sends a reset.
_NO_LINGER = struct.pack("ii", 1, 0)

_Seconds = Annotated[float, Meta(ge=0)]
_Bytes = Annotated[int, Meta(ge=1)]


class Direction(StrEnum):
    #: From the client to the server.
    UP = "up"
    #: And back.
    DOWN = "down"


class Toxics(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wrong with one direction of a line; as it stands, nothing."""

    #: Every piece comes late: `latency_seconds` plus up to `jitter_seconds`, and never out of order.
    latency_seconds: _Seconds = 0.0
    jitter_seconds: _Seconds = 0.0
    bytes_per_second: _Bytes | None = None
    #: Pieces are cut to this size, with a pause after each.
    slice_bytes: _Bytes | None = None
    slice_pause_seconds: _Seconds = 0.0
    #: Whatever comes is swallowed; the line stays open and silent.
    is_black_hole: bool = False
    #: Both ends are reset after this many bytes.
    reset_after_bytes: Annotated[int, Meta(ge=0)] | None = None
    #: Once a line is so old, nothing more passes and it is closed.
    timeout_seconds: _Seconds | None = None


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wrong between two parts."""

    up: Toxics = Toxics()
    down: Toxics = Toxics()
    #: New connections are refused, and open ones are reset.
    is_refusing: bool = False


def read_line(body: bytes) -> Line:
    """Read a line as it is put over HTTP."""
    try:
        return msgspec.json.decode(body, type=Line)
    except msgspec.MsgspecError as error:
        raise UsageError(f"this is no line: {error}") from error


def seconds_for(toxics: Toxics, count: int, dice: Random) -> float:
    """Return the transfer time of a chunk of this size."""
    late = toxics.latency_seconds + dice.uniform(0, toxics.jitter_seconds)
    return late + (count / toxics.bytes_per_second if toxics.bytes_per_second else 0.0)


class FaultProxy:
    """Passes bytes on to `upstream`, as well or as badly as its line says now."""

    def __init__(self, upstream: tuple[str, int], *, seed: int = 1) -> None:
        self.line = Line()
        #: Bytes handed on so far.
        self.passed = dict.fromkeys(Direction, 0)
        self._upstream = upstream
        self._dice = Random(f"proxy {seed}")
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def change(self, line: Line) -> None:
        """Apply a condition from now on, also to open connections."""
        self.line = line
        if line.is_refusing:
            await self._stop_listening()
            for writer in self._writers:
                _reset(writer)
        elif self._server is None:
            await self.listen(self.port)

    async def listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=_READ_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        await self._stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stop_listening(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                far_reader, far_writer = await asyncio.open_connection(*self._upstream)
            self._writers.add(far_writer)
            try:
                await self._join(_End(reader, writer), _End(far_reader, far_writer))
            finally:
                self._writers.discard(far_writer)
                far_writer.close()
        except (OSError, TimeoutError, asyncio.CancelledError):
            _reset(writer)  # what is behind us is not there: say so as the network would
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _join(self, near: "_End", far: "_End") -> None:
        """Pass bytes both ways until both sides are done or one breaks."""
        begun = asyncio.get_running_loop().time()
        flows = (
            self._flow(near, far, Direction.UP, lambda: self.line.up, begun),
            self._flow(far, near, Direction.DOWN, lambda: self.line.down, begun),
        )
        tasks = [asyncio.create_task(flow) for flow in flows]
        try:
            await asyncio.gather(*tasks)
        except (ConnectionError, _Broken):
            for end in (near, far):
                _reset(end.writer)
        except _TimedOut:
            pass  # closing both ends is what follows
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _flow(
        self, source: "_End", sink: "_End", way: Direction, toxics_now: Callable[[], Toxics], begun: float
    ) -> None:
        passed = 0
        while True:
            toxics = toxics_now()
            chunk = await _read(source.reader, toxics, begun)
            toxics = toxics_now()  # it may have turned bad while we waited
            if not chunk:
                break
            if toxics.is_black_hole:
                continue
            await asyncio.sleep(seconds_for(toxics, len(chunk), self._dice))
            budget = None if toxics.reset_after_bytes is None else toxics.reset_after_bytes - passed
            await _hand_on(sink.writer, chunk[: max(0, budget)] if budget is not None else chunk)
            passed += len(chunk)
            self.passed[way] += len(chunk)
            if budget is not None and len(chunk) >= budget:
                raise _Broken
            if toxics.slice_bytes:
                await asyncio.sleep(toxics.slice_pause_seconds)
        if sink.writer.can_write_eof() and not toxics_now().is_black_hole:
            sink.writer.write_eof()


class _End:
    """One end of a line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer


class _Broken(Exception):
    """The line's bytes are used up."""


class _TimedOut(Exception):
    """The line's time is over."""


async def _read(reader: asyncio.StreamReader, toxics: Toxics, begun: float) -> bytes:
    limit = toxics.slice_bytes or _READ_BYTES
    if toxics.bytes_per_second:
        limit = min(limit, max(1, toxics.bytes_per_second // 10))  # a tenth of a second, so that the flow is even
    if toxics.timeout_seconds is None:
        return await reader.read(limit)
    try:
        async with asyncio.timeout_at(begun + toxics.timeout_seconds):
            return await reader.read(limit)
    except TimeoutError as error:
        raise _TimedOut from error


async def _hand_on(writer: asyncio.StreamWriter, chunk: bytes) -> None:
    writer.write(chunk)
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()


class _Control:
    """The proxy's own port: `GET /line` shows the line, `PUT /line` changes it."""

    def __init__(self, proxy: FaultProxy) -> None:
        self._proxy = proxy

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, TimeoutError):
            try:
                async with asyncio.timeout(_CONTROL_SECONDS):
                    request = await read_request(reader)
                answer = await self._answer(request) if request else failure(400, "nothing was asked")
            except BadRequest as error:
                answer = failure(400, str(error))
            writer.write(answer.encode(keeps_alive=False))
            await writer.drain()
        writer.close()

    async def _answer(self, request: Request) -> Response:
        match request.method, request.path:
            case "GET", "/line":
                return to_json(self._shown())
            case "PUT", "/line":
                try:
                    await self._proxy.change(read_line(request.body))
                except UsageError as error:
                    return failure(400, str(error))
                return to_json(self._shown())
        return failure(404, f"there is no {request.method} {request.path}")

    def _shown(self) -> dict[str, Any]:
        return {"line": self._proxy.line, "passed": self._proxy.passed}


class RunningProxy(Struct, frozen=True, kw_only=True):
    """A proxy at work: connect to `port`; change it by `proxy.change` or over HTTP at `control_url`."""

    port: int
    control_url: str
    proxy: FaultProxy


@asynccontextmanager
async def running_proxy(upstream: tuple[str, int], *, seed: int = 1) -> AsyncIterator[RunningProxy]:
    """Forward connections to `upstream` while the block runs."""
    proxy = FaultProxy(upstream, seed=seed)
    await proxy.listen()
    control = await asyncio.start_server(_Control(proxy).serve, "127.0.0.1", 0)
    port = control.sockets[0].getsockname()[1]
    try:
        yield RunningProxy(port=proxy.port, control_url=f"http://127.0.0.1:{port}", proxy=proxy)
    finally:
        control.close()
        await proxy.aclose()
