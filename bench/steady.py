"""Steady load on one address: so many requests a second, whatever the answers do, each timed from when it was due."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from msgspec import Struct

#: Requests that wait for a free connection wait like those of a real client.
CONNECTIONS = 16
#: Nobody waits longer for an answer.
PATIENCE_SECONDS = 10.0


class Load(Struct, frozen=True, kw_only=True):
    """How the answers came."""

    #: In the order of asking; a question without an answer has taken all the patience there was.
    seconds: list[float]
    statuses: dict[int, int]
    #: How many questions had no answer in time, or a connection that broke.
    unanswered: int
    #: The body of one of the last answers.
    last: bytes

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def steady(
    url: str, *, rate: float, seconds: float, headers: str = "", patience_seconds: float = PATIENCE_SECONDS
) -> Load:
    """Ask for an address at a steady rate; who is late is late from the moment when it should have been asked."""
    address = urlsplit(url)
    question = f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\n{headers}\r\n".encode()
    loop = asyncio.get_running_loop()
    timings, statuses, last = [0.0] * round(rate * seconds), dict[int, int](), b""
    lines = _Lines(address.hostname or "", address.port or 80)

    async def ask(number: int, due: float) -> None:
        nonlocal last
        try:
            async with asyncio.timeout_at(due + patience_seconds), lines.line() as line:
                status, last = await _get(line, question)
        except (TimeoutError, OSError, EOFError):
            timings[number] = max(patience_seconds, loop.time() - due)
            return
        timings[number] = loop.time() - due
        statuses[status] = statuses.get(status, 0) + 1

    began = loop.time()
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(len(timings)):
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - loop.time()))
                group.create_task(ask(number, due))
    finally:
        lines.close()
    unanswered = len(timings) - sum(statuses.values())
    return Load(seconds=timings, statuses=statuses, unanswered=unanswered, last=last)


_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Lines:
    """A few connections to one server; each is made when it is needed first, and anew when it broke."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._free: asyncio.Queue[_Line | None] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self._free.put_nowait(None)

    @contextlib.asynccontextmanager
    async def line(self) -> AsyncIterator[_Line]:
        """Lend a connection; one whose question has no answer is closed, for the answer may come to the next one."""
        line, is_whole = await self._free.get(), False
        try:
            line = line or await asyncio.open_connection(self._host, self._port)
            yield line
            is_whole = True
        finally:
            if line and not is_whole:
                line[1].close()
            self._free.put_nowait(line if is_whole else None)

    def close(self) -> None:
        while not self._free.empty():
            if line := self._free.get_nowait():
                line[1].close()


async def _get(line: _Line, question: bytes) -> tuple[int, bytes]:
    reader, writer = line
    writer.write(question)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    return int(head.split(" ", 2)[1]), await reader.readexactly(length)
