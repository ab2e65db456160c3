"""A real `longstop api` process, hostile sockets from other addresses, and a prober that asks for `/live`."""

import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from msgspec import Struct

_ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0
LIVE = b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n"
MEGABYTE = 1 << 20


class ApiProcess(Struct, frozen=True, kw_only=True):
    process: psutil.Process
    port: int
    log: Path

    def connect(self, address: str = "127.0.0.2") -> socket.socket:
        """Connect from an address of this machine: limits per address tell clients apart by it."""
        client = socket.socket()
        client.settimeout(5)
        client.bind((address, 0))
        client.connect(("127.0.0.1", self.port))
        return client

    def exchange(self, request: bytes, address: str = "127.0.0.2", *, within: float = 5.0) -> bytes:
        """Send bytes and return all that comes back until the server closes the connection."""
        with self.connect(address) as client:
            client.settimeout(within)
            with suppress(ConnectionError):
                client.sendall(request)
            return read_all(client)

    def is_connected(self, client: socket.socket) -> bool:
        return any(each.raddr == client.getsockname() for each in self.process.net_connections("tcp"))

    def megabytes(self) -> float:
        return self.process.memory_info().rss / MEGABYTE

    def descriptors(self) -> int:
        return self.process.num_fds()


def read_all(client: socket.socket) -> bytes:
    """Return what comes until the server closes the connection; raise `TimeoutError` if it does not."""
    received = b""
    with suppress(ConnectionError):
        while chunk := client.recv(65536):
            received += chunk
    return received


@contextmanager
def running_api(
    data: Path, settings: Mapping[str, str] = {}, *, descriptors: int | None = None
) -> Iterator[ApiProcess]:
    """Run the API over a data directory, with a hard limit on descriptors if one is given."""
    log = data / "api.log"

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    with log.open("wb") as output:
        command = [sys.executable, "-m", "longstop", "api", "--data", str(data), "--port", "0"]
        child = subprocess.Popen(
            command, cwd=_ROOT, env={**os.environ, **settings}, stdout=output, stderr=output, preexec_fn=limit
        )
        try:
            yield ApiProcess(process=psutil.Process(child.pid), port=_port(child, log), log=log)
        finally:
            child.terminate()
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _port(child: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and child.poll() is None:
        if found := re.search(rb"API on \S+:(\d+)", log.read_bytes()):
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(f"the API did not start: {log.read_text()}")


class Probes(Struct, kw_only=True):
    """How `/live` answered a client that opens a new connection each time."""

    good: int = 0
    failed: list[str] = []
    slowest: float = 0.0


@contextmanager
def probing(api: ApiProcess, *, every: float = 0.1, path: str = "/live") -> Iterator[Probes]:
    """Ask for `/live` from 127.0.0.1 until the block ends."""
    probes, ending = Probes(failed=[]), threading.Event()
    request = b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode()

    def probe() -> None:
        began = time.monotonic()
        try:
            answer = api.exchange(request, "127.0.0.1")
        except OSError as error:
            answer = repr(error).encode()
        probes.slowest = max(probes.slowest, time.monotonic() - began)
        if answer.startswith(b"HTTP/1.1 200 "):
            probes.good += 1
        else:
            probes.failed.append(answer[:200].decode())

    def probe_until_the_end() -> None:
        while not ending.wait(every):
            probe()

    with running_thread(probe_until_the_end, ending):
        yield probes


@contextmanager
def running_thread(work: Callable[[], None], ending: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(20)


@contextmanager
def attacking(attack: Callable[[Callable[[], bool]], None], *, times: int = 1) -> Iterator[None]:
    """Run an attack in threads until the block ends; it gets a function that says whether to go on."""
    ending = threading.Event()
    with ExitStack() as stack:
        for _ in range(times):
            stack.enter_context(running_thread(lambda: attack(lambda: not ending.is_set()), ending))
        yield
        ending.set()


def peak_megabytes(api: ApiProcess, seconds: float) -> float:
    """Return the greatest memory of the process in the next seconds."""
    peak, until = 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        peak = max(peak, api.megabytes())
        time.sleep(0.05)
    return peak


def sending(client: socket.socket, data: bytes, goes_on: Callable[[], bool]) -> None:
    """Send the bytes again and again, and never read; stop when the server closes the connection."""
    client.setblocking(False)
    with suppress(ConnectionError):
        while goes_on():
            try:
                client.send(data)
            except BlockingIOError:
                time.sleep(0.005)


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            pytest.fail(f"not within {seconds:g} s")
        time.sleep(0.05)
