"""The errors sink: every failure that a person may want to look into becomes a row, or raises the count of one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Lock

from longstop.clock import Clock
from longstop.storage.base import ErrorStore
from longstop.telemetry.background import Background
from longstop.telemetry.bus import Bus
from longstop.telemetry.episodes import MAX_PENDING, Episodes
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import RecordsFailed

#: How long an error may wait for the others that are written with it.
FLUSH_EVERY_SECONDS = 1.0
PRUNE_EVERY_SECONDS = 3600.0


class ErrorsTable:
    """Takes events without waiting, from any thread; a task stores what they change.

    It can be made before the bus and hear events at once; they are written while `writing` lasts.
    """

    def __init__(
        self, store: ErrorStore, *, node: str, clock: Clock, flush_every_seconds: float = FLUSH_EVERY_SECONDS
    ) -> None:
        self._clock = clock
        self._store = store
        #: Whether the unresolved episodes of the store are known here.
        self._is_loaded = False
        self._lock = Lock()
        self._episodes = Episodes(node)
        self._prune_at = clock.monotonic()
        self._background = Background("errors", self._flush, every_seconds=flush_every_seconds)
        self._bus: Bus | None = None

    def take(self, event: Telemetry) -> None:
        with self._lock:
            self._episodes.take(event, self._clock.now())

    @asynccontextmanager
    async def writing(self, bus: Bus) -> AsyncIterator[None]:
        """Write what is heard; a disk that fails is told to the bus, and how much was dropped meanwhile."""
        self._bus = bus
        async with self._background.running(bus):
            yield

    async def _flush(self) -> bool:
        try:
            if not self._is_loaded:
                await self._load()
            was_written = await self._write()
            if self._clock.monotonic() >= self._prune_at:
                await self._store.prune(self._clock.now())
                self._prune_at = self._clock.monotonic() + PRUNE_EVERY_SECONDS
        except BaseException:
            # After a failure the store may be another one than before.
            self._is_loaded = False
            raise
        return was_written

    async def _load(self) -> None:
        """Go on with what is unresolved in the store."""
        known = await self._store.open_episodes()
        with self._lock:
            self._episodes.load(known)
        self._is_loaded = True

    async def _write(self) -> bool:
        with self._lock:
            changes = self._episodes.take_pending()
        if not changes:
            return False
        try:
            await self._store.write(changes)
        except BaseException:
            with self._lock:
                self._episodes.give_back(changes)
            raise
        self._tell_dropped()
        return True

    def _tell_dropped(self) -> None:
        with self._lock:
            dropped = self._episodes.take_dropped()
        if dropped and self._bus is not None:
            reason = f"{dropped:,} changes were dropped: more than {MAX_PENDING:,} were waiting"
            self._bus.emit(RecordsFailed(records="errors", error_message=reason))
