"""The queue of polls, and the loop that runs them: at most `cap` at a time, divided among the sources."""

import asyncio
from collections import Counter, defaultdict
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
    """Requests by priority, then by time; one for each match and resource, queued or running. Pure.

    Among equally urgent requests of several sources, the source with the fewest running ones comes first.
    """

    def __init__(self, cap: int = 1000, sources: int = 1) -> None:
        #: How many may run of one source: each of the others keeps half of an equal share.
        self._most_of_one = max(1, cap - (sources - 1) * max(1, cap // (2 * sources)))
        self._later: list[tuple[float, int, ScrapeRequest]] = []
        #: By source.
        self._ready = defaultdict[str, list[tuple[int, float, int, ScrapeRequest]]](list)
        self._running: Counter[str] = Counter()
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
            heappush(self._ready[request.domain], (request.priority, scheduled_at, count, request))
        heads = [
            (ready[0][0], self._running[source], *ready[0][1:3], source)
            for source, ready in self._ready.items()
            if ready and self._running[source] < self._most_of_one
        ]
        if not heads:
            return None
        source = min(heads)[-1]
        self._running[source] += 1
        return heappop(self._ready[source])[-1]

    def done(self, request: ScrapeRequest) -> None:
        """Allow the next request of the same match and resource."""
        self._running[request.domain] -= 1
        self._taken.discard(request.slot)

    def next_at(self) -> float | None:
        """Return when the next request may start that may not start yet."""
        return self._later[0][0] if self._later else None

    @property
    def waiting(self) -> Iterator[ScrapeRequest]:
        yield from (entry[-1] for ready in self._ready.values() for entry in ready)
        yield from (entry[-1] for entry in self._later)


class Dispatcher:
    def __init__(self, *, clock: Clock, bus: Bus, cap: int, sources: int = 1) -> None:
        self._clock = clock
        self._bus = bus
        self._cap = self._free = cap
        self._queue = ScrapeQueue(cap, sources)
        self._work: dict[str, Work] = {}
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> list[ScrapeRequest]:
        return list(self._queue.waiting)

    @property
    def running(self) -> int:
        return self._cap - self._free

    def waiting_of(self, source: str) -> int:
        return sum(request.domain == source for request in self._queue.waiting)

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
