"""A site with a JSON API: `/matches`, `/matches/{id}` and `/matches/{id}/points`."""

import re
from typing import Any, Literal

from msgspec import Struct

from longstop.errors import WrongMatch
from longstop.fetching.base import FetchRequest
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, Query
from longstop.sources.base import SourceConfig, not_offered
from longstop.sources.bodies_and_urls import decode, digest_of, split_site_url

from .sport import POINTS, Board, Play, Side, Won


# --- the wire: only what is read; whatever else the site sends may come and go ----------------------------------------
class WireMatch(Struct):
    id: str
    status: MatchStatus
    home: str
    away: str
    sets: tuple[tuple[int, int], ...]
    game: str
    winner: Side | None = None


class WirePlay(Struct):
    id: str
    type: Literal["point", "game", "set"]
    at: tuple[int, ...]
    won: Won


_SHAPES: dict[str, Any] = {LIST: list[WireMatch], LIVE: WireMatch, POINTS: list[WirePlay]}


class Courtside:
    sport = "tennis"
    calls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ("courtside.example",)
    metadata_keys = ("url",)

    def __init__(self, config: SourceConfig) -> None:
        self.name = config.domain_id
        self._sites = (*self.sites, *config.hosts)
        self._url = config.metadata.get("url", "https://courtside.example")

    def request(self, query: Query) -> FetchRequest:
        match = f"/matches/{query.source_id}"
        paths = {LIST: "/matches", LIVE: match, POINTS: f"{match}/points"}
        if query.resource not in paths:
            raise not_offered(self.name, query.resource)
        return FetchRequest(source=self.name, url=self._url + paths[query.resource])

    def parse(self, query: Query, body: bytes) -> Listing | Board | tuple[Play, ...]:
        said = decode(body, _SHAPES[query.resource])
        if query.resource == LIST:
            return Listing(boards=tuple(map(_board, said)))
        if query.resource == POINTS:
            return tuple(map(_play, said))
        if query.source_id not in ("", said.id):
            raise WrongMatch(f"the page shows match {said.id}")
        return _board(said)

    def digest(self, query: Query, body: bytes) -> bytes:
        return digest_of(decode(body, _SHAPES[query.resource]))  # what is not read, such as a clock, does not count

    def match_of(self, url: str) -> str | None:
        parts = split_site_url(url, self._sites)
        found = re.fullmatch(r"/matches/([A-Za-z0-9-]{1,64})", parts.path) if parts else None
        return found[1] if found else None


def _board(said: WireMatch) -> Board:
    return Board(
        source_id=said.id,
        status=said.status,
        headline=said.game,
        fingerprint=f"{said.status} {said.sets} {said.game} {said.winner}",
        home=said.home,
        away=said.away,
        sets=said.sets,
        winner=said.winner,
    )


def _play(said: WirePlay) -> Play:
    return Play(source_event_id=said.id, kind=said.type, numbers=said.at, content=said.won)
