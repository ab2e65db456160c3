"""A webhook receiver on this machine: it takes everything, and keeps what it got."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import Struct

SECRET = "a secret for the play"


class Posted(Struct, frozen=True, kw_only=True):
    """An alert as it came in."""

    body: dict[str, Any]
    #: Whether the signature is valid: the sender knows the secret.
    is_signed: bool

    @property
    def key(self) -> str:
        return str(self.body["key"])


class Receiver:
    def __init__(self) -> None:
        self.secret = SECRET
        self.posted: list[Posted] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alerts"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                pairs = (line.partition(":") for line in head.split("\r\n")[1:])
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                body = await reader.readexactly(int(headers["content-length"]))
                is_signed = _is_signed(headers.get("x-longstop-signature", ""), body)
                self.posted.append(Posted(body=json.loads(body), is_signed=is_signed))
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
                await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Take alerts on a free port."""
    receiver = Receiver()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(receiver.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_signed(header: str, body: bytes) -> bool:
    """Check a signature as the documentation describes."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    digest = hmac.new(SECRET.encode(), f"{parts.get('t')}.".encode() + body, "sha256").hexdigest()
    return hmac.compare_digest(digest, parts.get("v1", ""))
