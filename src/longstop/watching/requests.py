"""Scrape requests, and the queue that puts them in order. Pure."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from heapq import heappop, heappush

from msgspec import Struct

from longstop.model.match import MatchRef


class ResourceType(StrEnum):
    """What of a match is wanted; a look brings scorecard and commentary in one."""

    SCORECARD = "scorecard"
    COMMENTARY = "commentary"
    STATS = "stats"


class ScrapeRequest(Struct, frozen=True, kw_only=True):
    """The wish to look at one match."""

    #: Lower goes first.
    priority: int
    ref: MatchRef
    resource: ResourceType
    #: The moment, monotonic, before which it does not begin.
    scheduled_at: float
    request_id: str
    #: How many looks at this match have failed in a row before this one.
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
    """Requests by priority, then by time; of each match and resource one at a time, waiting or under way."""

    def __init__(self) -> None:
        self._later: list[tuple[float, int, ScrapeRequest]] = []
        self._ready: list[tuple[int, float, int, ScrapeRequest]] = []
        self._taken: set[tuple[MatchRef, ResourceType]] = set()
        self._count = 0

    def put(self, request: ScrapeRequest) -> bool:
        """Take a request in; `False` when the same is waiting or under way already."""
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
        """Let the next request of the same match and resource in."""
        self._taken.discard(request.slot)

    def next_at(self) -> float | None:
        """Return when the next request that is not ready yet becomes so."""
        return self._later[0][0] if self._later else None

    @property
    def waiting(self) -> Iterator[ScrapeRequest]:
        yield from (entry[-1] for entry in self._ready)
        yield from (entry[-1] for entry in self._later)
