import asyncio
from threading import Thread

import pytest

from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from longstop.telemetry.periodic_flush import PeriodicFlush
from tests.memory import MemorySink


class Disk:
    """Takes what is flushed, fails, or hangs."""

    def __init__(self) -> None:
        self.flushes = 0
        self.fails: Exception | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.is_flushed = asyncio.Event()

    async def flush(self) -> bool:
        self.flushes += 1
        self.is_flushed.set()
        await self.may_go_on.wait()
        if self.fails is not None:
            raise self.fails
        return True


def flusher(disk: Disk, every_seconds: float = 3600.0) -> PeriodicFlush:
    return PeriodicFlush("records", disk.flush, every_seconds=every_seconds)


async def flushed(disk: Disk) -> None:
    await disk.is_flushed.wait()
    disk.is_flushed.clear()


async def test_it_flushes_at_start_when_woken_from_any_thread_and_at_the_end() -> None:
    disk = Disk()
    task = flusher(disk)

    async with task.running(Bus()):
        await flushed(disk)
        waker = Thread(target=task.wake)
        waker.start()
        await flushed(disk)
        waker.join()
        before = disk.flushes

    assert (before, disk.flushes) == (2, 3)


async def test_waking_before_start_and_after_the_end_is_no_error() -> None:
    disk = Disk()
    task = flusher(disk)

    task.wake()
    async with task.running(Bus()):
        pass
    flushes = disk.flushes
    task.wake()
    await asyncio.sleep(0)

    assert disk.flushes == flushes > 0


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (StorageError("the disk is full"), "records.failed"),
        (OSError("no such directory"), "records.failed"),
        (KeyError("x"), "task.failed"),
        (RuntimeError("can't start new thread"), "poll.postponed"),
    ],
)
async def test_a_failure_is_reported_once_until_a_flush_succeeds(error: Exception, name: str) -> None:
    disk, sink = Disk(), MemorySink()
    task = flusher(disk)

    async with task.running(Bus([sink])):
        for disk.fails in (error, error, None, error):
            task.wake()
            await flushed(disk)
        disk.fails = None

    assert [event.name for event in sink.events] == [name, name]


async def test_a_hung_disk_does_not_delay_shutdown() -> None:
    disk = Disk()
    disk.may_go_on.clear()

    async with asyncio.timeout(30):
        async with PeriodicFlush("records", disk.flush, every_seconds=3600.0, close_within=0.01).running(Bus()):
            await flushed(disk)

    assert disk.flushes == 1
