"""Exhausted resources, with limits that are really reached."""

import asyncio
import errno
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from longstop.clock import SystemClock
from longstop.errors import ResourcesExhausted, SourceUnreachable, StorageError
from longstop.exhaustion import (
    MachineResource as Out,
)
from longstop.exhaustion import (
    exhausted,
    exhausted_at_launch,
    mapping_exhaustion,
    temporary_space_exhausted,
)
from longstop.fetching.addresses import resolve_by_system
from longstop.fetching.base import FetchRequest
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http import HttpFetcher
from longstop.storage.sqlite.connection import open_readable
from longstop.storage.sqlite.files_and_errors import as_storage_error
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Take all that this process may open; the limit is lowered first, so that it does not take long."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[0]), before[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.req("NFR-009")
async def test_a_site_is_not_blamed_for_a_connection_that_this_machine_cannot_open() -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    policy = FetchPolicy(hosts=(host,), allow_private_addresses=True, deadline_seconds=5)
    fetcher, request = HttpFetcher(policy, SystemClock()), FetchRequest(source="crex", url=f"http://{host}/")

    with no_descriptors(), pytest.raises(ResourcesExhausted) as starved:
        await fetcher.fetch(request)
    with pytest.raises(SourceUnreachable):  # an error of the site is reported as before
        await fetcher.fetch(request)

    assert starved.value.resource is Out.DESCRIPTORS
    await fetcher.aclose()
    server.close()
    await server.wait_closed()


class SlowSite:
    """Answers at once, but for `/slow`: who asks for that waits until the end."""

    def __init__(self) -> None:
        self.reached, self._is_over = asyncio.Event(), asyncio.Event()
        self.host = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield
        self._is_over.set()
        server.close()
        await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            if b"/slow" in await reader.readuntil(b"\r\n\r\n"):
                self.reached.set()
                await self._is_over.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            await writer.drain()
        writer.close()


