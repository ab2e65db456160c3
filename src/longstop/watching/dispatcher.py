"""Scrape requests in their order, and the one loop that runs them: at most `cap` at a time over all sources."""

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
    """Which resource of a match is requested; one poll brings scorecard and commentary together."""

    SCORECARD = "scorecard"
    COMMENTARY = "commentary"
    STATS = "stats"


class ScrapeRequest(Struct, frozen=True, kw_only=True):
    """A request to poll one match."""

    #: Lower goes first.
    priority: int
    ref: MatchRef
    resource: ResourceType
    #: The moment, monotonic, before which it does not start.
    scheduled_at: float
    request_id: str
    #: How many polls of this match have failed in a row before this one.
    attempt: int = 0
    metadata: Mapping[str, str] = {}

    @property
    def domain(self) -> str:
        return self.ref.source

    @property
    def slot(self) -> tuple[MatchRef, ResourceType]:
        """Return what there is at most one of at a time."""
        return self.ref, self.resource


class ScrapeQueue:
    """Requests by priority, then by time; of each match and resource one at a time, waiting or running. Pure."""

    def __init__(self) -> None:
        self._later: list[tuple[float, int, ScrapeRequest]] = []
        self._ready: list[tuple[int, float, int, ScrapeRequest]] = []
        self._taken: set[tuple[MatchRef, ResourceType]] = set()
        self._count = 0

    def put(self, request: ScrapeRequest) -> bool:
        """Add a request; return `False` when the same one is waiting or running already."""
        if request.slot in self._taken:
            return False
        self._taken.add(request.slot)
        self._count += 1
        heappush(self._later, (request.scheduled_at, self._count, request))
        return True

    def take(self, now: float) -> ScrapeRequest | None:
        """Return the most urgent request whose time has come."""
        while self._later and self._later[0][0] <= now:
            scheduled_at, count, request = heappop(self._later)
            heappush(self._ready, (request.priority, scheduled_at, count, request))
        return heappop(self._ready)[-1] if self._ready else None

    def done(self, request: ScrapeRequest) -> None:
        """Allow the next request of the same match and resource."""
        self._taken.discard(request.slot)

    def next_at(self) -> float | None:
        """Return when the next request that is not ready yet becomes so."""
        return self._later[0][0] if self._later else None

    @property
    def waiting(self) -> Iterator[ScrapeRequest]:
        yield from (entry[-1] for entry in self._ready)
        yield from (entry[-1] for entry in self._later)


class Dispatcher:
    """The one loop that starts polls."""

    def __init__(self, *, clock: Clock, bus: Bus, cap: int) -> None:
        self._clock = clock
        self._bus = bus
        self._cap = self._free = cap
        self._queue = ScrapeQueue()
        self._work: dict[str, Work] = {}
        self._news = asyncio.Event()

    @property
    def waiting(self) -> list[ScrapeRequest]:
        """Return the requests that have not started."""
        return list(self._queue.waiting)

    @property
    def looking(self) -> int:
        """Return how many are running."""
        return self._cap - self._free

    def submit(self, request: ScrapeRequest, work: Work) -> bool:
        """Run the work in its turn; return `False` when the same request is waiting or running already."""
        if not self._queue.put(request):
            return False
        self._work[request.request_id] = work
        self._news.set()
        return True

    async def run(self) -> None:
        """Run until cancelled."""
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
        except Exception as error:  # a bug in one match's work must not stop the others
            self._bus.emit(failure_of(error, f"look at {request.ref}"))
        finally:
            self._free += 1
            self._queue.done(request)
            self._news.set()

    async def _next(self) -> None:
        """Wait until there is something to start: a request, a free place, or the time of one that waits."""
        next_at = self._queue.next_at() if self._free else None
        wait = None if next_at is None else max(0.0, next_at - self._clock.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._news.wait()
