"""Steady load on one address: so many requests a second, whatever the answers do, each timed from when it was due."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from msgspec import Struct

#: Requests that wait for a free connection wait like those of a real client.
CONNECTIONS = 16


class Load(Struct, frozen=True, kw_only=True):
    """How the answers came."""

    #: In the order of asking.
    seconds: list[float]
    statuses: dict[int, int]
    #: The body of one of the last answers.
    last: bytes

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def steady(url: str, *, rate: float, seconds: float, headers: str = "") -> Load:
    """Ask for an address at a steady rate; who is late is late from the moment when it should have been asked."""
    address = urlsplit(url)
    question = f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\n{headers}\r\n".encode()
    loop = asyncio.get_running_loop()
    timings, statuses, last = [0.0] * round(rate * seconds), dict[int, int](), b""
    async with _connections(address.hostname or "", address.port or 80) as free:

        async def ask(number: int, due: float) -> None:
            nonlocal last
            connection = await free.get()
            try:
                status, last = await _get(connection, question)
            finally:
                free.put_nowait(connection)
            timings[number] = loop.time() - due
            statuses[status] = statuses.get(status, 0) + 1

        began = loop.time()
        async with asyncio.TaskGroup() as group:
            for number in range(len(timings)):
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - loop.time()))
                group.create_task(ask(number, due))
    return Load(seconds=timings, statuses=statuses, last=last)


_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def _connections(host: str, port: int) -> AsyncIterator[asyncio.Queue[_Connection]]:
    free: asyncio.Queue[_Connection] = asyncio.Queue()
    made = [await asyncio.open_connection(host, port) for _ in range(CONNECTIONS)]
    for each in made:
        free.put_nowait(each)
    try:
        yield free
    finally:
        for _, writer in made:
            writer.close()


async def _get(connection: _Connection, question: bytes) -> tuple[int, bytes]:
    reader, writer = connection
    writer.write(question)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    return int(head.split(" ", 2)[1]), await reader.readexactly(length)
