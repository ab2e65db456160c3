"""A thread for sinks that write files: those who have something to say never wait for a disk."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Event, Thread

from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import TaskFailed
from longstop.telemetry.events.upkeep import RecordsFailed

#: A disk that hangs must not keep a process from ending.
CLOSE_WITHIN = 5.0


class Background:
    """Calls `flush` every so often, and once more at the end; a failure is told once until it is mended.

    `flush` returns whether there was anything to write: that nothing was says nothing about a disk.
    """

    def __init__(self, records: str, flush: Callable[[], bool], *, every_seconds: float) -> None:
        self._records = records
        self._flush = flush
        self._every = every_seconds
        self._woken = Event()
        self._is_stopping = False
        self._is_failing = False

    def wake(self) -> None:
        """Flush at once, in the thread."""
        self._woken.set()

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        """Run the thread meanwhile."""
        thread = Thread(target=self._work, args=(bus,), name=f"writer of {self._records}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_stopping = True
            self.wake()
            await asyncio.to_thread(thread.join, CLOSE_WITHIN)

    def _work(self, bus: Bus) -> None:
        while not self._is_stopping:
            self._try(bus)
            self._woken.wait(self._every)
            self._woken.clear()
        self._try(bus)

    def _try(self, bus: Bus) -> None:
        try:
            if self._flush():
                self._is_failing = False
        except Exception as error:  # whatever a sink meets, the thread lives on, or all later news would be lost
            if not self._is_failing:
                self._is_failing = True
                bus.emit(_told(error, self._records))


def _told(error: Exception, records: str) -> RecordsFailed | TaskFailed:
    if isinstance(error, StorageError | OSError):
        return RecordsFailed(records=records, error_message=str(error))
    return TaskFailed.by(error, task=f"writer of {records}")