@pytest.fixture
async def site() -> AsyncIterator[SlowSite]:
    served = SlowSite()
    async with served.serving():
        yield served


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.mark.req("NFR-009")
async def test_a_request_postponed_with_its_session_names_the_exhausted_resource(
    site: SlowSite, closed_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = FetchPolicy(hosts=(site.host, closed_port), allow_private_addresses=True, deadline_seconds=5)
    async with aclosing(HttpFetcher(policy, SystemClock())) as fetcher:
        slow = asyncio.ensure_future(fetcher.fetch(FetchRequest(source="crex", url=f"http://{site.host}/slow")))
        await site.reached.wait()
        with monkeypatch.context() as patch:
            patch.setattr("longstop.fetching.http.exhausted", lambda _: ResourcesExhausted(Out.MEMORY))
            with pytest.raises(ResourcesExhausted):
                await fetcher.fetch(FetchRequest(source="crex", url=f"http://{closed_port}/"))

        page = await fetcher.fetch(FetchRequest(source="crex", url=f"http://{site.host}/"))
        with pytest.raises(ResourcesExhausted) as put_off:
            await slow

    assert page.status == 200
    assert put_off.value.resource == Out.MEMORY


@pytest.mark.req("NFR-009")
async def test_a_session_that_cannot_be_made_is_made_later(site: SlowSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.EMFILE, "x")

    policy = FetchPolicy(hosts=(site.host,), allow_private_addresses=True, deadline_seconds=5)
    request = FetchRequest(source="crex", url=f"http://{site.host}/")
    async with aclosing(HttpFetcher(policy, SystemClock())) as fetcher:
        with no_descriptors(), pytest.raises(ResourcesExhausted):
            await fetcher.fetch(request)
        with monkeypatch.context() as patch:
            patch.setattr("longstop.fetching.http.AsyncSession", no_file)
            with pytest.raises(ResourcesExhausted):
                await fetcher.fetch(request)

        page = await fetcher.fetch(request)

    assert page.status == 200


@pytest.mark.req("NFR-009")
async def test_the_store_is_not_blamed_for_a_file_that_this_machine_cannot_open(tmp_path: Path) -> None:
    path = tmp_path / "hot.db"
    await SqliteHotWriter(path, on_failure=lambda error: pytest.fail(str(error))).aclose()
    reader = SqliteHotReader(path)

    with no_descriptors(), pytest.raises(ResourcesExhausted):
        await reader.beats()
    with pytest.raises(StorageError, match="cannot be opened") as missing:
        open_readable(tmp_path / "nowhere" / "hot.db")

    assert not isinstance(missing.value, ResourcesExhausted)
    assert await reader.beats() == []
    await reader.aclose()


@pytest.mark.parametrize(
    ("error", "resource"),
    [
        (OSError(errno.EMFILE, "x"), Out.DESCRIPTORS),
        (OSError(errno.ENFILE, "x"), Out.DESCRIPTORS),
        (BlockingIOError(errno.EAGAIN, "fork"), Out.PROCESSES),
        (OSError(errno.ENOMEM, "x"), Out.MEMORY),
        (MemoryError(), Out.MEMORY),
        (OSError(errno.ENOSPC, "x"), Out.TEMPORARY_SPACE),
        (RuntimeError("can't start new thread"), Out.PROCESSES),
    ],
)
def test_system_errors_are_mapped(error: BaseException, resource: str) -> None:
    found = exhausted(error)

    assert found is not None
    assert (found.resource, found.reason) == (resource, f"out of {resource}")


def test_other_errors_are_not_mapped() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "x")

    assert exhausted(refused) is None
    assert exhausted_at_launch(RuntimeError("net::ERR_CONNECTION_REFUSED")) is None


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("ENOSPC: no space left on device, mkdtemp 'x'", Out.TEMPORARY_SPACE),
        (
            "Cannot launch Node.js executable at x: [Errno 11] Resource temporarily unavailable",
            Out.PROCESSES,
        ),
        ("Cannot launch Node.js executable at x: [Errno 24] a text of another language", Out.DESCRIPTORS),
        (
            "x: error while loading shared libraries: y: cannot open shared object file: Error 24",
            Out.DESCRIPTORS,
        ),
        (
            "x: error while loading shared libraries: y: failed to map segment: Cannot allocate memory",
            Out.MEMORY,
        ),
        ("pthread_create: Resource temporarily unavailable (11)", Out.PROCESSES),
    ],
)
def test_the_output_of_a_program_that_did_not_start_is_read_and_kept(text: str, resource: str) -> None:
    found = exhausted_at_launch(RuntimeError(f"{text}\n<launching> more"))

    assert found is not None
    assert (found.resource, found.reason) == (resource, f"out of {resource}: {text}")


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 16, 0, 0, 9, 9, 9, 0, 255))
    monkeypatch.setattr("os.statvfs", lambda _: full)


@pytest.mark.usefixtures("full_disk")
def test_a_program_that_reports_no_reason_is_checked_for_temporary_space() -> None:
    found = exhausted_at_launch(RuntimeError("the browser has been closed"))

    assert found is not None
    assert (found.resource, found.reason.endswith(": the browser has been closed")) == (
        Out.TEMPORARY_SPACE,
        True,
    )


def test_only_exhaustion_is_mapped() -> None:
    with pytest.raises(ResourcesExhausted) as raised, mapping_exhaustion():
        raise RuntimeError("can't start new thread")
    with pytest.raises(RuntimeError, match="a bug"), mapping_exhaustion():
        raise RuntimeError("a bug")

    assert raised.value.resource == Out.PROCESSES


def test_a_temporary_directory_with_free_space_is_not_exhausted() -> None:
    assert temporary_space_exhausted() is None


@pytest.mark.usefixtures("full_disk")
def test_a_full_temporary_directory_is_exhausted() -> None:
    assert temporary_space_exhausted() == Out.TEMPORARY_SPACE


async def test_a_name_lookup_without_a_thread_is_exhaustion_not_a_fault_of_the_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", no_thread)

    with pytest.raises(ResourcesExhausted) as raised:
        await resolve_by_system("localhost", 80)

    assert raised.value.resource == Out.PROCESSES


async def no_thread(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("can't start new thread")


def test_a_store_that_gets_no_memory_is_not_to_blame() -> None:
    error = as_storage_error(apsw.NoMemError("out of memory"), Path("matches.db"))

    assert isinstance(error, ResourcesExhausted)
    assert error.resource == Out.MEMORY
