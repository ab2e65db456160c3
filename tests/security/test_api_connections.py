"""Hostile connections to a real API process: memory, log and other clients stay unharmed."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from tests.security.api_process import (
    LIVE,
    ApiProcess,
    attacking,
    peak_megabytes,
    probing,
    read_all,
    running_api,
    sending,
    wait_until,
)

MAX_MEGABYTES = 200
#: The worst `/live` of another client: two cores are shared with the attack and other tests.
QUICK_SECONDS = 1.0
#: Short limits, so that the tests need not wait long for them.
SHORT = {
    "LONGSTOP_API_REQUEST_SECONDS": "1",
    "LONGSTOP_API_WRITE_SECONDS": "1",
    "LONGSTOP_API_IDLE_SECONDS": "1",
}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[ApiProcess]:
    """A process whose memory no other test has used."""
    with running_api(tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with running_api(tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with running_api(tmp_path_factory.mktemp("data"), SHORT) as started:
        yield started


def repeatedly(api: ApiProcess, first: bytes, then: bytes, address: str = "127.0.0.2") -> Callable[..., None]:
    """Return an attack that sends `first` once and `then` endlessly, and connects again when it is cut off."""

    def attack(goes_on: Callable[[], bool]) -> None:
        while goes_on():
            with suppress(OSError), api.connect(address) as client:
                client.sendall(first)
                sending(client, then, goes_on)
            time.sleep(0.02)

    return attack


# --- one sender that floods -------------------------------------------------------------------------------------------

HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
INDEX = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
CHUNK = b"1000\r\n" + b"a" * 4096 + b"\r\n"


@pytest.mark.req("NFR-006")
@pytest.mark.parametrize(
    ("connections", "first", "then"),
    [
        pytest.param(1, b"", HEALTH * 2000, id="pipelined requests without reading"),
        pytest.param(20, b"GET /live HTTP/1.1\r\nX: ", b"a" * 65536, id="endless headers"),
        pytest.param(20, b"GET /live HTTP/1.1\r\n", b"X: a\r\n" * 10_000, id="endlessly many headers"),
        pytest.param(20, b"GET /live HTTP/1.1\r\n", b"a" * 65536, id="endless header names"),
        pytest.param(20, b"GET /", b"a" * 65536, id="endless urls"),
        pytest.param(20, b"", b"\r\n" * 30_000, id="endless empty lines"),
        pytest.param(20, LIVE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK, id="endless chunked bodies"),
        pytest.param(
            20, LIVE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 65536, id="endless chunk extensions"
        ),
        pytest.param(
            20, LIVE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a" * 65536, id="endless trailers"
        ),
        pytest.param(20, b"", HEALTH[:-2] + b"Expect: 100-continue\r\n\r\n", id="floods of expectations"),
        pytest.param(20, b"", LIVE[:-2] + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", id="floods of upgrades"),
    ],
)
def test_a_flood_keeps_memory_flat_and_other_clients_quick(
    fresh: ApiProcess, connections: int, first: bytes, then: bytes
) -> None:
    with probing(fresh) as probes, attacking(repeatedly(fresh, first, then), times=connections):
        peak = peak_megabytes(fresh, 3)

    assert peak < MAX_MEGABYTES
    assert probes.failed == []
    assert probes.slowest < QUICK_SECONDS
    assert fresh.log.stat().st_size < 20_000


def test_a_client_that_pipelines_a_few_requests_gets_all_answers_in_order(api: ApiProcess) -> None:
    requests = LIVE * 5 + b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    answer = api.exchange(requests)

    assert answer.count(b"HTTP/1.1 200 OK") == 5
    assert answer.rindex(b"HTTP/1.1 404 Not Found") > answer.rindex(b"HTTP/1.1 200 OK")


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(b"GET /live HTTP/1.1\r\nX: " + b"a" * 200_000, b"431", id="one long header"),
        pytest.param(b"GET /live HTTP/1.1\r\n" + b"X: a\r\n" * 10_000, b"431", id="many headers"),
        pytest.param(LIVE[:-2] + b"X: a\r\n" * 10_000 + b"\r\n", b"431", id="many headers, complete"),
        pytest.param(b"GET /" + b"a" * 200_000, b"414", id="a long url"),
        pytest.param(
            LIVE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: a\r\n" * 90_000, b"200", id="many trailers"
        ),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400", id="a greeting of TLS"),
        pytest.param(b"GET /live HTTP/1.1\r\nHost : x\r\n\r\n", b"400", id="a damaged header"),
    ],
)
def test_what_is_too_large_or_damaged_is_refused_with_a_sentence(
    api: ApiProcess, request_bytes: bytes, status: bytes
) -> None:
    head, _, body = api.exchange(request_bytes).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 " + status)
    if status != b"200":
        assert b"connection: close" in head.lower()
        assert b"content-type: application/json" in head.lower()
        assert body.startswith(b'{"error":"')
        assert body.endswith(b'."}')


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
        b"Content-Length: +5\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ],
)
def test_a_body_whose_length_is_ambiguous_ends_the_connection(api: ApiProcess, framing: bytes) -> None:
    answer = api.exchange(LIVE[:-2] + framing + b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


# --- time -------------------------------------------------------------------------------------------------------------


def seconds_until_closed(client: socket.socket, drip: bytes, every: float = 0.1) -> tuple[float, bytes]:
    """Send a byte at a time until the server closes the connection; return how long that took, and its answer."""
    began, answer = time.monotonic(), b""
    client.settimeout(every)
    with suppress(ConnectionError):
        for number in range(100):
            client.send(drip[number % len(drip) :][:1])
            try:
                chunk = client.recv(65536)
            except TimeoutError:
                continue
            if not chunk:
                break
            answer += chunk
    return time.monotonic() - began, answer


@pytest.mark.parametrize(
    ("first", "drip", "status"),
    [
        pytest.param(b"GET /live HTTP/1.1\r\nX: ", b"a", b"408", id="a header"),
        pytest.param(b"GET /", b"a", b"408", id="a url"),
        pytest.param(b"GET /live HTTP/1.1\r\n", b"X: a\r\n", b"408", id="short headers"),
        pytest.param(b"", b"\r\n", b"", id="empty lines"),
        pytest.param(LIVE[:-2] + b"Content-Length: 5000\r\n\r\n", b"a", b"200", id="a body that no route needs"),
        pytest.param(LIVE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n", b"200", id="chunks"),
    ],
)
def test_what_arrives_too_slowly_is_cut_off(impatient: ApiProcess, first: bytes, drip: bytes, status: bytes) -> None:
    with impatient.connect() as client:
        client.sendall(first or b"\r\n")
        seconds, answer = seconds_until_closed(client, drip)

    assert seconds < 5
    assert answer.startswith(b"HTTP/1.1 " + status if status else b"")
    assert answer.startswith(b"HTTP/1.1 408") <= answer.endswith(b'."}')


def test_a_connection_without_a_request_is_closed(impatient: ApiProcess) -> None:
    with impatient.connect() as silent, impatient.connect() as idle:
        idle.sendall(LIVE)
        began = time.monotonic()

        assert read_all(silent) == b""
        assert read_all(idle).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began < 4


def ask_for_more_than_buffers_hold(*clients: socket.socket) -> None:
    """Send requests that are within all limits, but for their answers, which the client does not read."""
    for _ in range(3):
        for client in clients:
            client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 16)
        time.sleep(0.2)


def test_a_client_that_reads_one_byte_a_second_is_cut_off(impatient: ApiProcess) -> None:
    with impatient.connect() as client:
        ask_for_more_than_buffers_hold(client)
        received = 0

        def read_one() -> bool:
            nonlocal received
            with suppress(OSError):
                received += len(client.recv(1))
            time.sleep(0.5)
            return not impatient.is_connected(client)

        wait_until(read_one, 15)
        assert received


def test_half_closed_connections_are_released(api: ApiProcess) -> None:
    before = api.descriptors()
    with ExitStack() as stack:
        for number in range(100):
            client = stack.enter_context(api.connect())
            client.sendall(b"" if number % 2 else b"GET /live HTTP/1.1\r\n")
            client.shutdown(socket.SHUT_WR)
        wait_until(lambda: api.descriptors() <= before + 5)


# --- number -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("NFR-006", "NFR-009")
def test_more_idle_connections_than_descriptors_keep_nobody_out(tmp_path: Path) -> None:
    with running_api(tmp_path, descriptors=256) as api, ExitStack() as stack:
        for _ in range(400):
            with suppress(OSError):
                stack.enter_context(api.connect())
        with probing(api) as probes, probing(api, path="/") as others:
            time.sleep(4)

        assert (probes.failed, others.failed) == ([], [])
        assert probes.slowest < QUICK_SECONDS
        assert api.log.stat().st_size < 20_000
        assert api.descriptors() < 256


@pytest.mark.parametrize("request_bytes", [b"", b"GET /live HTTP/1.1\r\nX: ", LIVE], ids=["silent", "dripping", "idle"])
def test_connections_from_many_addresses_keep_nobody_out(tmp_path: Path, request_bytes: bytes) -> None:
    limits = {"LONGSTOP_API_CONNECTIONS": "100", "LONGSTOP_API_CONNECTIONS_PER_ADDRESS": "20"}
    with running_api(tmp_path, limits) as api, ExitStack() as stack:
        with probing(api, path="/") as probes:
            for number in range(500):
                with suppress(OSError):
                    client = stack.enter_context(api.connect(f"127.0.1.{1 + number % 250}"))
                    client.sendall(request_bytes)
            time.sleep(1)

        assert probes.failed == []
        assert probes.slowest < QUICK_SECONDS
        assert api.descriptors() < 180


def until_end_of_json(client: socket.socket) -> bytes:
    received = b""
    while not received.endswith(b"}"):
        received += client.recv(65536)
    return received


def test_one_address_cannot_take_the_connections_of_others(tmp_path: Path) -> None:
    limits = {"LONGSTOP_API_CONNECTIONS": "100", "LONGSTOP_API_CONNECTIONS_PER_ADDRESS": "20"}
    with running_api(tmp_path, limits) as api, ExitStack() as stack:
        kept = stack.enter_context(api.connect("127.0.0.3"))
        kept.sendall(LIVE)
        assert until_end_of_json(kept).startswith(b"HTTP/1.1 200")
        for _ in range(200):
            with suppress(OSError):
                stack.enter_context(api.connect("127.0.0.2"))

        kept.sendall(LIVE)

        assert until_end_of_json(kept).startswith(b"HTTP/1.1 200")
        wait_until(lambda: api.descriptors() < 60)


def test_while_no_connection_can_be_closed_a_reserve_serves_the_probes(tmp_path: Path) -> None:
    with running_api(tmp_path, {"LONGSTOP_API_CONNECTIONS": "10"}) as api, ExitStack() as stack:
        clients: list[socket.socket] = []
        for _ in range(10):
            clients.append(stack.enter_context(api.connect()))
        ask_for_more_than_buffers_hold(*clients)

        probe, other = api.exchange(LIVE, "127.0.0.3"), api.exchange(HEALTH, "127.0.0.3")

        assert probe.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in probe
        assert other.startswith(b"HTTP/1.1 503")
        assert b"connection: close" in other
        assert other.endswith(b'{"error":"Too many connections are open; try again in a few seconds."}')
        # A client that has not read for a while makes room for others.
        wait_until(lambda: b"HTTP/1.1 200" in api.exchange(INDEX, "127.0.0.3"))
        assert api.log.read_text().count("connections.refused") == 1


def test_opening_and_closing_all_the_time_delays_nobody_and_leaves_nothing(api: ApiProcess) -> None:
    def churn(goes_on: Callable[[], bool]) -> None:
        while goes_on():
            with suppress(OSError), api.connect() as client:
                client.send(b"GET /live HTTP/1.1\r\n")

    before = api.descriptors()
    with probing(api) as probes, attacking(churn, times=4):
        time.sleep(3)

    assert probes.failed == []
    assert probes.slowest < QUICK_SECONDS
    wait_until(lambda: api.descriptors() <= before + 10)
    assert api.log.stat().st_size < 20_000


@pytest.mark.req("NFR-009")
def test_descriptors_that_run_out_later_delay_clients_but_fill_no_log(tmp_path: Path) -> None:
    with running_api(tmp_path) as api, ExitStack() as stack:
        limits = api.process.rlimit(psutil.RLIMIT_NOFILE)
        api.process.rlimit(psutil.RLIMIT_NOFILE, (api.descriptors() + 20, limits[1]))
        for _ in range(200):
            with suppress(OSError):
                stack.enter_context(api.connect())
        with probing(api) as probes:
            time.sleep(3)
        api.process.rlimit(psutil.RLIMIT_NOFILE, limits)

        assert probes.failed == []
        assert probes.good > 5
        assert api.log.read_text().count("connections.refused") == 1
        assert api.log.stat().st_size < 20_000


def test_a_process_may_open_as_many_files_as_the_system_allows(api: ApiProcess) -> None:
    soft, hard = api.process.rlimit(psutil.RLIMIT_NOFILE)

    assert soft == hard
