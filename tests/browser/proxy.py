"""A small forward proxy that counts by credential and remembers every connection it made."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class CountingProxy:
    """What a test sees of the proxy."""

    def __init__(self) -> None:
        self.port = 0
        #: Requests by credential, as `username:password`.
        self.requests: Counter[str] = Counter()
        #: Our own ports of the connections to sites, by credential.
        self.ports: dict[int, str] = {}
        #: What it does wrong: `407`, `reset`, `hang`, or nothing.
        self.fault = ""
        #: Credentials that it does wrong to; all when empty.
        self.faulty: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                while not writer.is_closing():
                    head = await reader.readuntil(b"\r\n\r\n")
                    if not await self._one(head, reader, writer):
                        break
        finally:
            writer.close()

    async def _one(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        given = headers.get("proxy-authorization", "").removeprefix("Basic ")
        credential = base64.b64decode(given).decode() if given else ""
        if not credential or (self.fault == "407" and self._is_hit(credential)):
            writer.write(
                b"HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            await writer.drain()
            return False
        if self._is_hit(credential) and self.fault == "hang":
            await asyncio.sleep(60)
        if self._is_hit(credential) and self.fault == "reset":
            return False
        self.requests[credential] += 1
        method, target, _ = lines[0].split(" ", 2)
        if method == "CONNECT":
            host, _, port = target.partition(":")
            await self._tunnel(host, int(port), credential, reader, writer)
            return False
        return await self._forward(method, target, lines, credential, writer)

    def _is_hit(self, credential: str) -> bool:
        return bool(self.fault) and (not self.faulty or credential in self.faulty)

    async def _forward(
        self, method: str, target: str, lines: list[str], credential: str, writer: asyncio.StreamWriter
    ) -> bool:
        parts = urlsplit(target)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        kept = [line for line in lines[1:] if line and not line.lower().startswith(("proxy-", "connection"))]
        async with self._connected(parts.hostname or "", parts.port or 80, credential) as (theirs, ours):
            ours.write("\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", ""]).encode("latin-1"))
            head = await theirs.readuntil(b"\r\n\r\n")
            length = next(int(n.split(b":")[1]) for n in head.lower().split(b"\r\n") if n.startswith(b"content-length"))
            writer.write(head + await theirs.readexactly(length))
            await writer.drain()
        return True

    async def _tunnel(
        self, host: str, port: int, credential: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        async with self._connected(host, port, credential) as (theirs, ours):
            writer.write(b"HTTP/1.1 200 X\r\n\r\n")
            await asyncio.gather(_pump(reader, ours), _pump(theirs, writer))

    @asynccontextmanager
    async def _connected(
        self, host: str, port: int, credential: str
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        theirs, ours = await asyncio.open_connection("127.0.0.1" if host == "localhost" else host, port)
        self.ports[ours.get_extra_info("sockname")[1]] = credential
        try:
            yield theirs, ours
        finally:
            ours.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxying() -> AsyncIterator[CountingProxy]:
    proxy = CountingProxy()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(proxy.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close with the loop's next turn
