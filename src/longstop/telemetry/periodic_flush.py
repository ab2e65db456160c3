"""Writes or sends records in the background, so that the emitter of an event never waits for a disk or a receiver."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from longstop.errors import StorageError
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import RecordsFailed

#: A hung disk must not delay the end of a process for longer.
CLOSE_WITHIN = 5.0


class PeriodicFlush:
    """Calls `flush` periodically and once more at the end. A failure is reported once until a flush succeeds.

    `flush` returns whether there was anything to write: an empty flush proves nothing about the disk.
    """

    def __init__(
        self,
        records: str,
        flush: Callable[[], Awaitable[bool]],
        *,
        every_seconds: float,
        close_within: float = CLOSE_WITHIN,
    ) -> None:
        self._records = records
        self._flush = flush
        self._every = every_seconds
        self._close_within = close_within
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self._is_failing = False

    def wake(self) -> None:
        """Flush at once. May be called from any thread, and before `running`, which starts with a flush."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, after the last flush
                self._loop.call_soon_threadsafe(self._woken.set)

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        task = asyncio.create_task(self._run(bus), name=f"writer of {self._records}")
        try:
            yield
        finally:
            self._is_stopping = True
            self._woken.set()
            try:
                await asyncio.wait([task], timeout=self._close_within)
            finally:
                task.cancel()
                await asyncio.wait([task])

    async def _run(self, bus: Bus) -> None:
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
        except Exception as error:  # the task must survive every error, or all later records would be lost
            if self._is_failing:
                return
            self._is_failing = True
            if isinstance(error, StorageError | OSError):
                bus.emit(RecordsFailed(records=self._records, error_message=str(error)))
            else:
                bus.emit(failure_of(error, f"writer of {self._records}"))
