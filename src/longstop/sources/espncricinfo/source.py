"""espncricinfo: one page per match, with everything in the JSON that its own script starts from.

The page shows every innings' totals and overs, but only the **last 20 balls** (and the first over of each innings): a
windowed witness. What fell out of the window while nobody looked cannot be asked for again.

*Unverified*, since no such page was recorded: the listing, play under way (recorded was a finished match), breaks,
super overs, and that any slug leads to a match as long as its number is right.
"""

import re
from collections.abc import Callable
from typing import Any

from longstop.errors import WrongMatch
from longstop.fetching.base import FetchRequest
from longstop.model.observation import LIST, LIVE, Listing, Query
from longstop.sources.addresses import at_site
from longstop.sources.base import SourceConfig, not_offered
from longstop.sources.espncricinfo.board import to_board, to_scorecard
from longstop.sources.espncricinfo.feed import to_feed, to_names
from longstop.sources.espncricinfo.page import Data, ListData, MatchData, Page, state_of
from longstop.sources.wire import decode, digest_of
from longstop.sports.cricket.model import BALLS, NAMES, SCORECARD

#: Series and match, each a few words and a number.
_MATCH_PAGE = re.compile(r"/series/[^/]+-\d{1,12}/[^/]+-(?P<match>\d{1,12})(?:/|$)", re.ASCII)


_READERS: dict[str, Callable[[Data], Any]] = {
    LIVE: lambda data: to_board(data.match, data.content.all_innings),
    BALLS: lambda data: to_feed(data.content),
    SCORECARD: lambda data: to_scorecard(data.content.all_innings),
    NAMES: to_names,
}


class EspncricinfoSource:
    """Reads espncricinfo."""

    sport = "cricket"
    #: Its pages carry their data in themselves.
    calls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ("www.espncricinfo.com", "espncricinfo.com")

    def __init__(self, config: SourceConfig) -> None:
        self.name = config.domain_id
        self._sites = (*self.sites, *config.hosts)
        self._site_url = config.metadata.get("site_url", "https://www.espncricinfo.com")

    def request(self, query: Query) -> FetchRequest:
        path = "/live-cricket-score"
        if query.resource != LIST:
            path = f"/series/series-0/match-{query.source_id}/full-scorecard"
        return FetchRequest(source=self.name, url=self._site_url + path)

    def match_of(self, url: str) -> str | None:
        parts = at_site(url, self._sites)
        found = _MATCH_PAGE.match(parts.path) if parts else None
        return found["match"] if found else None

    def parse(self, query: Query, body: bytes) -> Any:
        if query.resource == LIST:
            page = decode(state_of(body), Page[ListData])
            return Listing(boards=tuple(to_board(match, ()) for match in page.props.appPageProps.data.content.matches))
        data = decode(state_of(body), Page[MatchData]).props.appPageProps.data.data
        if query.source_id and str(data.match.objectId) != query.source_id:
            raise WrongMatch(f"the page is of match {data.match.objectId}")
        if query.resource not in _READERS:
            raise not_offered(self.name, query.resource)
        return _READERS[query.resource](data)

    def digest(self, query: Query, body: bytes) -> bytes:
        # The page carries advertisements, clocks and tokens: only what is read counts.
        shape = Page[ListData] if query.resource == LIST else Page[MatchData]
        return digest_of(decode(state_of(body), shape))
