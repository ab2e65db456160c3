"""crex: one live list, a compact state per match, a ball feed, a scorecard and a table of names.

The shape is that of 2026: single-letter keys, values mostly strings, no time stamp and no version in any body.

*Unverified*, since no such body was recorded: the live list as a whole, wicket items, extras in a ball's value, the
names' answer, super overs, `tg` (target), and the texts of results. The simulator writes exactly what is read here.
"""

import re
from typing import Any
from urllib.parse import quote

import msgspec

from longstop.errors import belonging_to
from longstop.fetching.base import FetchRequest
from longstop.model.match import Sport
from longstop.sources.addresses import at_site
from longstop.sources.base import Ask, Reading, Resource, SourceConfig, not_offered
from longstop.sources.crex.board import State, read_listing, read_scorecard, to_board
from longstop.sources.crex.dom import read_drawn
from longstop.sources.crex.feed import read_feed
from longstop.sources.crex.names import read_names
from longstop.sources.decode import decode

#: The address of a match's page until 2025, and since.
_MATCH_PAGE = re.compile(
    r"/scoreboard/(?P<old>[0-9A-Z]{1,8})(?:/|$)"
    r"|/cricket-live-score/[a-zA-Z0-9-]+-match-updates-(?P<new>[0-9A-Z]{1,8})(?:/|$)"
)


class CrexSource:
    """Reads crex."""

    name = "crex"
    sport = Sport.CRICKET
    calls: tuple[str, ...] = ("/api/v3/getSV3",)
    sites: tuple[str, ...] = ("crex.com", "www.crex.com")

    def __init__(self, config: SourceConfig) -> None:
        self._sites = (*self.sites, *config.hosts)
        self._site_url = config.metadata.get("site_url", "https://crex.com")
        self._api_url = config.metadata.get("api_url", "https://api.goscorer.com")
        self._content_url = config.metadata.get("content_url", "https://content.crickapi.com")
        self._names_url = config.metadata.get("names_url", "https://oc.crickapi.com")

    def request(self, ask: Ask) -> FetchRequest:
        match ask.resource:
            case Resource.LIST:
                return self._get("getLiveMatches", self._list_page)
            case Resource.LIVE:
                return self._get(f"getSV3?key={quote(ask.source_id)}", self._match_page(ask.source_id))
            case Resource.SCORECARD:
                return self._get(f"getSC4?key={quote(ask.source_id)}", self._match_page(ask.source_id))
            case Resource.BALLS:
                question: dict[str, Any] = {
                    "matchKey": ask.source_id,
                    "lastDocId": ask.before,
                    "filters": {},
                    "lang": "en",
                }
                url = f"{self._content_url}/commentary/v1/getBallFeeds"
                return self._post(url, question, self._match_page(ask.source_id))
            case Resource.NAMES:
                keys = {"p": ask.players, "s": (), "u": (), "v": (), "t": ask.teams, "lc": "en"}
                return self._post(f"{self._names_url}/mapping/getHomeMapData", keys, self._list_page)
            case Resource.DRAWN:
                return FetchRequest(source=self.name, url=self._match_page(ask.source_id), is_rendered=True)
            case other:
                raise not_offered(self.name, other)

    def parse(self, ask: Ask, body: bytes) -> Reading:
        with belonging_to(self.name, f"{ask.resource} {ask.source_id}".rstrip()):
            match ask.resource:
                case Resource.LIST:
                    return read_listing(body)
                case Resource.LIVE:
                    return to_board(ask.source_id, decode(body, State))
                case Resource.SCORECARD:
                    return read_scorecard(body)
                case Resource.BALLS:
                    return read_feed(ask.source_id, body)
                case Resource.NAMES:
                    return read_names(body)
                case Resource.DRAWN:
                    return read_drawn(ask.source_id, body)
                case other:
                    raise not_offered(self.name, other)

    def match_of(self, url: str) -> str | None:
        parts = at_site(url, self._sites)
        found = _MATCH_PAGE.match(parts.path) if parts else None
        return (found["old"] or found["new"]) if found else None

    def _get(self, path: str, page: str) -> FetchRequest:
        return FetchRequest(source=self.name, url=f"{self._api_url}/api/v3/{path}", page=page)

    def _post(self, url: str, question: dict[str, Any], page: str) -> FetchRequest:
        return FetchRequest(source=self.name, url=url, method="POST", body=msgspec.json.encode(question), page=page)

    @property
    def _list_page(self) -> str:
        return f"{self._site_url}/live-matches"

    def _match_page(self, source_id: str) -> str:
        # Which words stand before the key does not matter to the site, as long as there are some.
        return f"{self._site_url}/cricket-live-score/live-match-updates-{quote(source_id)}"
