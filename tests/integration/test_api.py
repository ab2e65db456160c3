"""The API over real sockets: what a client sees, how fast, and how it stops."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI

from longstop.api.server import bound_socket, build_app, run_server
from longstop.api.tokens import Permission, Secret, issue_token
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.model.snapshot import canonical
from tests.readers import MemoryHot, MemoryReader, a_beat, a_health_cache, a_hot_row, a_match, a_node_of, a_record

MATCHES = 200
SECRET = Secret(b"s" * 32)


async def an_app() -> FastAPI:
    """Return an app over two hundred matches of a realistic size."""
    payload = canonical({"matchId": 1, "balls": [{"over": over, "text": "x" * 30} for over in range(100)]})
    rows = [a_hot_row(a_record(number), payload) for number in range(1, MATCHES + 1)]
    reader = MemoryReader(*(a_match(number) for number in range(1, MATCHES + 1)))
    hot, clock = MemoryHot(*rows, beats=[a_beat()]), SystemClock()
    health_cache = await a_health_cache(reader, hot, clock)
    return build_app(a_node_of(reader, hot, clock), secret=SECRET, clock=clock, health=health_cache)


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[int]:
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run_server(app, "127.0.0.1", 0, on_ready=ready.set_result))
    try:
        yield await asyncio.wait_for(ready, 10)
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=10)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with serving(await an_app()) as number:
        yield number


@pytest.fixture
async def client(port: int) -> AsyncIterator[httpx.AsyncClient]:
    now = SystemClock().now()
    token = issue_token(SECRET, subject="t", permissions=[Permission.READ], ttl=timedelta(hours=1), now=now)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as http:
        yield http


async def raw_exchange(port: int, request: bytes) -> bytes:
    """Send bytes as they are and return everything that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


@pytest.mark.req("FR-012", "FR-013")
@pytest.mark.parametrize("path", ["/health", "/cricket-data/match-info/1"])
async def test_two_hundred_answers_in_a_row_are_fast(client: httpx.AsyncClient, path: str) -> None:
    took = []

    for _ in range(200):
        begin = time.perf_counter()
        answer = await client.get(path)
        took.append(time.perf_counter() - begin)
        assert answer.content.startswith(b"{")

    assert sorted(took)[189] < 0.5


async def test_a_match_comes_with_its_age_and_without_the_servers_name(client: httpx.AsyncClient) -> None:
    first = await client.get("/cricket-data/match-info/crex_M1")
    again = await client.get("/cricket-data/match-info/1", headers={"If-None-Match": first.headers["ETag"]})

    assert first.json()["_metadata"]["sequence"] == 7
    assert float(first.headers["X-Data-Age-Seconds"]) >= 0
    assert "Server" not in first.headers
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"/cricket-data/match-info/..", b"400"),
        (b"/cricket-data/match-info/../../etc/passwd", b"404"),
        (b"/cricket-data/match-info/%2e%2e%2f%2e%2e", b"404"),
        (b"/cricket-data/match-info/%00", b"400"),
        (b"/cricket-data/match-info/%ff%fe", b"400"),
        (b"/cricket-data/match-info/" + b"a" * 300, b"400"),
        (b"/cricket-data/match-info/" + b"a" * 30_000, b"414"),
    ],
)
async def test_a_strange_target_is_answered_in_json(port: int, target: bytes, status: bytes) -> None:
    now = SystemClock().now()
    token = issue_token(SECRET, subject="t", permissions=[Permission.READ], ttl=timedelta(hours=1), now=now)
    head = b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %b\r\n\r\n"

    answer = await raw_exchange(port, head % (target, token.encode()))

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b'{"error":"' in answer


async def test_a_huge_token_is_refused_without_work(port: int) -> None:
    head = b"GET /cricket-data/matches HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %b\r\n\r\n"

    answer = await raw_exchange(port, head % (b"e" * 60_000))

    assert answer.startswith(b"HTTP/1.1 401")


async def test_a_huge_body_is_refused_before_it_is_sent(port: int) -> None:
    head = b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n"

    answer = await raw_exchange(port, head)

    assert answer.startswith(b"HTTP/1.1 413")


def test_an_answer_is_sent_at_once_and_does_not_wait_for_an_acknowledgement() -> None:
    with bound_socket("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


async def test_a_taken_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]

        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1 port {number}") as refused:
            await run_server(await an_app(), "127.0.0.1", number, on_ready=lambda _port: None)

    assert f"pid {os.getpid()}; stop that process, or choose another" in str(refused.value)
    assert "--port or LONGSTOP_API_PORT" in str(refused.value)


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-host.invalid"])
async def test_an_impossible_address_is_one_sentence(host: str) -> None:
    with pytest.raises(UsageError, match=f"cannot listen on {host} port 0: .*; choose another with LONGSTOP_API_HOST"):
        await run_server(await an_app(), host, 0, on_ready=lambda _port: None)


async def test_it_stops_in_time_although_a_client_hangs_on() -> None:
    async with serving(await an_app()) as number:
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(b"GET /live HTTP/1.1\r\nHost: x\r\n\r\nGET /live HTTP/1.1\r\nHos")
        await asyncio.wait_for(reader.readuntil(b"}"), 20)
        begin = time.monotonic()

    assert time.monotonic() - begin < 9.5
    writer.close()
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection("127.0.0.1", number)


async def test_a_running_answer_is_finished_before_it_stops() -> None:
    app, asked = await an_app(), asyncio.Event()

    @app.get("/slow")
    async def slow() -> dict[str, bool]:
        asked.set()
        await asyncio.sleep(0.3)
        return {"finished": True}

    async with serving(app) as number:
        request = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
        answer = asyncio.create_task(raw_exchange(number, request))
        await asyncio.wait_for(asked.wait(), 20)

    assert b'{"finished":true}' in await answer
