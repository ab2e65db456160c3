"""Begins scrapes in the order of their urgency, no more than so many at a time, over all sources."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from longstop.clock import Clock
from longstop.telemetry.bus import Bus
from longstop.telemetry.lacks import failure_of
from longstop.watching.requests import ScrapeQueue, ScrapeRequest

Work = Callable[[], Awaitable[None]]


class Dispatcher:
    """The one loop that starts looks."""

    def __init__(self, *, clock: Clock, bus: Bus, cap: int) -> None:
        self._clock = clock
        self._bus = bus
        self._cap = self._free = cap
        self._queue = ScrapeQueue()
        self._work: dict[str, Work] = {}
        self._news = asyncio.Event()

    @property
    def waiting(self) -> list[ScrapeRequest]:
        """Return the requests that have not begun."""
        return list(self._queue.waiting)

    @property
    def looking(self) -> int:
        """Return how many have begun and not ended."""
        return self._cap - self._free

    def submit(self, request: ScrapeRequest, work: Work) -> bool:
        """Have the work done in its turn; `False` when the same is waiting or under way already."""
        if not self._queue.put(request):
            return False
        self._work[request.request_id] = work
        self._news.set()
        return True

    async def run(self) -> None:
        """Go on until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._news.clear()
                while self._free and (request := self._queue.take(self._clock.monotonic())):
                    self._free -= 1
                    group.create_task(self._do(request), name=f"look at {request.ref}")
                await self._next()

    async def _do(self, request: ScrapeRequest) -> None:
        try:
            await self._work.pop(request.request_id)()
        except Exception as error:  # a bug in one match's work must not end the watching of the others
            self._bus.emit(failure_of(error, f"look at {request.ref}"))
        finally:
            self._free += 1
            self._queue.done(request)
            self._news.set()

    async def _next(self) -> None:
        """Wait until there is something to begin: a request, a free place, or the time of one that waits."""
        next_at = self._queue.next_at() if self._free else None
        wait = None if next_at is None else max(0.0, next_at - self._clock.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._news.wait()
