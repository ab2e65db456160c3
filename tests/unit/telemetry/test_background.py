import asyncio
from threading import Thread

import pytest

from longstop.errors import StorageError
from longstop.telemetry.background import Background
from longstop.telemetry.bus import Bus
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


def background(disk: Disk, every_seconds: float = 3600.0) -> Background:
    return Background("records", disk.flush, every_seconds=every_seconds)


async def flushed(disk: Disk) -> None:
    await disk.is_flushed.wait()
    disk.is_flushed.clear()


async def test_it_flushes_at_the_start_when_it_is_woken_from_any_thread_and_at_the_end() -> None:
    disk = Disk()
    task = background(disk)

    async with task.running(Bus()):
        await flushed(disk)
        waker = Thread(target=task.wake)
        waker.start()
        await flushed(disk)
        waker.join()
        before = disk.flushes

    assert (before, disk.flushes) == (2, 3)


async def test_a_wake_before_and_after_its_time_is_no_error() -> None:
    disk = Disk()
    task = background(disk)

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
async def test_a_failure_is_told_once_until_it_is_mended(error: Exception, name: str) -> None:
    disk, sink = Disk(), MemorySink()
    task = background(disk)

    async with task.running(Bus([sink])):
        for disk.fails in (error, error, None, error):
            task.wake()
            await flushed(disk)
        disk.fails = None

    assert [event.name for event in sink.events] == [name, name]


async def test_a_disk_that_hangs_keeps_nobody_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstop.telemetry.background.CLOSE_WITHIN", 0.01)
    disk = Disk()
    disk.may_go_on.clear()

    async with asyncio.timeout(30):
        async with background(disk).running(Bus()):
            await flushed(disk)

    assert disk.flushes == 1
