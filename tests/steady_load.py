"""Steady load on one address: a fixed rate of requests, each timed from the moment it was due."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from msgspec import Struct

#: Requests wait for a free connection, as those of a real client do.
CONNECTIONS = 16
#: The longest wait for a response.
TIMEOUT_SECONDS = 10.0


class Load(Struct, frozen=True, kw_only=True):
    """The responses."""

    #: Response times in order of the requests; a request without a response took the whole time-out.
    seconds: list[float]
    statuses: dict[int, int]
    #: The number of requests that timed out or lost their connection.
    unanswered: int
    #: The body of one of the last responses.
    last: bytes

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def steady(
    url: str, *, rate: float, seconds: float, headers: str = "", timeout_seconds: float = TIMEOUT_SECONDS
) -> Load:
    """Send requests at a steady rate; each is timed from the moment it was due, not from when it was sent."""
    address = urlsplit(url)
    request = f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\n{headers}\r\n".encode()
    loop = asyncio.get_running_loop()
    timings, statuses, last = [0.0] * round(rate * seconds), dict[int, int](), b""
    connections = _Connections(address.hostname or "", address.port or 80)

    async def send(number: int, due: float) -> None:
        nonlocal last
        try:
            async with asyncio.timeout_at(due + timeout_seconds), connections.lease() as connection:
                status, last = await _get(connection, request)
        except (TimeoutError, OSError, EOFError):
            timings[number] = max(timeout_seconds, loop.time() - due)
            return
        timings[number] = loop.time() - due
        statuses[status] = statuses.get(status, 0) + 1

    began = loop.time()
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(len(timings)):
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - loop.time()))
                group.create_task(send(number, due))
    finally:
        connections.close()
    unanswered = len(timings) - sum(statuses.values())
    return Load(seconds=timings, statuses=statuses, unanswered=unanswered, last=last)


_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connections:
    """A few connections to one server, opened on demand and again after a failure."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._free: asyncio.Queue[_Connection | None] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self._free.put_nowait(None)

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[_Connection]:
        """Lease a connection; after a failed request it is closed, so that no late response reaches the next one."""
        connection, is_usable = await self._free.get(), False
        try:
            connection = connection or await asyncio.open_connection(self._host, self._port)
            yield connection
            is_usable = True
        finally:
            if connection and not is_usable:
                connection[1].close()
            self._free.put_nowait(connection if is_usable else None)

    def close(self) -> None:
        while not self._free.empty():
            if connection := self._free.get_nowait():
                connection[1].close()


async def _get(connection: _Connection, request: bytes) -> tuple[int, bytes]:
    reader, writer = connection
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    return int(head.split(" ", 2)[1]), await reader.readexactly(length)
