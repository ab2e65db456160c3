"""Makes stores hang and processes stand still, and lets them go on."""

import asyncio
import fcntl
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import psutil

#: Where SQLite's readers and writers of a write-ahead log lock its index: whoever holds these bytes holds everybody.
_FIRST_LOCK, _LOCKS = 120, 8
#: Each reader lets go within milliseconds; a busy machine may take longer.
PATIENCE_SECONDS = 20.0


@asynccontextmanager
async def held(databases: Iterable[Path]) -> AsyncIterator[None]:
    """Let nobody read or write these SQLite files meanwhile; who tries, hangs until SQLite gives up."""
    with ExitStack() as stack:
        for database in databases:
            index = stack.enter_context(database.with_name(f"{database.name}-shm").open("r+b"))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not _lock(index.fileno()):  # noqa: ASYNC110 -- other processes let go
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
    """Halt processes meanwhile."""
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
