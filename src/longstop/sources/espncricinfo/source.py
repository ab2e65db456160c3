"""espncricinfo: one page per match, with everything in the JSON that its own script starts from.

The page shows every innings' totals and overs, but only the **last 20 balls** (and the first over of each innings): a
windowed witness. What fell out of the window while nobody looked cannot be asked for again.

*Unverified*, since no such page was recorded: the listing, play under way (recorded was a finished match), breaks,
super overs, and that any slug leads to a match as long as its number is right.
"""

import re

from longstop.errors import WrongMatch, belonging_to
from longstop.fetching.base import FetchRequest
from longstop.model.match import Sport
from longstop.sources.addresses import at_site
from longstop.sources.base import Ask, Listing, Reading, Resource, SourceConfig, not_offered
from longstop.sources.decode import decode
from longstop.sources.espncricinfo.board import to_board, to_scorecard
from longstop.sources.espncricinfo.feed import to_feed, to_names
from longstop.sources.espncricinfo.page import ListData, MatchData, Page, state_of

#: Series and match, each a few words and a number.
_MATCH_PAGE = re.compile(r"/series/[^/]+-\d{1,12}/[^/]+-(?P<match>\d{1,12})(?:/|$)", re.ASCII)


class EspncricinfoSource:
    """Reads espncricinfo."""

    name = "espncricinfo"
    sport = Sport.CRICKET
    #: Its pages carry their data in themselves.
    calls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ("www.espncricinfo.com", "espncricinfo.com")

    def __init__(self, config: SourceConfig) -> None:
        self._sites = (*self.sites, *config.hosts)
        self._site_url = config.metadata.get("site_url", "https://www.espncricinfo.com")

    def request(self, ask: Ask) -> FetchRequest:
        path = "/live-cricket-score"
        if ask.resource is not Resource.LIST:
            path = f"/series/series-0/match-{ask.source_id}/full-scorecard"
        return FetchRequest(source=self.name, url=self._site_url + path)

    def match_of(self, url: str) -> str | None:
        parts = at_site(url, self._sites)
        found = _MATCH_PAGE.match(parts.path) if parts else None
        return found["match"] if found else None

    def parse(self, ask: Ask, body: bytes) -> Reading:
        with belonging_to(self.name, f"{ask.resource} {ask.source_id}".rstrip()):
            if ask.resource is Resource.LIST:
                page = decode(state_of(body), Page[ListData])
                return Listing(
                    boards=tuple(to_board(match, ()) for match in page.props.appPageProps.data.content.matches)
                )
            data = decode(state_of(body), Page[MatchData]).props.appPageProps.data.data
            if ask.source_id and str(data.match.objectId) != ask.source_id:
                raise WrongMatch(f"the page is of match {data.match.objectId}")
            match ask.resource:
                case Resource.LIVE:
                    return to_board(data.match, data.content.all_innings)
                case Resource.BALLS:
                    return to_feed(data.content)
                case Resource.SCORECARD:
                    return to_scorecard(data.content.all_innings)
                case Resource.NAMES:
                    return to_names(data)
                case other:
                    raise not_offered(self.name, other)
