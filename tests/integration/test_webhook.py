"""The webhook over real sockets: a receiver that answers, stumbles, hangs, redirects or is not there."""

import asyncio
import hmac
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from threading import Timer

import pytest
from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import SystemClock
from longstop.telemetry import webhook
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchStale
from longstop.telemetry.events.processes import AlertUndelivered
from longstop.telemetry.webhook import WebhookSink

SECRET = "a toy secret"
GOOD = b"HTTP/1.1 204 No Content\r\n\r\n"
STUMBLED = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
ELSEWHERE = b"HTTP/1.1 307 Elsewhere\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"


class Received(Struct, frozen=True):
    line: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A server that gives each answer of its script once, and the last one for ever; `None` means silence."""

    def __init__(self, *script: bytes | None) -> None:
        self._script = list(script)
        self.port = 0
        self.received: list[Received] = []
        self.has_received = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/secret-path?key=secret-key"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while (answer := await self._answer(reader)) is not None:
                    writer.write(answer)
                await reader.read()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes | None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.received.append(Received(line, headers, body))
        self.has_received.set()
        return self._script.pop(0) if len(self._script) > 1 else self._script[0]


class Recorder:
    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)

    @property
    def lost(self) -> list[AlertUndelivered]:
        return [event for event in self.events if isinstance(event, AlertUndelivered)]


@asynccontextmanager
async def receiving(*script: bytes | None) -> AsyncIterator[Receiver]:
    receiver = Receiver(*script)
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


@asynccontextmanager
async def delivering(url: str, secret: str = "") -> AsyncIterator[tuple[Bus, Recorder]]:
    sink, recorder = WebhookSink(url, secret, node="node-1", clock=SystemClock()), Recorder()
    bus = Bus([sink, recorder])
    async with sink.delivering(bus):
        yield bus, recorder


@pytest.fixture
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the number of attempts and shorten the pauses."""
    quick = replace(webhook.RETRIES, base_seconds=0.01, max_delay_seconds=0.02)
    monkeypatch.setattr(webhook, "RETRIES", quick)


def stale(ref: str = "crex_1") -> MatchStale:
    return MatchStale(match_id=1, ref=ref, age_seconds=301.0, last_update=None)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- the other side lives behind a socket
            await asyncio.sleep(0.005)


@pytest.mark.req("FR-016")
async def test_an_alert_arrives_and_its_signature_can_be_verified() -> None:
    async with receiving(GOOD) as receiver, delivering(receiver.url, SECRET) as (bus, _):
        bus.emit(stale())
        await eventually(lambda: len(receiver.received) == 1)

    [got] = receiver.received
    assert got.line == "POST /services/secret-path?key=secret-key HTTP/1.1"
    assert got.headers["content-type"] == "application/json"
    assert json.loads(got.body)["title"] == "Data of crex_1 is 301 s old"
    # The receiver's side, as docs/alerts.md gives it.
    parts = dict(part.split("=", 1) for part in got.headers["x-longstop-signature"].split(","))
    expected = hmac.new(SECRET.encode(), parts["t"].encode() + b"." + got.body, "sha256").hexdigest()
    assert hmac.compare_digest(parts["v1"], expected)


@pytest.mark.usefixtures("_hurry")
async def test_a_receiver_that_stumbles_twice_gets_it_by_the_third_time_under_one_id() -> None:
    async with receiving(STUMBLED, STUMBLED, GOOD) as receiver, delivering(receiver.url) as (bus, recorder):
        bus.emit(stale())
        await eventually(lambda: len(receiver.received) == 3)
        bus.emit(stale("crex_2"))
        await eventually(lambda: len(receiver.received) == 4)

    ids = [got.headers["x-longstop-alert-id"] for got in receiver.received]
    assert len(set(ids[:3])) == 1
    assert ids[3] not in ids[:3]
    assert {got.body for got in receiver.received[:3]} == {receiver.received[0].body}
    assert recorder.lost == []


@pytest.mark.usefixtures("_hurry")
async def test_a_hung_receiver_delays_no_emitter_and_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "DEADLINE_SECONDS", 0.3)
    loop = asyncio.get_running_loop()

    async with receiving(None) as receiver, delivering(receiver.url) as (bus, recorder):
        bus.emit(stale())
        await eventually(lambda: len(receiver.received) >= 1)
        began = loop.time()
        for number in range(2_000):
            bus.emit(stale(f"crex_{number}"))
        took = loop.time() - began
        await eventually(lambda: bool(recorder.lost))

    assert took < 5.0
    first = recorder.lost[0]
    assert (first.alert, first.attempts) == ("match.stale crex_1", 6)
    assert first.reason.startswith("127.0.0.1 ")


@pytest.mark.usefixtures("_hurry")
async def test_redirects_are_not_followed() -> None:
    async with receiving(ELSEWHERE) as receiver, delivering(receiver.url) as (bus, recorder):
        bus.emit(stale())
        await eventually(lambda: bool(recorder.lost))

    assert len(receiver.received) == 1
    assert recorder.lost[0].reason == "127.0.0.1 responded 307; redirects are not followed"


@pytest.mark.usefixtures("_hurry")
async def test_no_word_about_a_receiver_that_is_not_there_names_more_than_its_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async with delivering(f"http://user:secret@127.0.0.1:{port}/secret?secret") as (bus, recorder):
        bus.emit(stale())
        await eventually(lambda: bool(recorder.lost))

    [lost] = recorder.lost
    assert (lost.attempts, lost.reason) == (6, "127.0.0.1 is unreachable (curl 7)")


async def test_an_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async with receiving(GOOD) as receiver, delivering(receiver.url) as (bus, _):
        bus.emit(stale())
        await eventually(lambda: len(receiver.received) == 1)

    assert receiver.received[0].line.startswith("POST /services/")


async def test_events_of_other_threads_are_sent() -> None:
    async with receiving(GOOD) as receiver, delivering(receiver.url) as (bus, _):
        # Nothing else wakes the loop: no polling here, and the thread ends long before the time-out.
        Timer(0.1, bus.emit, [stale()]).start()
        async with asyncio.timeout(20):
            await receiver.has_received.wait()

    assert len(receiver.received) == 1
