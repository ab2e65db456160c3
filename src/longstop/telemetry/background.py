"""A task for sinks that store what they hear: those who have something to say never wait for a disk."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import RecordsFailed
from longstop.telemetry.exhaustion import failure_of

#: A disk that hangs must not keep a process from ending.
CLOSE_WITHIN = 5.0


class Background:
    """Calls `flush` every so often, and once more at the end; a failure is told once until it is mended.

    `flush` returns whether there was anything to write: that nothing was says nothing about a disk.
    """

    def __init__(self, records: str, flush: Callable[[], Awaitable[bool]], *, every_seconds: float) -> None:
        self._records = records
        self._flush = flush
        self._every = every_seconds
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self._is_failing = False

    def wake(self) -> None:
        """Flush at once; may be called from any thread, and before `running`, which begins with a flush."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and with it the last flush
                self._loop.call_soon_threadsafe(self._woken.set)

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        """Run the task meanwhile."""
        self._loop = asyncio.get_running_loop()
        task = asyncio.create_task(self._work(bus), name=f"writer of {self._records}")
        try:
            yield
        finally:
            self._is_stopping = True
            self._woken.set()
            await asyncio.wait([task], timeout=CLOSE_WITHIN)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _work(self, bus: Bus) -> None:
        while not self._is_stopping:
            await self._try(bus)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._woken.wait()
            self._woken.clear()
        await self._try(bus)

    async def _try(self, bus: Bus) -> None:
        try:
            if await self._flush():
                self._is_failing = False
        except Exception as error:  # the task must outlive every error of a sink, or all later news would be lost
            if not self._is_failing:
                self._is_failing = True
                bus.emit(_told(error, self._records))


def _told(error: Exception, records: str) -> Telemetry:
    if isinstance(error, StorageError | OSError):
        return RecordsFailed(records=records, error_message=str(error))
    return failure_of(error, f"writer of {records}")
