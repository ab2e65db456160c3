"""What every process has: a bus with a log, a data directory's secret, an orderly life."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager

from longstop import __version__
from longstop.clock import Clock
from longstop.settings import Settings
from longstop.supervision.parent import watch_parent_if_any
from longstop.telemetry.bus import Bus, Sink
from longstop.telemetry.events import ProcessStarted, ProcessStopped
from longstop.telemetry.log import LogSink


def make_bus(process: str, settings: Settings, clock: Clock, *more: Sink) -> Bus:
    """Return a bus whose events go to stderr as JSON lines, and to `more`."""
    log = LogSink(process=process, level=settings.scraper.monitoring.logging.level, clock=clock)
    return Bus([log, *more])


@contextmanager
def life(bus: Bus, process: str) -> Iterator[None]:
    """Say when a process begins and ends its work, and end it with its supervisor."""
    watch_parent_if_any(os.environ)
    bus.emit(ProcessStarted(process=process, pid=os.getpid(), version=__version__))
    try:
        yield
    finally:
        bus.emit(ProcessStopped(process=process, pid=os.getpid()))


async def run_until_stopped(*work: Coroutine[None, None, None]) -> None:
    """Run until SIGTERM or SIGINT; the first piece of work that fails ends the others and is raised."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            await stop.wait()
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
