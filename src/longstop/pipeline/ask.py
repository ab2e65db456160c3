"""Asking one site: the source says how, the fetcher goes, the source reads."""

from typing import TypeVar

from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.sources.base import Ask, Board, FeedPage, Listing, Names, Resource, Scorecard, Source

Kind = TypeVar("Kind")


class Asker:
    """Asks a source's site for one kind of page at a time."""

    def __init__(self, source: Source, fetcher: Fetcher) -> None:
        self._source = source
        self._fetcher = fetcher
        self._kept: dict[tuple[str, str, bytes | None], Page] | None = None

    def keeping(self) -> "Asker":
        """Return an asker for one look: what two questions need from the same page is fetched once."""
        asker = Asker(self._source, self._fetcher)
        asker._kept = {}
        return asker

    def forget(self) -> None:
        """Fetch afresh from here on."""
        if self._kept is not None:
            self._kept = {}

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
        reading = self._source.parse(ask, (await self._page(self._source.request(ask))).body)
        if not isinstance(reading, kind):
            raise TypeError(f"source {self._source.name} reads {ask.resource} as {type(reading).__name__}")
        return reading

    async def _page(self, request: FetchRequest) -> Page:
        if self._kept is None:
            return await self._fetcher.fetch(request)
        key = (request.method, request.url, request.body)
        if key not in self._kept:
            self._kept[key] = await self._fetcher.fetch(request)
        return self._kept[key]
