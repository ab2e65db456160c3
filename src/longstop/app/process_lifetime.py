"""What all processes share: start and stop, heartbeats, signals, exit."""

import asyncio
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from longstop import __version__
from longstop.errors import RestartNeeded
from longstop.supervision.exit_codes import Exit
from longstop.supervision.lifeline_and_heartbeat_pipes import sending_heartbeats, watch_parent
from longstop.supervision.supervisor import is_cancelled
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ProcessStarted, ProcessStopped

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: The number of this parameter in `malloc.h`.
M_MMAP_THRESHOLD = -3
LARGE_BLOCK_BYTES = 1024 * 1024


@contextmanager
def process_lifetime(bus: Bus, process: str) -> Iterator[None]:
    """Report start and stop of a process, send heartbeats meanwhile, and exit when the supervisor dies."""
    raise_descriptor_limit()
    watch_parent(os.environ)
    bus.emit(ProcessStarted(process=process, pid=os.getpid(), version=__version__, reported_by=process))
    try:
        with sending_heartbeats(os.environ):
            yield
    finally:
        bus.emit(ProcessStopped(process=process, pid=os.getpid(), reported_by=process))


def raise_descriptor_limit() -> None:
    """Raise the soft limit of descriptors to the hard one; the usual soft limit is for programs with few files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def return_freed_memory() -> None:
    """Have large blocks returned to the system when they are freed.

    The allocator of glibc learns to keep them after the first one is freed. A few large answers at once then leave a
    gigabyte of fragments behind.
    """
    with suppress(AttributeError):  # another C library: it does not do this
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def exit_now(code: Exit) -> NoReturn:
    """Exit at once with this code.

    A normal exit waits for threads, one of which may hang on a disk. A signal that arrives meanwhile would replace the
    exit code.
    """
    with suppress(OSError):  # the reader may be gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


async def run_until_stopped(*work: Coroutine[None, None, None]) -> None:
    """Run until SIGTERM or SIGINT; a second signal exits at once. The first failure cancels the rest and is raised."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def request_stop() -> None:
        if stop.is_set():
            exit_now(Exit.FORCED)  # all that matters is already on disk
        stop.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, request_stop)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_endless(each)) for each in work]
            await stop.wait()
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _endless(work: Coroutine[None, None, None]) -> None:
    """Run a loop that must not return: without this check, one that returns would go unnoticed."""
    try:
        await work
    except asyncio.CancelledError:
        if is_cancelled():
            raise
    raise RestartNeeded(f"{getattr(work, '__qualname__', work)} returned unexpectedly")
