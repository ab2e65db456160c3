"""The writer thread on real files: groups, failing jobs, failing commits, failing disks."""

import asyncio
import resource
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Event

import apsw
import pytest

from longstop.errors import StorageError
from longstop.storage.sqlite.connection import Job, Synchronous, open_writable
from longstop.storage.sqlite.load_sql_and_migrate import Database
from longstop.storage.sqlite.writer import MAX_GROUP, Writer


class File:
    """A database with one table of numbers, which counts how often it was opened and committed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = 0
        self.commits = 0
        #: The number of the first commit that fails.
        self.refuse_from = sys.maxsize

    def connect(self) -> apsw.Connection:
        connection = open_writable(self.path, Database.MATCHES, Synchronous.FULL)
        connection.execute("CREATE TABLE IF NOT EXISTS numbers (number INTEGER PRIMARY KEY, padding BLOB) STRICT")
        connection.set_commit_hook(self._on_commit)
        self.opened += 1
        return connection

    def numbers(self) -> list[int]:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return [number for (number,) in connection.execute("SELECT number FROM numbers ORDER BY number")]
        finally:
            connection.close()

    def _on_commit(self) -> bool:
        self.commits += 1
        return self.commits >= self.refuse_from


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "matches.db")


@pytest.fixture
async def writer(file: File) -> AsyncIterator[Writer]:
    writer = Writer(file.path, file.connect)
    yield writer
    await writer.aclose()


def add(number: int, padding: bytes = b"") -> Job[int]:
    def job(connection: apsw.Connection) -> int:
        connection.execute("INSERT INTO numbers VALUES (?, ?)", (number, padding))
        return number

    return job


def add_then(number: int, error: Exception) -> Job[int]:
    def job(connection: apsw.Connection) -> int:
        add(number)(connection)
        raise error

    return job


@asynccontextmanager
async def held(writer: Writer) -> AsyncIterator[None]:
    """Keep the writer busy with an empty job, so that what is submitted meanwhile waits and becomes one group."""
    entered, released = Event(), Event()

    def wait(_connection: apsw.Connection) -> None:
        entered.set()
        released.wait(10)

    task = asyncio.create_task(writer.run(wait))
    await asyncio.to_thread(entered.wait, 10)
    try:
        yield
        await asyncio.sleep(0)  # lets the submitting tasks reach the queue
    finally:
        released.set()
        await task


async def outcomes_of_group(writer: Writer, *jobs: Job[int]) -> list[int | BaseException]:
    async with held(writer):
        tasks = [asyncio.create_task(writer.run(job)) for job in jobs]
    return await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Let the kernel refuse to write past a size, as a failing disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_what_waits_together_is_committed_together(file: File, writer: Writer) -> None:
    await writer.run(add(0))
    before = file.commits

    outcomes = await outcomes_of_group(writer, *map(add, range(1, 11)))

    assert outcomes == list(range(1, 11))
    assert file.numbers() == list(range(11))
    assert file.commits == before + 2  # the job that held the writer had a commit of its own


async def test_a_group_has_a_largest_size(file: File, writer: Writer) -> None:
    await writer.run(add(0))
    before = file.commits

    await outcomes_of_group(writer, *map(add, range(1, 2 * MAX_GROUP + 2)))

    assert len(file.numbers()) == 2 * MAX_GROUP + 2
    assert file.commits == before + 4


@pytest.mark.req("JOB-7")
@pytest.mark.parametrize("error", [StorageError("no"), ZeroDivisionError("a bug")])
async def test_a_failing_job_takes_back_only_itself(file: File, writer: Writer, error: Exception) -> None:
    outcomes = await outcomes_of_group(writer, add(1), add_then(2, error), add(3))

    assert outcomes == [1, error, 3]
    assert file.numbers() == [1, 3]


@pytest.mark.req("JOB-7")
async def test_a_job_that_breaks_a_constraint_fails_alone_in_our_words(file: File, writer: Writer) -> None:
    first, second, third = await outcomes_of_group(writer, add(1), add(1), add(2))

    assert (first, third) == (1, 2)
    assert isinstance(second, StorageError)
    assert file.numbers() == [1, 2]
    assert file.opened == 1


async def test_a_commit_that_fails_fails_the_whole_group(file: File, writer: Writer) -> None:
    await writer.run(add(0))
    file.refuse_from = file.commits + 2

    outcomes = await outcomes_of_group(writer, add(1), add(2))

    assert [type(outcome) for outcome in outcomes] == [StorageError, StorageError]
    assert file.numbers() == [0]


async def test_after_a_failed_commit_the_file_is_opened_again_and_goes_on(file: File, writer: Writer) -> None:
    file.refuse_from = 0
    with pytest.raises(StorageError):
        await writer.run(add(1))
    file.refuse_from = sys.maxsize

    await writer.run(add(2))

    assert file.numbers() == [2]
    assert file.opened == 2


@pytest.mark.req("NFR-009")
async def test_a_failing_disk_loses_nothing_acknowledged_and_is_used_again_when_it_recovers(
    file: File, writer: Writer
) -> None:
    await writer.run(add(1))
    log = file.path.with_name("matches.db-wal")
    broken = r"matches\.db: the disk (failed|is full)"

    with no_file_longer_than(log.stat().st_size + 4096), pytest.raises(StorageError, match=broken):
        await writer.run(add(2, padding=bytes(1_000_000)))
    await writer.run(add(3))

    assert file.numbers() == [1, 3]
    assert file.opened == 2


async def test_a_file_that_another_process_holds_is_waited_for_then_refused_and_used_again(
    file: File, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longstop.storage.sqlite.connection.BUSY_TIMEOUT_MS", 50)
    await writer.run(add(1))
    other = apsw.Connection(str(file.path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StorageError, match="another process has locked the file"):
        await writer.run(add(2))
    other.close()
    await writer.run(add(3))

    assert file.numbers() == [1, 3]
    assert file.opened == 1


async def test_a_caller_that_leaves_does_not_take_its_job_along(file: File, writer: Writer) -> None:
    async with held(writer):
        task = asyncio.create_task(writer.run(add(1)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await writer.run(add(2))

    assert file.numbers() == [1, 2]


async def test_closing_first_does_what_is_queued(file: File) -> None:
    writer = Writer(file.path, file.connect)
    async with held(writer):
        tasks = [asyncio.create_task(writer.run(add(number))) for number in (1, 2, 3)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(writer.aclose())

    await closing

    assert await asyncio.gather(*tasks) == [1, 2, 3]
    assert file.numbers() == [1, 2, 3]
    with pytest.raises(StorageError, match="closed"):
        await writer.run(add(4))


async def test_no_one_sees_a_job_before_its_commit(file: File, writer: Writer) -> None:
    await writer.run(add(0))
    seen: list[list[int]] = []

    def add_and_look(connection: apsw.Connection) -> None:
        add(1)(connection)
        seen.append(file.numbers())

    await writer.run(add_and_look)

    assert seen == [[0]]
    assert file.numbers() == [0, 1]


async def test_a_file_that_cannot_be_opened_fails_each_caller_until_it_can(file: File) -> None:
    attempts: list[Callable[[], apsw.Connection]] = [_unopenable, _unopenable, file.connect]
    writer = Writer(file.path, lambda: attempts.pop(0)())

    for number in (1, 2):
        with pytest.raises(StorageError, match="not today"):
            await writer.run(add(number))

    assert await writer.run(add(3)) == 3
    await writer.aclose()


def _unopenable() -> apsw.Connection:
    raise StorageError("not today")
