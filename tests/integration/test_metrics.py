"""Metrics over real sockets: what a collector receives, and that no client can harm the scraper."""

import asyncio
import json
import socket
import sys
import urllib.request
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from longstop.settings import Prometheus
from longstop.telemetry import metrics_server
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import MetricsServed
from longstop.telemetry.metrics import Metrics, ScraperState
from longstop.telemetry.metrics_server import MakePage, metrics_tasks, serve_metrics
from tests.memory import MemorySink
from tests.readers import ManualClock

SOURCES = """\
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 100
    adapter_class: crex
    hosts: ["127.0.0.1:1"]
    allow_private_addresses: true
    permission: a closed port
    metadata: {api_url: "http://127.0.0.1:1", content_url: "http://127.0.0.1:1", names_url: "http://127.0.0.1:1"}
"""


class ServedSink(MemorySink):
    """A sink that can be waited for until the metrics are served."""

    def __init__(self) -> None:
        super().__init__()
        self._served: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def take(self, event: Telemetry) -> None:
        super().take(event)
        if isinstance(event, MetricsServed):
            self._served.set_result(event.port)

    async def port(self) -> int:
        return await asyncio.wait_for(self._served, 10)


async def a_page() -> bytes:
    return b"up 1\n"


@asynccontextmanager
async def serving_page(page: MakePage = a_page) -> AsyncIterator[tuple[int, MemorySink]]:
    """Serve on a free port; yield it and the emitted events."""
    sink = ServedSink()
    task = asyncio.create_task(serve_metrics("127.0.0.1", 0, page, Bus([sink])))
    try:
        yield await sink.port(), sink
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()


