"""What every process has: a bus with a log, a data directory's secret, an orderly life."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import psutil

from longstop import __version__
from longstop.clock import Clock
from longstop.errors import RestartNeeded
from longstop.settings import Settings
from longstop.supervision.event_loop import is_cancelled
from longstop.supervision.exits import Exit
from longstop.supervision.pipes import sending_heartbeats, watch_parent_if_any
from longstop.telemetry.bus import Bus, Sink
from longstop.telemetry.events.processes import ProcessStarted, ProcessStopped
from longstop.telemetry.log import LogSink

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def make_bus(process: str, settings: Settings, clock: Clock, *more: Sink) -> Bus:
    """Return a bus whose events go to stderr as JSON lines, and to `more`."""
    log = LogSink(process=process, level=settings.scraper.monitoring.logging.level, clock=clock)
    return Bus([log, *more])


class OwnMemory:
    """Measures this process; the last figure stands while the machine has no file left to read it from."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._rss_bytes = 0

    def rss_bytes(self) -> int:
        with suppress(OSError, psutil.Error):
            self._rss_bytes = self._process.memory_info().rss
        return self._rss_bytes


@contextmanager
def life(bus: Bus, process: str) -> Iterator[None]:
    """Say when a process begins and ends its work, give signs of life meanwhile, and end it with its supervisor."""
    watch_parent_if_any(os.environ)
    bus.emit(ProcessStarted(process=process, pid=os.getpid(), version=__version__, reported_by=process))
    try:
        with sending_heartbeats(os.environ):
            yield
    finally:
        bus.emit(ProcessStopped(process=process, pid=os.getpid(), reported_by=process))


def leave(ended: Exit) -> NoReturn:
    """End the process at once, by its exit code.

    The usual way out waits for threads, of which one may hang at a disk, and takes long enough for one more signal,
    whose number would then stand in the code's place.
    """
    with suppress(OSError):  # nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(ended)


async def run_until_stopped(*work: Coroutine[None, None, None]) -> None:
    """Run until SIGTERM or SIGINT, a second one ends it at once; work that fails ends the rest and is raised."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask() -> None:
        if stop.is_set():
            leave(Exit.FORCED)  # what counts is on the disk already
        stop.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, ask)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_endless(each)) for each in work]
            await stop.wait()
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _endless(work: Coroutine[None, None, None]) -> None:
    """Do work that has no end of its own: a loop that returns has stopped working, and nobody else would notice."""
    try:
        await work
    except asyncio.CancelledError:
        if is_cancelled():
            raise
    raise RestartNeeded(f"{getattr(work, '__qualname__', work)} has ended by itself")
