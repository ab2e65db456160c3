"""The end of a process that writes databases: each becomes one complete file, so that a copy of it alone is enough."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from longstop.daemon_thread import DaemonThread
from longstop.errors import StorageError
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.connection import complete_file
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import StoreLogLeft

#: For all files: longer than their readers are waited for, much shorter than a stop may take.
WITHIN_SECONDS = 4.0
IN_USE = "another program reads the file, so that its write-ahead log stays: copy both, or use longstop backup"


@asynccontextmanager
async def completing_files(directory: DataDirectory, bus: Bus) -> AsyncIterator[None]:
    """Complete the files at the end of a block."""
    try:
        yield
    finally:
        await complete_files(directory, bus)


async def complete_files(directory: DataDirectory, bus: Bus) -> None:
    """Copy the write-ahead logs into their files; report what prevents that. Nothing is lost either way."""
    thread = DaemonThread("completion of the databases")
    file = directory.matches_db
    try:
        async with asyncio.timeout(WITHIN_SECONDS):
            for file in (directory.matches_db, directory.ops_db, directory.hot_db):
                try:
                    is_complete = await thread.run(lambda file=file: complete_file(file))  # type: ignore[misc]
                except StorageError as error:
                    bus.emit(StoreLogLeft(file=file.name, reason=str(error)))
                else:
                    if not is_complete:
                        bus.emit(StoreLogLeft(file=file.name, reason=IN_USE))
    except TimeoutError:
        bus.emit(StoreLogLeft(file=file.name, reason=f"no answer within {WITHIN_SECONDS:.0f} s"))