async def exchange(port: int, request: bytes) -> bytes:
    """Send bytes as they are and return everything that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


async def gets_page(port: int) -> bool:
    """Return whether a page comes, be it a little later: the server hears of closed connections one by one."""
    for _ in range(100):
        with suppress(ConnectionError):
            if (await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")).endswith(b"up 1\n"):
                return True
        await asyncio.sleep(0.05)
    return False


async def test_the_page_is_served_whole_and_not_to_be_kept() -> None:
    async with serving_page() as (port, _):
        answer = await exchange(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
    assert b"Content-Length: 5" in head
    assert b"Cache-Control: no-store" in head
    assert body == b"up 1\n"


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", b"404"),
        (b"GET /metrics/../etc HTTP/1.1", b"404"),
        (b"POST /metrics HTTP/1.1", b"405"),
        (b"nonsense", b"400"),
        (b"", b"400"),
    ],
)
async def test_anything_else_is_refused_in_a_sentence(request_line: bytes, status: bytes) -> None:
    async with serving_page() as (port, _):
        answer = await exchange(port, request_line + b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.endswith(b".\n")


async def test_an_endless_head_is_cut_off() -> None:
    async with serving_page() as (port, _):
        try:
            answer = await exchange(port, b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 10_000)
        except ConnectionError:
            answer = b""
        after = await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")

    assert answer == b""
    assert after.endswith(b"up 1\n")


async def test_a_client_that_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "RESPOND_WITHIN", 0.1)
    async with serving_page() as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), 20)
        writer.close()


async def test_silent_clients_keep_no_scrape_out() -> None:
    async with serving_page() as (port, _):
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4 * metrics_server.MAX_CONNECTIONS)]

        pages = [await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n") for _ in range(5)]
        for _, writer in idle:
            writer.close()

    assert all(page.endswith(b"up 1\n") for page in pages)


async def test_a_bug_in_the_page_is_reported_and_the_next_page_comes() -> None:
    turns = iter([1, 2])

    async def page() -> bytes:
        if next(turns) == 1:
            raise KeyError("a bug")
        return b"up 1\n"

    async with serving_page(page) as (port, sink):
        first = await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        second = await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")

    assert first.startswith(b"HTTP/1.1 500")
    assert b"a bug" not in first
    assert len(sink.named("task.failed")) == 1
    assert second.endswith(b"up 1\n")


async def test_a_port_in_use_is_reported_once_and_opened_when_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "RETRY_SECONDS", 0.05)
    sink = ServedSink()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        task = asyncio.create_task(serve_metrics("127.0.0.1", port, a_page, Bus([sink])))
        await asyncio.sleep(0.3)
        assert not task.done()
    had = await sink.port()
    task.cancel()
    await asyncio.wait([task])

    assert had == port
    assert len(sink.named("metrics.unavailable")) == 1


async def test_a_bug_in_the_sampling_is_reported_and_stops_nothing() -> None:
    sink = ServedSink()

    def read_state() -> ScraperState:
        raise KeyError("a bug")

    work = metrics_tasks(Prometheus(port=0), Metrics(), read_state, bus=Bus([sink]), clock=ManualClock())
    tasks = [asyncio.create_task(each) for each in work]
    await sink.port()
    ended = [task for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    assert not ended
    assert len(sink.named("task.failed")) == 1


async def test_a_page_is_rendered_once_a_second_however_often_it_is_asked_for() -> None:
    sink, clock, reads = ServedSink(), ManualClock(), 0

    def read_state() -> ScraperState:
        nonlocal reads
        reads += 1
        return ScraperState(node="n", records=(), waiting=(), findings=(), rss_bytes=0)

    _, serving = work = metrics_tasks(Prometheus(port=0), Metrics(), read_state, bus=Bus([sink]), clock=clock)
    work[0].close()
    task = asyncio.create_task(serving)
    port = await sink.port()
    await asyncio.gather(*(asyncio.to_thread(fetch, port) for _ in range(5)))
    within_a_second = reads
    clock.advance(1.0)
    await asyncio.to_thread(fetch, port)
    task.cancel()
    await asyncio.wait([task])

    assert (within_a_second, reads) == (1, 2)


@asynccontextmanager
async def scraper(tmp_path: Path, name: str, **environ: str) -> AsyncIterator[Process]:
    """A scraper whose site is out of reach: it lives, and counts what fails."""
    (tmp_path / "sources.yaml").write_text(SOURCES)
    env = {
        "LONGSTOP_SOURCES": str(tmp_path / "sources.yaml"),
        "LONGSTOP_DATA": str(tmp_path / name),
        "DISCOVERY_INTERVAL_SECONDS": "0.2",
        "RETRY_BASE_DELAY_SECONDS": "0.05",
        **environ,
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "longstop", "scraper", env=env, stderr=PIPE)
    try:
        yield process
    finally:
        process.terminate()
        _, _ = await asyncio.wait_for(process.communicate(), 20)


async def next_event(process: Process, event: str) -> dict[str, object]:
    """Return the next log line of this event."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        while line := await process.stderr.readline():
            line_fields: dict[str, object] = json.loads(line)
            if line_fields["event"] == event:
                return line_fields
    raise AssertionError(f"the scraper ended without {event}")


def fetch(port: object) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.req("FR-015")
async def test_a_running_scraper_serves_metrics_and_a_second_one_runs_without_the_port(tmp_path: Path) -> None:
    async with scraper(tmp_path, "one", PROMETHEUS_PORT="0") as first:
        served = await next_event(first, "metrics.served")
        await next_event(first, "listing.failed")
        async with scraper(tmp_path, "two", PROMETHEUS_PORT=str(served["port"])) as second:
            unserved = await next_event(second, "metrics.unavailable")
            await next_event(second, "listing.failed")
            text = await asyncio.to_thread(fetch, served["port"])
            assert second.returncode is None

    values = {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}
    assert served["host"] == "127.0.0.1"
    assert unserved["severity"] == "WARN"
    assert f"it is in use by longstop, pid {first.pid}, data directory " in str(unserved["reason"])
    assert "; stop that process, or set another port with PROMETHEUS_PORT" in str(unserved["reason"])
    assert values["active_scrapers_count"] == 1
    assert values["longstop_listing_failed_total"] >= 1
    assert values["scraper_memory_bytes"] > 10_000_000


async def test_metrics_that_are_switched_off_open_no_port(tmp_path: Path) -> None:
    async with scraper(tmp_path, "one", ENABLE_PROMETHEUS_METRICS="false", LOG_LEVEL="DEBUG") as process:
        assert process.stderr is not None
        heard = [json.loads(await process.stderr.readline())["event"] for _ in range(6)]

    assert "listing.failed" in heard
    assert not [event for event in heard if event.startswith("metrics.")]
