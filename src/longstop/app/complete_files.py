"""The end of a process that writes databases: each becomes one complete file, so that a copy of it alone is enough."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from longstop.daemon_thread import DaemonThread
from longstop.errors import DataDirectoryInUse, StorageError
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.connection import complete_file
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import StoreLogLeft

T = TypeVar("T")

#: For all files: longer than their readers are waited for, much shorter than a stop may take.
WITHIN_SECONDS = 4.0
IN_USE = "another program reads the file, so that its write-ahead log stays: copy both, or use longstop backup"


@asynccontextmanager
async def completing_files(directory: DataDirectory, bus: Bus, *, is_locked: bool) -> AsyncIterator[None]:
    """Complete the files at the end of a block. With `is_locked` this process is the scraper."""
    try:
        yield
    finally:
        await complete_files(directory, bus, is_locked=is_locked)


async def complete_files(directory: DataDirectory, bus: Bus, *, is_locked: bool) -> None:
    """Copy the write-ahead logs into their files; report what prevents that. Nothing is lost either way.

    A scraper of an operator that is still running completes them itself.
    """
    until = asyncio.get_running_loop().time() + WITHIN_SECONDS
    files = (directory.matches_db, directory.ops_db, directory.hot_db)
    with ExitStack() as locks:
        try:
            if not is_locked:
                lock = directory.lock()
                await _in_thread(lambda: locks.enter_context(lock), until)
        except DataDirectoryInUse:
            return
        except (StorageError, TimeoutError) as error:
            _report(bus, files, error)
            return
        # At the same time, each in its own thread: a busy file does not keep the others waiting.
        await asyncio.gather(*(_complete(file, bus, until) for file in files))


async def _complete(file: Path, bus: Bus, until: float) -> None:
    try:
        if not await _in_thread(lambda: complete_file(file), until):
            bus.emit(StoreLogLeft(file=file.name, reason=IN_USE))
    except (StorageError, TimeoutError) as error:
        _report(bus, [file], error)


async def _in_thread(call: Callable[[], T], until: float) -> T:
    async with asyncio.timeout_at(until):
        return await DaemonThread("completion of the databases").run(call)


def _report(bus: Bus, files: Iterable[Path], error: StorageError | TimeoutError) -> None:
    late = f"no answer within {WITHIN_SECONDS:.0f} s"
    for file in files:
        bus.emit(StoreLogLeft(file=file.name, reason=late if isinstance(error, TimeoutError) else str(error)))
