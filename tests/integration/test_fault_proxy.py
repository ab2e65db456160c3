"""The fault proxy over real sockets: every toxic is measured, not believed."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from curl_cffi.requests import AsyncSession

from longstop.errors import UsageError
from longstop_lab.simulator.proxy import Line, RunningProxy, Toxics, read_line, running_proxy

HELLO = b"hello"
#: Clocks and timers of a machine need not agree to the millisecond.
TIMER_GRAIN = 0.01


class Far:
    """The part behind the proxy: it answers what it is sent, byte for byte."""

    def __init__(self) -> None:
        self.received = bytearray()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65_536):
                self.received += chunk
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass  # resets are what these tests are about
        finally:
            writer.close()


class Near:
    """The part in front of the proxy, on a plain socket: what arrived before a reset can still be read."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._connection, data)

    def finish(self) -> None:
        self._connection.shutdown(socket.SHUT_WR)

    async def piece(self) -> bytes:
        async with asyncio.timeout(30):
            return await self._loop.sock_recv(self._connection, 65_536)

    async def receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            received += await self.piece()
        return received

    async def timed(self, data: bytes) -> float:
        """Send, wait until all of it has come back, and return how long that took."""
        begun = self._loop.time()
        await self.send(data)
        assert await self.receive(len(data)) == data
        return self._loop.time() - begun

    async def is_silent(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.piece()
        except TimeoutError:
            return True
        return False


@pytest.fixture
def far() -> Far:
    return Far()


@pytest.fixture
async def proxy(far: Far) -> AsyncIterator[RunningProxy]:
    server = await asyncio.start_server(far.serve, "127.0.0.1", 0)
    async with running_proxy(server.sockets[0].getsockname()) as running:
        yield running
    server.close()


@asynccontextmanager
async def connected(proxy: RunningProxy) -> AsyncIterator[Near]:
    with socket.socket() as connection:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", proxy.port))
        yield Near(connection)


async def test_a_line_without_toxics_passes_every_byte_both_ways_and_the_end(proxy: RunningProxy, far: Far) -> None:
    data = bytes(range(256)) * 4000
    async with connected(proxy) as near:
        sending = asyncio.create_task(near.send(data))
        echoed = await near.receive(len(data))
        await sending
        near.finish()
        end = await near.piece()

    assert (echoed, bytes(far.received), end) == (data, data, b"")
    assert set(proxy.proxy.passed.values()) == {len(data)}


async def test_latency_holds_every_answer_back(proxy: RunningProxy) -> None:
    async with connected(proxy) as near:
        quick = [await near.timed(HELLO) for _ in range(5)]
        await proxy.proxy.change(Line(down=Toxics(latency_seconds=0.2)))
        slow = [await near.timed(HELLO) for _ in range(3)]

    assert min(quick) < 0.15
    assert min(slow) >= 0.2 - TIMER_GRAIN


async def test_latency_in_both_directions_adds_up(proxy: RunningProxy) -> None:
    await proxy.proxy.change(Line(up=Toxics(latency_seconds=0.1), down=Toxics(latency_seconds=0.1)))

    async with connected(proxy) as near:
        assert await near.timed(HELLO) >= 0.2 - TIMER_GRAIN


async def test_jitter_spreads_the_answers(proxy: RunningProxy) -> None:
    await proxy.proxy.change(Line(down=Toxics(latency_seconds=0.02, jitter_seconds=0.2)))

    async with connected(proxy) as near:
        times = [await near.timed(HELLO) for _ in range(12)]

    assert min(times) >= 0.02 - TIMER_GRAIN
    assert max(times) - min(times) > 0.05


async def test_bandwidth_is_as_configured(proxy: RunningProxy) -> None:
    await proxy.proxy.change(Line(down=Toxics(bytes_per_second=40_000)))

    async with connected(proxy) as near:
        took = await near.timed(bytes(20_000))

    assert 0.45 <= took < 5


async def test_the_slicer_hands_on_small_pieces_with_a_pause(proxy: RunningProxy) -> None:
    await proxy.proxy.change(Line(down=Toxics(slice_bytes=10, slice_pause_seconds=0.02)))

    async with connected(proxy) as near:
        await near.send(bytes(100))
        begun = asyncio.get_running_loop().time()
        pieces = [await near.piece() for _ in range(10)]
        took = asyncio.get_running_loop().time() - begun

    assert [len(piece) for piece in pieces] == [10] * 10
    assert took >= 0.15


async def test_a_black_hole_accepts_and_never_answers(proxy: RunningProxy, far: Far) -> None:
    await proxy.proxy.change(Line(up=Toxics(is_black_hole=True)))

    async with connected(proxy) as near:
        await near.send(HELLO)
        silent = await near.is_silent(0.3)
        await proxy.proxy.change(Line())
        took = await near.timed(b"again")

    assert silent
    assert took < 5
    assert far.received == b"again"


async def test_a_connection_is_reset_after_a_number_of_bytes(proxy: RunningProxy) -> None:
    await proxy.proxy.change(Line(down=Toxics(reset_after_bytes=7)))

    async with connected(proxy) as near:
        await near.send(b"0123456789")
        received = await near.receive(7)
        with pytest.raises(ConnectionResetError):
            await near.piece()

    assert received == b"0123456"


async def test_a_refusing_line_resets_what_stands_and_refuses_what_comes(proxy: RunningProxy) -> None:
    async with connected(proxy) as near:
        await near.timed(HELLO)
        await proxy.proxy.change(Line(is_refusing=True))
        with pytest.raises(ConnectionResetError):
            await near.piece()
        with pytest.raises(ConnectionRefusedError):
            async with connected(proxy):
                raise AssertionError("it was let in")
    await proxy.proxy.change(Line())

    async with connected(proxy) as near:
        assert await near.timed(HELLO) < 5


async def test_a_timeout_closes_the_line_when_its_time_is_over(proxy: RunningProxy) -> None:
    await proxy.proxy.change(Line(up=Toxics(timeout_seconds=2.0)))
    begun = asyncio.get_running_loop().time()

    async with connected(proxy) as near:
        await near.timed(HELLO)
        end = await near.piece()

    assert end == b""
    assert 2.0 - TIMER_GRAIN <= asyncio.get_running_loop().time() - begun < 10


async def test_an_unreachable_upstream_is_a_reset() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = unused.getsockname()

    async with running_proxy(address) as proxy, connected(proxy) as near:
        with pytest.raises(ConnectionResetError):
            await near.piece()


async def test_a_line_is_shown_and_changed_over_http(proxy: RunningProxy) -> None:
    wish = {"down": {"latency_seconds": 0.2}}

    before = await ask(proxy, "GET")
    changed = await ask(proxy, "PUT", wish)
    async with connected(proxy) as near:
        took = await near.timed(HELLO)
    after = await ask(proxy, "GET")

    assert before["line"]["down"]["latency_seconds"] == 0
    assert changed["line"]["down"]["latency_seconds"] == 0.2
    assert took >= 0.2 - TIMER_GRAIN
    assert after["passed"] == {"up": 5, "down": 5}


async def test_a_wrong_line_is_refused_with_a_sentence_and_changes_nothing(proxy: RunningProxy) -> None:
    answer = await ask(proxy, "PUT", {"down": {"latency": 1}}, status=400)

    assert answer["error"].startswith("this is no line: ")
    assert proxy.proxy.line == Line()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"up":{"slice_bytes":0}}', b'{"down":{"latency_seconds":-1}}'])
def test_what_is_no_line_is_a_sentence(body: bytes) -> None:
    with pytest.raises(UsageError, match="this is no line"):
        read_line(body)


async def ask(proxy: RunningProxy, method: Any, body: object = None, status: int = 200) -> Any:
    async with AsyncSession(trust_env=False, timeout=5) as session:
        data = None if body is None else msgspec.json.encode(body)
        answer = await session.request(method, f"{proxy.control_url}/line", data=data)
    assert answer.status_code == status
    return msgspec.json.decode(answer.content)
