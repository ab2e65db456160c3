"""Asking one site: the source says how, the fetcher goes, the source reads."""

from typing import TypeVar

from longstop.fetching.base import Fetcher
from longstop.sources.base import Ask, Board, FeedPage, Listing, Names, Resource, Scorecard, Source

Kind = TypeVar("Kind")


class Asker:
    """Asks a source's site for one kind of page at a time."""

    def __init__(self, source: Source, fetcher: Fetcher) -> None:
        self._source = source
        self._fetcher = fetcher

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
        page = await self._fetcher.fetch(self._source.request(ask))
        reading = self._source.parse(ask, page.body)
        if not isinstance(reading, kind):
            raise TypeError(f"source {self._source.name} reads {ask.resource} as {type(reading).__name__}")
        return reading
