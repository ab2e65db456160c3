"""Blocks SQLite files and stops processes while a block runs."""

import asyncio
import fcntl
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import psutil

#: The bytes of a write-ahead log's index that SQLite's readers and writers lock.
_FIRST_LOCK, _LOCKS = 120, 8
#: A reader releases its lock within milliseconds, on a busy machine later.
LOCK_TIMEOUT = 20.0


@asynccontextmanager
async def locked(databases: Iterable[Path]) -> AsyncIterator[None]:
    """Lock SQLite files; readers and writers wait until SQLite gives up."""
    with ExitStack() as stack:
        for database in databases:
            index = stack.enter_context(database.with_name(f"{database.name}-shm").open("r+b"))
            async with asyncio.timeout(LOCK_TIMEOUT):
                while not _lock(index.fileno()):  # noqa: ASYNC110 -- other processes release it
                    await asyncio.sleep(0.001)
        yield


def _lock(index: int) -> bool:
    try:
        fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKS, _FIRST_LOCK)
    except BlockingIOError:
        return False
    return True


@contextmanager
def stopped(processes: Iterable[psutil.Process]) -> Iterator[None]:
    """Stop processes with SIGSTOP while the block runs."""
    halted = list(processes)
    try:
        for process in halted:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
        yield
    finally:
        for process in halted:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
