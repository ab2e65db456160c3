"""sofascore: a live list, and for each match its event, incidents, line-ups and statistics.

*Unverified*, because no such body was recorded: the texts of extra-time periods, a missed shoot-out kick, line-ups
before kick-off. A 404 of anything but the event means "not yet" or "never".
"""

import re
from collections.abc import Callable
from typing import Any

from longstop.fetching.base import FetchRequest
from longstop.model.source_queries_and_answers import LIST, LIVE, RENDERED, Query
from longstop.sources.base import SourceConfig, not_offered
from longstop.sources.bodies_and_urls import decode, digest_of, split_site_url
from longstop.sources.sofascore.dom import read_rendered
from longstop.sources.sofascore.event import read_event, read_live_list
from longstop.sources.sofascore.incidents import IncidentsBody, read_incidents
from longstop.sources.sofascore.lineups_and_statistics import read_lineups, read_statistics
from longstop.sports.football.model import INCIDENTS, LINEUPS, STATISTICS

#: Where the URL of a match page has the id: in the fragment, or in a short path.
_EVENT_MARK = re.compile(r"id:(?P<event>\d{1,12})(?:,.*)?", re.ASCII)
_EVENT_PAGE = re.compile(r"(?:/api/v1)?/event/(?:[^/]+/)?(?P<event>\d{1,12})/?", re.ASCII)

_PATHS = {
    LIVE: "",
    INCIDENTS: "/incidents",
    LINEUPS: "/lineups",
    STATISTICS: "/statistics",
}


_READERS: dict[str, Callable[[str, bytes], Any]] = {
    LIST: lambda _, body: read_live_list(body),
    LIVE: read_event,
    INCIDENTS: lambda _, body: read_incidents(body),
    LINEUPS: lambda _, body: read_lineups(body),
    STATISTICS: lambda _, body: read_statistics(body),
    RENDERED: read_rendered,
}
#: The part of a body that counts for its digest.
_READ_PARTS: dict[str, Callable[[bytes], Any]] = {
    LIST: read_live_list,
    LIVE: lambda body: read_event("", body),
    INCIDENTS: lambda body: decode(body, IncidentsBody),
}


class SofascoreSource:
    """The football site sofascore.com."""

    sport = "football"
    calls: tuple[str, ...] = ("/api/v1/event/*",)
    sites: tuple[str, ...] = ("www.sofascore.com", "sofascore.com")
    metadata_keys = ("site_url", "api_url")

    def __init__(self, config: SourceConfig) -> None:
        self.name = config.domain_id
        self._sites = (*self.sites, *config.hosts)
        self._api_url = config.metadata.get("api_url", "https://www.sofascore.com")
        self._site_url = config.metadata.get("site_url", "https://www.sofascore.com")

    def request(self, query: Query) -> FetchRequest:
        if query.resource == LIST:
            return self._get("sport/football/events/live", "football/live")
        # The site ignores the words before the id.
        page = f"event/match/{query.source_id}"
        if query.resource == RENDERED:
            return FetchRequest(source=self.name, url=f"{self._site_url}/{page}", is_rendered=True)
        if query.resource not in _PATHS:
            raise not_offered(self.name, query.resource)
        return self._get(f"event/{query.source_id}{_PATHS[query.resource]}", page)

    def match_of(self, url: str) -> str | None:
        parts = split_site_url(url, self._sites)
        if parts is None:
            return None
        # The slug and code in the path identify the pair of teams, not a match.
        found = _EVENT_MARK.fullmatch(parts.fragment) or _EVENT_PAGE.fullmatch(parts.path)
        return found["event"] if found else None

    def parse(self, query: Query, body: bytes) -> Any:
        if query.resource not in _READERS:
            raise not_offered(self.name, query.resource)
        return _READERS[query.resource](query.source_id, body)

    def digest(self, query: Query, body: bytes) -> bytes:
        # Translations, colours and follower counts change constantly: only fields that are read count.
        read = _READ_PARTS.get(query.resource)
        return digest_of(read(body) if read else body)

    def _get(self, path: str, page: str) -> FetchRequest:
        return FetchRequest(source=self.name, url=f"{self._api_url}/api/v1/{path}", page=f"{self._site_url}/{page}")
