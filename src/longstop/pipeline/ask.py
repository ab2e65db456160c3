"""Asking one site: the source says how, the fetcher goes, the source reads, and the gate hears how it went."""

from typing import Protocol, TypeVar

from longstop.errors import SourceError
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.pipeline.effort import Effort
from longstop.resilience.attempt import AttemptState
from longstop.sources.base import Ask, Board, FeedPage, Listing, Names, Resource, Scorecard, Source

Kind = TypeVar("Kind")


class Gate(Protocol):
    """Who decides whether a source may be asked, and learns what came of it."""

    def enter(self, resource: Resource) -> object:
        """Return a pass, or raise `CircuitOpen`."""
        ...

    def leave(self, passed: object, resource: Resource, error: BaseException | None, body: bytes | None) -> None:
        """Hear how it ended: with an error or without, and with which body if one came."""
        ...


class OpenGate:
    """Lets everybody in: for reading by hand, and for tests of what lies behind."""

    def enter(self, resource: Resource) -> object:
        return resource

    def leave(self, passed: object, resource: Resource, error: BaseException | None, body: bytes | None) -> None: ...


class Asker:
    """Asks a source's site for one kind of page at a time."""

    def __init__(self, source: Source, fetcher: Fetcher, gate: Gate | None = None) -> None:
        self._source = source
        self._fetcher = fetcher
        self._gate = gate or OpenGate()
        self._effort = Effort()
        self._kept: dict[tuple[str, str, bytes | None], Page] | None = None

    def keeping(self, effort: Effort) -> "Asker":
        """Return an asker for one look: what two questions need from the same page is fetched once."""
        asker = Asker(self._source, self._fetcher, self._gate)
        asker._effort = effort
        asker._kept = {}
        return asker

    def forget(self) -> None:
        """Fetch afresh from here on."""
        if self._kept is not None:
            self._kept = {}

    def read_by(self, source: Source) -> None:
        """Ask and read by this description of the site from here on."""
        self._source = source

    async def listing(self) -> Listing:
        return await self._ask(Ask(resource=Resource.LIST), Listing)

    async def board(self, source_id: str) -> Board:
        return await self._ask(Ask(resource=Resource.LIVE, source_id=source_id), Board)

    async def feed(self, source_id: str, before: str | None) -> FeedPage:
        return await self._ask(Ask(resource=Resource.BALLS, source_id=source_id, before=before), FeedPage)

    async def scorecard(self, source_id: str) -> Scorecard:
        return await self._ask(Ask(resource=Resource.SCORECARD, source_id=source_id), Scorecard)

    async def names(self, players: tuple[str, ...], teams: tuple[str, ...]) -> Names:
        return await self._ask(Ask(resource=Resource.NAMES, players=players, teams=teams), Names)

    async def _ask(self, ask: Ask, kind: type[Kind]) -> Kind:
        if self._kept is not None:
            self._effort.reach(AttemptState.INTERCEPTING)
        passed = self._gate.enter(ask.resource)
        body: bytes | None = None
        try:
            body = (await self._page(self._source.request(ask))).body
            if self._kept is not None:
                self._effort.reach(AttemptState.CAPTURED)
            reading = self._source.parse(ask, body)
        except BaseException as error:
            if isinstance(error, SourceError):
                self._effort.failed(error)
            self._gate.leave(passed, ask.resource, error, body)
            raise
        self._gate.leave(passed, ask.resource, None, body)
        if not isinstance(reading, kind):
            raise TypeError(f"source {self._source.name} reads {ask.resource} as {type(reading).__name__}")
        return reading

    async def _page(self, request: FetchRequest) -> Page:
        key = (request.method, request.url, request.body)
        if self._kept is not None and key in self._kept:
            return self._kept[key]
        page = await self._fetcher.fetch(request)
        self._effort.answered(page)
        if self._kept is not None:
            self._kept[key] = page
        return page
