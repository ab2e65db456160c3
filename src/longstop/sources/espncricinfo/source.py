"""espncricinfo: one page per match, with all data in embedded JSON.

The page shows the totals and overs of every innings, but only the **last 20 balls** and the first over of each
innings. Balls that left this window between two polls cannot be fetched later.

In play, balls may be in a summary (`supportInfo.liveSummary`) instead of the commentary. The summary also has the
batters and the bowler of the moment.

*Unverified*, because no such page was recorded: the live listing (only lists of results were recorded), breaks, super
overs, and that the site ignores the slug as long as the number is right.
"""

import re
from collections.abc import Callable
from typing import Any

from longstop.errors import WrongMatch
from longstop.fetching.base import FetchRequest
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, Query
from longstop.sources.base import SourceConfig, not_offered
from longstop.sources.bodies_and_urls import decode, digest_of, split_site_url
from longstop.sources.espncricinfo.embedded_json_fields import (
    EspnData,
    EspnListPage,
    EspnMatchData,
    EspnPage,
    embedded_json,
)
from longstop.sources.espncricinfo.views import to_board, to_event_list, to_names, to_scorecard
from longstop.sports.cricket.model import BALLS, NAMES, SCORECARD

#: Series and match: each a slug that ends with a number.
_MATCH_PAGE = re.compile(r"/series/[^/]+-\d{1,12}/[^/]+-(?P<match>\d{1,12})(?:/|$)", re.ASCII)


_READERS: dict[str, Callable[[EspnData], Any]] = {
    LIVE: lambda data: to_board(data.match, data.content.all_innings, data.content.summary),
    BALLS: lambda data: to_event_list(data.content),
    SCORECARD: lambda data: to_scorecard(data.content.all_innings),
    NAMES: to_names,
}


class EspncricinfoSource:
    """The cricket site espncricinfo.com."""

    sport = "cricket"
    #: None: the data is embedded in the pages.
    calls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ("www.espncricinfo.com", "espncricinfo.com")
    metadata_keys = ("site_url",)

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
        parts = split_site_url(url, self._sites)
        found = _MATCH_PAGE.match(parts.path) if parts else None
        return found["match"] if found else None

    def parse(self, query: Query, body: bytes) -> Any:
        if query.resource == LIST:
            return Listing(boards=tuple(map(to_board, decode(embedded_json(body), EspnListPage).matches)))
        data = decode(embedded_json(body), EspnPage[EspnMatchData]).props.appPageProps.data.data
        if query.source_id and str(data.match.objectId) != query.source_id:
            raise WrongMatch(f"the page is of match {data.match.objectId}")
        if query.resource not in _READERS:
            raise not_offered(self.name, query.resource)
        return _READERS[query.resource](data)

    def digest(self, query: Query, body: bytes) -> bytes:
        # The page has advertisements, clocks and tokens: only fields that are read count.
        page = embedded_json(body)
        if query.resource == LIST:
            return digest_of(decode(page, EspnListPage).matches)
        return digest_of(decode(page, EspnPage[EspnMatchData]))
