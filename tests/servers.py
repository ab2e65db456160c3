"""A small web server on raw sockets, with a path for every kind of faulty response."""

import asyncio
import gzip
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import cache, reduce
from itertools import repeat
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

OK_BODY = b'{"score": 42}'
ENOUGH_OF_ANYTHING = 200_000_000


class Received(Struct, frozen=True, kw_only=True):
    """A received request."""

    method: str
    path: str
    query: dict[str, str]
    #: Names in lower case.
    headers: dict[str, str]
    body: bytes


Behaviour = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


class FaultServer:
    """The server as a test sees it: its address, its requests, its connections."""

    def __init__(self) -> None:
        self.port = 0
        self.received: list[Received] = []
        self.connections = 0
        self.open_connections = 0

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.authority}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    request = await _read_request(reader)
                    self.received.append(request)
                    gone = asyncio.ensure_future(_until_gone(reader, writer))
                    try:
                        await _BEHAVIOURS[request.path](request, writer)
                    finally:
                        gone.cancel()
        finally:
            self.open_connections -= 1
            writer.close()


@asynccontextmanager
async def fault_server() -> AsyncIterator[FaultServer]:
    """Run the server on a free port of 127.0.0.1; open connections are aborted at the end."""
    state = FaultServer()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(state.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Abort the response once the client has closed, which a kernel does only after the next write."""
    while not reader.at_eof():  # noqa: ASYNC110 - reading, the only other sign, would eat the next request
        await asyncio.sleep(0.01)
    writer.transport.abort()


async def _read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, url, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    parts = urlsplit(url)
    return Received(
        method=method,
        path=parts.path,
        query={name: values[0] for name, values in parse_qs(parts.query).items()},
        headers=headers,
        body=await reader.readexactly(int(headers.get("content-length", 0))),
    )


async def _send(writer: asyncio.StreamWriter, head: str, chunks: Iterable[bytes] = ()) -> None:
    writer.write(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n")
    await _pour(writer, chunks)


async def _pour(writer: asyncio.StreamWriter, chunks: Iterable[bytes]) -> None:
    for chunk in chunks:
        writer.write(chunk)
        await writer.drain()
        await asyncio.sleep(0)  # the client may live in this very loop
        if writer.is_closing():
            return


async def _ok(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, f"HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: {len(OK_BODY)}", [OK_BODY])


async def _echo(request: Received, writer: asyncio.StreamWriter) -> None:
    body = f"{request.method} ".encode() + request.body
    await _send(writer, f"HTTP/1.1 200 OK\nContent-Length: {len(body)}", [body])


async def _empty(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 200 OK\nContent-Length: 0")


async def _gzip(_request: Received, writer: asyncio.StreamWriter) -> None:
    body = gzip.compress(OK_BODY * 1000)
    await _send(writer, f"HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: {len(body)}", [body])


async def _broken_gzip(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: 20", [b"this is not gzip!!!!"])


async def _cut_gzip(_request: Received, writer: asyncio.StreamWriter) -> None:
    body = gzip.compress(bytes(range(256)) * 400)[:-300]
    await _send(writer, f"HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: {len(body)}", [body])


@cache
def bomb() -> bytes:
    """Return some 200 kB of gzip that decode to 200 MB: a million zeros, packed once and repeated."""
    block, repeats = bytes(1_000_000), ENOUGH_OF_ANYTHING // 1_000_000
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = reduce(lambda so_far, _: zlib.crc32(block, so_far), range(repeats), 0)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return head + packed * repeats + packer.flush() + struct.pack("<II", checksum, ENOUGH_OF_ANYTHING)


async def _gzip_bomb(_request: Received, writer: asyncio.StreamWriter) -> None:
    body = bomb()
    await _send(writer, f"HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: {len(body)}", [body])


async def _double_bomb(_request: Received, writer: asyncio.StreamWriter) -> None:
    body = gzip.compress(bomb())
    await _send(writer, f"HTTP/1.1 200 OK\nContent-Encoding: gzip, gzip\nContent-Length: {len(body)}", [body])


async def _huge(_request: Received, writer: asyncio.StreamWriter) -> None:
    block = b"x" * 100_000
    blocks = repeat(block, ENOUGH_OF_ANYTHING // len(block))
    await _send(writer, f"HTTP/1.1 200 OK\nContent-Length: {ENOUGH_OF_ANYTHING}", blocks)


async def _endless(_request: Received, writer: asyncio.StreamWriter) -> None:
    chunk = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
    await _send(writer, "HTTP/1.1 200 OK\nTransfer-Encoding: chunked", repeat(chunk))


async def _endless_headers(_request: Received, writer: asyncio.StreamWriter) -> None:
    block = b"".join(b"X-%d: %d\r\n" % (number, number) for number in range(1000))
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await _pour(writer, repeat(block, 1000))


async def _slow_drip(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 200 OK\nContent-Length: 100000")
    while not writer.is_closing():
        writer.write(b" ")
        await asyncio.sleep(0.02)


async def _stall(_request: Received, writer: asyncio.StreamWriter) -> None:
    await writer.wait_closed()


async def _short(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 200 OK\nContent-Length: 100", [OK_BODY])
    writer.close()


async def _chunked_without_end(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 200 OK\nTransfer-Encoding: chunked", [b"d\r\n" + OK_BODY + b"\r\n"])
    writer.close()


async def _partial(_request: Received, writer: asyncio.StreamWriter) -> None:
    head = f"HTTP/1.1 206 Partial Content\nContent-Range: bytes 0-12/100\nContent-Length: {len(OK_BODY)}"
    await _send(writer, head, [OK_BODY])


async def _reset(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 200 OK\nContent-Length: 100", [OK_BODY])
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _no_answer(_request: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _nonsense(_request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x16\x03\x01 what is this?\r\n\r\n")
    writer.close()


async def _strange_headers(_request: Received, writer: asyncio.StreamWriter) -> None:
    head = "HTTP/1.1 200 OK\n folded: too early\nX-\xff: \xfe\nSet-Cookie: =;=;\x01\nContent-Length: 2"
    await _send(writer, head, [b"{}"])


async def _status(request: Received, writer: asyncio.StreamWriter) -> None:
    extra = f"\nRetry-After: {request.query['after']}" if "after" in request.query else ""
    body = request.query.get("body", "").encode()
    await _send(writer, f"HTTP/1.1 {request.query['is']} Because{extra}\nContent-Length: {len(body)}", [body])


async def _redirect(request: Received, writer: asyncio.StreamWriter) -> None:
    where = f"\nLocation: {request.query['to']}" if "to" in request.query else ""
    await _send(writer, f"HTTP/1.1 {request.query.get('is', '302')} Elsewhere{where}\nContent-Length: 0")


async def _loop(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 302 Found\nLocation: /loop\nContent-Length: 0")


async def _cookie(_request: Received, writer: asyncio.StreamWriter) -> None:
    await _send(writer, "HTTP/1.1 200 OK\nSet-Cookie: visited=yes; Path=/\nContent-Length: 0")


_BEHAVIOURS: dict[str, Behaviour] = {
    "/ok": _ok,
    "/echo": _echo,
    "/empty": _empty,
    "/gzip": _gzip,
    "/broken-gzip": _broken_gzip,
    "/cut-gzip": _cut_gzip,
    "/gzip-bomb": _gzip_bomb,
    "/double-bomb": _double_bomb,
    "/huge": _huge,
    "/endless": _endless,
    "/endless-headers": _endless_headers,
    "/slow-drip": _slow_drip,
    "/stall": _stall,
    "/short": _short,
    "/chunked-without-end": _chunked_without_end,
    "/partial": _partial,
    "/reset": _reset,
    "/no-answer": _no_answer,
    "/nonsense": _nonsense,
    "/strange-headers": _strange_headers,
    "/status": _status,
    "/redirect": _redirect,
    "/loop": _loop,
    "/cookie": _cookie,
}
