"""crex: a live list, and for each match a compact live state, an event list, a scorecard and a table of names.

The format is that of 2026: single-letter keys, mostly string values, no time stamp and no version in any body.

Which side bats is shown by play (`rb`) and by the scorecard. `a` has the two sides in the order of the fixture. Balls
name a batting side, too (`bat_team_fkey`), but have been reported with the bowling side there: it is not used.

*Unverified*, because no such body was recorded: the live list as a whole, wicket items, wides and no-balls in a ball's
value, super overs, and `tg` (target). The simulator writes exactly what is parsed here.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from longstop.fetching.base import FetchRequest
from longstop.model.source_queries_and_answers import LIST, LIVE, RENDERED, Query
from longstop.sources.base import SourceConfig, not_offered
from longstop.sources.bodies_and_urls import decode, digest_of, split_site_url
from longstop.sources.crex.dom import read_rendered
from longstop.sources.crex.event_list_and_names import read_event_list, read_items, read_names
from longstop.sources.crex.fixtures import fixtures_content, read_fixtures
from longstop.sources.crex.live_list_and_scores import State, masked, read_live_list, read_scorecard, to_board
from longstop.sports.cricket.model import BALLS, NAMES, SCORECARD

#: The path of a match page until 2025, and since then.
_MATCH_PAGE = re.compile(
    r"/scoreboard/(?P<old>[0-9A-Z]{1,8})(?:/|$)"
    r"|/cricket-live-score/[a-zA-Z0-9-]+-match-updates-(?P<new>[0-9A-Z]{1,8})(?:/|$)"
)


_ARRAY = re.compile(rb"\s*\[\s*\{")


def _is_fixture_list(body: bytes) -> bool:
    """Return whether a list is one of fixtures, an array. An empty array is no list of either kind."""
    return _ARRAY.match(body) is not None


_READERS: dict[str, Callable[[str, bytes], Any]] = {
    LIST: lambda _, body: read_fixtures(body) if _is_fixture_list(body) else read_live_list(body),
    LIVE: lambda source_id, body: to_board(source_id, decode(body, State)),
    SCORECARD: lambda _, body: read_scorecard(body),
    BALLS: read_event_list,
    NAMES: lambda _, body: read_names(body),
    RENDERED: read_rendered,
}
#: The part of a body that counts for its digest: odds, forecasts and decoration change constantly.
_CONTENT: dict[str, Callable[[bytes], Any]] = {
    LIST: lambda body: (
        fixtures_content(body)
        if _is_fixture_list(body)
        else {key: masked(state) for key, state in decode(body, dict[str, State]).items()}
    ),
    LIVE: lambda body: masked(decode(body, State)),
    BALLS: read_items,
}


class CrexSource:
    """The cricket site crex.com."""

    sport = "cricket"
    calls: tuple[str, ...] = ("/api/v3/getSV3",)
    sites: tuple[str, ...] = ("crex.com", "www.crex.com")
    metadata_keys = ("site_url", "api_url", "content_url", "names_url")

    def __init__(self, config: SourceConfig) -> None:
        self.name = config.domain_id
        self._sites = (*self.sites, *config.hosts)
        self._site_url = config.metadata.get("site_url", "https://crex.com")
        self._api_url = config.metadata.get("api_url", "https://api.goscorer.com")
        self._content_url = config.metadata.get("content_url", "https://content.crickapi.com")
        self._names_url = config.metadata.get("names_url", "https://oc.crickapi.com")

    def request(self, query: Query) -> FetchRequest:
        key, page = quote(query.source_id), self._match_page(query.source_id)
        if query.resource == LIST:
            return self._get("getLiveMatches", self._list_page)
        if query.resource == LIVE:
            return self._get(f"getSV3?key={key}", page)
        if query.resource == SCORECARD:
            return self._get(f"getSC4?key={key}", page)
        if query.resource == BALLS:
            payload: dict[str, Any] = {
                "matchKey": query.source_id,
                "lastDocId": query.cursor,
                "filters": {},
                "lang": "en",
            }
            return self._post(f"{self._content_url}/commentary/v1/getBallFeeds", payload, page)
        if query.resource == NAMES:
            keys = {"p": query.players, "s": (), "u": (), "v": (), "t": query.teams, "lc": "en"}
            return self._post(f"{self._names_url}/mapping/getHomeMapData", keys, self._list_page)
        if query.resource == RENDERED:
            return FetchRequest(source=self.name, url=page, is_rendered=True)
        raise not_offered(self.name, query.resource)

    def parse(self, query: Query, body: bytes) -> Any:
        if query.resource not in _READERS:
            raise not_offered(self.name, query.resource)
        return _READERS[query.resource](query.source_id, body)

    def digest(self, query: Query, body: bytes) -> bytes:
        content = _CONTENT.get(query.resource, bytes)
        return digest_of(content(body))

    def match_of(self, url: str) -> str | None:
        parts = split_site_url(url, self._sites)
        found = _MATCH_PAGE.match(parts.path) if parts else None
        return (found["old"] or found["new"]) if found else None

    def _get(self, path: str, page: str) -> FetchRequest:
        return FetchRequest(source=self.name, url=f"{self._api_url}/api/v3/{path}", page=page)

    def _post(self, url: str, payload: dict[str, Any], page: str) -> FetchRequest:
        return FetchRequest(source=self.name, url=url, method="POST", body=msgspec.json.encode(payload), page=page)

    @property
    def _list_page(self) -> str:
        return f"{self._site_url}/live-matches"

    def _match_page(self, source_id: str) -> str:
        # The site ignores the words before the key, but requires some.
        return f"{self._site_url}/cricket-live-score/live-match-updates-{quote(source_id)}"
