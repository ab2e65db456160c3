"""Asking one site: the source says how, the fetcher goes, the source reads, and the gate hears how it went."""

from typing import Protocol, TypeVar

import msgspec

from longstop.errors import PageNotFound, SourceError
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.model.match import Priority, Sport
from longstop.pipeline.effort import Effort
from longstop.resilience.taxonomy import AttemptState
from longstop.sources.base import (
    Ask,
    Board,
    FeedPage,
    FootballBoard,
    Incidents,
    Line,
    Lineups,
    Listing,
    Names,
    Resource,
    Scorecard,
    Source,
    Statistics,
)

Kind = TypeVar("Kind")


class Gate(Protocol):
    """Who decides whether a source may be asked, and learns what came of it."""

    def enter(self, resource: Resource) -> object:
        """Return a pass, or raise `CircuitOpen`."""
        ...

    def leave(
        self, passed: object, resource: Resource, error: BaseException | None, body: bytes | None, page: str = ""
    ) -> None:
        """Hear how it ended: with an error or without, with which body if one came, and at which page's address."""
        ...


class OpenGate:
    """Lets everybody in: for reading by hand, and for tests of what lies behind."""

    def enter(self, resource: Resource) -> object:
        return resource

    def leave(
        self, passed: object, resource: Resource, error: BaseException | None, body: bytes | None, page: str = ""
    ) -> None: ...


class Asker:
    """Asks a source's site for one kind of page at a time."""

    def __init__(self, source: Source, fetcher: Fetcher, gate: Gate | None = None, *, is_browsed: bool = False) -> None:
        self._source = source
        #: Whether a browser fetches, whose pages have scripts that draw.
        self._is_browsed = is_browsed
        self._fetcher = fetcher
        self._gate = gate or OpenGate()
        self._effort = Effort()
        self._priority = Priority.LIVE
        self._kept: dict[tuple[str, str, bytes | None], Page] | None = None

    def keeping(self, effort: Effort, priority: Priority = Priority.LIVE) -> "Asker":
        """Return an asker for one look at a match so urgent: what two questions need from a page is fetched once."""
        asker = Asker(self._source, self._fetcher, self._gate, is_browsed=self._is_browsed)
        asker._effort = effort
        asker._priority = priority
        asker._kept = {}
        return asker

    def forget(self) -> None:
        """Fetch afresh from here on."""
        if self._kept is not None:
            self._kept = {}

    def read_by(self, source: Source) -> None:
        """Ask and read by this description of the site from here on."""
        self._source = source

    @property
    def sport(self) -> Sport:
        return self._source.sport

    def page_of(self, source_id: str) -> str:
        """Return the address of a match's page; empty where the site has none to open."""
        return self._source.request(Ask(resource=Resource.LIVE, source_id=source_id)).page

    @property
    def sites(self) -> tuple[str, ...]:
        """Return the hosts of the pages that people see."""
        return self._source.sites

    def match_of(self, url: str) -> str | None:
        """Return the match whose page this address leads to; `None` when it leads to none of this site."""
        return self._source.match_of(url)

    async def line(self, source_id: str) -> Line:
        """Return what a match's own page shows at a glance."""
        return await self._ask(Ask(resource=Resource.LIVE, source_id=source_id), Line)

    @property
    def can_draw(self) -> bool:
        """Return whether a match's page may be read as it is drawn: by a browser, where a script draws what it asks
        for."""
        return self._is_browsed and bool(self._source.calls)

    async def drawn(self, source_id: str, kind: type[Kind]) -> Kind:
        """Return what a match's page shows, as its script has drawn it."""
        return await self._ask(Ask(resource=Resource.DRAWN, source_id=source_id), kind)

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

    async def event(self, source_id: str) -> FootballBoard:
        return await self._ask(Ask(resource=Resource.LIVE, source_id=source_id), FootballBoard)

    async def incidents(self, source_id: str) -> Incidents | None:
        return await self._ask_if_there(Ask(resource=Resource.INCIDENTS, source_id=source_id), Incidents)

    async def lineups(self, source_id: str) -> Lineups | None:
        return await self._ask_if_there(Ask(resource=Resource.LINEUPS, source_id=source_id), Lineups)

    async def statistics(self, source_id: str) -> Statistics | None:
        return await self._ask_if_there(Ask(resource=Resource.STATISTICS, source_id=source_id), Statistics)

    async def _ask_if_there(self, ask: Ask, kind: type[Kind]) -> Kind | None:
        """Return what a page says that a site may not have yet; `None` while it has not, which is no error."""
        try:
            return await self._ask(ask, kind, may_be_missing=True)
        except PageNotFound:
            return None

    async def _ask(self, ask: Ask, kind: type[Kind], *, may_be_missing: bool = False) -> Kind:
        if self._kept is not None:
            self._effort.reach(AttemptState.INTERCEPTING)
        passed = self._gate.enter(ask.resource)
        body: bytes | None = None
        address = ""
        try:
            request = self._source.request(ask)
            address = request.page or request.url
            body = (await self._page(request)).body
            if self._kept is not None:
                self._effort.reach(AttemptState.CAPTURED)
            reading = self._source.parse(ask, body)
        except BaseException as error:
            if isinstance(error, SourceError) and not (may_be_missing and isinstance(error, PageNotFound)):
                self._effort.failed(error)
            self._gate.leave(passed, ask.resource, error, body, address)
            raise
        self._gate.leave(passed, ask.resource, None, body)
        if not isinstance(reading, kind):
            raise TypeError(f"source {self._source.name} reads {ask.resource} as {type(reading).__name__}")
        return reading

    async def _page(self, request: FetchRequest) -> Page:
        key = (request.method, request.url, request.body)
        if self._kept is not None and key in self._kept:
            return self._kept[key]
        page = await self._fetcher.fetch(msgspec.structs.replace(request, priority=self._priority))
        self._effort.answered(page)
        if self._kept is not None:
            self._kept[key] = page
        return page
