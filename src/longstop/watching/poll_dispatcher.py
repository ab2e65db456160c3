"""The queue of polls, and the loop that runs them: at most `cap` at a time over all sources."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from heapq import heappop, heappush

from msgspec import Struct

from longstop.clock import Clock
from longstop.model.match import MatchRef
from longstop.telemetry.bus import Bus, failure_of

Work = Callable[[], Awaitable[None]]


class ResourceType(StrEnum):
    """The requested resource of a match. One poll reads scorecard and commentary together."""

    SCORECARD = "scorecard"
    COMMENTARY = "commentary"
    STATS = "stats"


class ScrapeRequest(Struct, frozen=True, kw_only=True):
    #: Lower runs first.
    priority: int
    ref: MatchRef
    resource: ResourceType
    #: It does not start before this monotonic time.
    scheduled_at: float
    request_id: str
    #: Consecutive failed polls of this match before this one.
    attempt: int = 0
    metadata: Mapping[str, str] = {}

    @property
    def domain(self) -> str:
        return self.ref.source

    @property
    def slot(self) -> tuple[MatchRef, ResourceType]:
        """Return the key of which at most one request is queued or running."""
        return self.ref, self.resource


class ScrapeQueue:
    """Requests by priority, then by time; one for each match and resource, queued or running. Pure."""

    def __init__(self) -> None:
        self._later: list[tuple[float, int, ScrapeRequest]] = []
        self._ready: list[tuple[int, float, int, ScrapeRequest]] = []
        self._taken: set[tuple[MatchRef, ResourceType]] = set()
        self._count = 0

    def put(self, request: ScrapeRequest) -> bool:
        """Add a request; return `False` when the same one is queued or running."""
        if request.slot in self._taken:
            return False
        self._taken.add(request.slot)
        self._count += 1
        heappush(self._later, (request.scheduled_at, self._count, request))
        return True

    def take(self, now: float) -> ScrapeRequest | None:
        """Return the most urgent request that may start now."""
        while self._later and self._later[0][0] <= now:
            scheduled_at, count, request = heappop(self._later)
            heappush(self._ready, (request.priority, scheduled_at, count, request))
        return heappop(self._ready)[-1] if self._ready else None

    def done(self, request: ScrapeRequest) -> None:
        """Allow the next request of the same match and resource."""
        self._taken.discard(request.slot)

    def next_at(self) -> float | None:
        """Return when the next request may start that may not start yet."""
        return self._later[0][0] if self._later else None

    @property
    def waiting(self) -> Iterator[ScrapeRequest]:
        yield from (entry[-1] for entry in self._ready)
        yield from (entry[-1] for entry in self._later)


class Dispatcher:
    def __init__(self, *, clock: Clock, bus: Bus, cap: int) -> None:
        self._clock = clock
        self._bus = bus
        self._cap = self._free = cap
        self._queue = ScrapeQueue()
        self._work: dict[str, Work] = {}
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> list[ScrapeRequest]:
        return list(self._queue.waiting)

    @property
    def running(self) -> int:
        return self._cap - self._free

    def submit(self, request: ScrapeRequest, work: Work) -> bool:
        """Queue the work; return `False` when the same request is queued or running."""
        if not self._queue.put(request):
            return False
        self._work[request.request_id] = work
        self._changed.set()
        return True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                while self._free and (request := self._queue.take(self._clock.monotonic())):
                    self._free -= 1
                    group.create_task(self._do(request), name=f"poll of {request.ref}")
                await self._wait()

    async def _do(self, request: ScrapeRequest) -> None:
        try:
            await self._work.pop(request.request_id)()
        except Exception as error:  # a bug in one poll must not stop the others
            self._bus.emit(failure_of(error, f"poll of {request.ref}"))
        finally:
            self._free += 1
            self._queue.done(request)
            self._changed.set()

    async def _wait(self) -> None:
        """Wait for a new request, a free slot, or the start time of a queued request."""
        next_at = self._queue.next_at() if self._free else None
        wait = None if next_at is None else max(0.0, next_at - self._clock.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._changed.wait()
