"""What this machine lacks, with limits that are really reached."""

import asyncio
import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from longstop.clock import SystemClock
from longstop.errors import ResourcesExhausted, SourceUnreachable, StorageError
from longstop.fetching.base import FetchRequest
from longstop.fetching.guards import FetchPolicy
from longstop.fetching.http import HttpFetcher
from longstop.hot.sqlite import SqliteHotReader, SqliteHotWriter
from longstop.lacking import DESCRIPTORS, MEMORY, PROCESSES, ROOM, exhausted, exhausted_at_start, lack_of_room
from longstop.storage.connection import open_readable


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
    with pytest.raises(SourceUnreachable):  # the site's own fault is told as before
        await fetcher.fetch(request)

    assert (starved.value.resource, starved.value.source) == (DESCRIPTORS, "crex")
    await fetcher.aclose()
    server.close()
    await server.wait_closed()


@pytest.mark.req("NFR-009")
def test_the_store_is_not_blamed_for_a_file_that_this_machine_cannot_open(tmp_path: Path) -> None:
    path = tmp_path / "hot.db"
    SqliteHotWriter(path, on_failure=lambda error: pytest.fail(str(error))).close()
    reader = SqliteHotReader(path)

    with no_descriptors(), pytest.raises(ResourcesExhausted):
        reader.beats()
    with pytest.raises(StorageError, match="cannot be opened") as missing:
        open_readable(tmp_path / "nowhere" / "hot.db")

    assert not isinstance(missing.value, ResourcesExhausted)
    assert reader.beats() == []
    reader.close()


@pytest.mark.parametrize(
    ("error", "resource"),
    [
        (OSError(errno.EMFILE, "x"), DESCRIPTORS),
        (OSError(errno.ENFILE, "x"), DESCRIPTORS),
        (BlockingIOError(errno.EAGAIN, "fork"), PROCESSES),
        (OSError(errno.ENOMEM, "x"), MEMORY),
        (MemoryError(), MEMORY),
        (OSError(errno.ENOSPC, "x"), ROOM),
    ],
)
def test_the_systems_own_word_is_taken(error: BaseException, resource: str) -> None:
    found = exhausted(error)

    assert found is not None
    assert (found.resource, found.reason) == (resource, f"this machine has no {resource} left for us")


def test_an_error_of_somebody_else_stays_his() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "x")

    assert exhausted(refused) is None
    assert exhausted_at_start(RuntimeError("net::ERR_CONNECTION_REFUSED")) is None


def test_the_words_of_a_program_that_did_not_start_are_read() -> None:
    found = exhausted_at_start(RuntimeError("ENOSPC: no space left on device, mkdtemp 'x'"))

    assert found is not None
    assert found.resource == ROOM


def test_a_temporary_directory_without_room_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lack_of_room() is None
    full = os.statvfs_result((4096, 4096, 16, 0, 0, 9, 9, 9, 0, 255))
    monkeypatch.setattr("os.statvfs", lambda _: full)

    assert lack_of_room() == ROOM
