"""sofascore: one live list, and of each match its event, its incidents, its line-ups and its statistics.

*Unverified*, since no such body was recorded: a list of matches in play, the texts of extra time's periods, a missed
kick of a shoot-out, line-ups before the kick-off. A 404 of anything but the event means "not yet", or "never".
"""

import re

from longstop.errors import belonging_to
from longstop.fetching.base import FetchRequest
from longstop.model.match import Sport
from longstop.sources.addresses import at_site
from longstop.sources.base import Ask, Reading, Resource, SourceConfig, not_offered
from longstop.sources.sofascore.dom import read_drawn
from longstop.sources.sofascore.event import read_event, read_listing
from longstop.sources.sofascore.incidents import read_incidents
from longstop.sources.sofascore.lineups import read_lineups
from longstop.sources.sofascore.statistics import read_statistics

#: How the address of a match's page names the match: behind the mark, or in a path of the short kind.
_EVENT_MARK = re.compile(r"id:(?P<event>\d{1,12})(?:,.*)?", re.ASCII)
_EVENT_PAGE = re.compile(r"(?:/api/v1)?/event/(?:[^/]+/)?(?P<event>\d{1,12})/?", re.ASCII)

_PATHS = {
    Resource.LIVE: "",
    Resource.INCIDENTS: "/incidents",
    Resource.LINEUPS: "/lineups",
    Resource.STATISTICS: "/statistics",
}


class SofascoreSource:
    """Reads sofascore."""

    name = "sofascore"
    sport = Sport.FOOTBALL
    calls: tuple[str, ...] = ("/api/v1/event/*",)
    sites: tuple[str, ...] = ("www.sofascore.com", "sofascore.com")

    def __init__(self, config: SourceConfig) -> None:
        self._sites = (*self.sites, *config.hosts)
        self._api_url = config.metadata.get("api_url", "https://www.sofascore.com")
        self._site_url = config.metadata.get("site_url", "https://www.sofascore.com")

    def request(self, ask: Ask) -> FetchRequest:
        if ask.resource is Resource.LIST:
            return self._get("sport/football/events/live", "football/live")
        # Which words stand before the id does not matter to the site.
        page = f"event/match/{ask.source_id}"
        if ask.resource is Resource.DRAWN:
            return FetchRequest(source=self.name, url=f"{self._site_url}/{page}", is_rendered=True)
        if ask.resource not in _PATHS:
            raise not_offered(self.name, ask.resource)
        return self._get(f"event/{ask.source_id}{_PATHS[ask.resource]}", page)

    def match_of(self, url: str) -> str | None:
        parts = at_site(url, self._sites)
        if parts is None:
            return None
        # The words and the code in the path are of the pair of teams, not of one of their matches.
        found = _EVENT_MARK.fullmatch(parts.fragment) or _EVENT_PAGE.fullmatch(parts.path)
        return found["event"] if found else None

    def parse(self, ask: Ask, body: bytes) -> Reading:
        with belonging_to(self.name, f"{ask.resource} {ask.source_id}".rstrip()):
            match ask.resource:
                case Resource.LIST:
                    return read_listing(body)
                case Resource.LIVE:
                    return read_event(ask.source_id, body)
                case Resource.INCIDENTS:
                    return read_incidents(body)
                case Resource.LINEUPS:
                    return read_lineups(body)
                case Resource.STATISTICS:
                    return read_statistics(body)
                case Resource.DRAWN:
                    return read_drawn(ask.source_id, body)
                case other:
                    raise not_offered(self.name, other)

    def _get(self, path: str, page: str) -> FetchRequest:
        return FetchRequest(source=self.name, url=f"{self._api_url}/api/v1/{path}", page=f"{self._site_url}/{page}")
