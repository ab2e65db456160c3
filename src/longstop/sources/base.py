"""The source seam: what to ask a site (`request`) and how to read the answer (`parse`). Both are pure."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from longstop.fetching.base import FetchRequest
from longstop.model.cricket import Delivery, InningsScore, Overs, OverSummary, Result, Target, Wicket
from longstop.model.match import MatchStatus


class Resource(StrEnum):
    """The kinds of page a source may offer."""

    LIST = "list"
    LIVE = "live"
    BALLS = "balls"
    SCORECARD = "scorecard"
    NAMES = "names"


class Ask(Struct, frozen=True, kw_only=True):
    """What we want to know."""

    resource: Resource
    #: The source's id of the match; empty for a listing, and offline where any match will do.
    source_id: str = ""
    #: For `BALLS`: the id of the oldest item we already have of this walk; `None` starts at the newest.
    before: str | None = None
    #: For `NAMES`: the keys to resolve.
    players: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()


class Batter(Struct, frozen=True, kw_only=True):
    key: str
    runs: int
    balls: int
    on_strike: bool


class Bowler(Struct, frozen=True, kw_only=True):
    key: str
    runs: int
    balls: int
    wickets: int


class Board(Struct, frozen=True, kw_only=True):
    """A scoreboard: what a live state, or a listing's entry, shows of a match."""

    source_id: str
    status: MatchStatus
    #: The site's own words for the last event, break or result.
    headline: str
    #: Batting side first, as the site says; empty when it says nothing.
    batting: str = ""
    bowling: str = ""
    #: The two innings of the current pair, in order of play; `None` when not shown.
    first: InningsScore | None = None
    second: InningsScore | None = None
    result: Result | None = None
    #: Whether the site says that the innings under way has ended.
    is_innings_over: bool = False
    #: Runs to win, and the overs to get them in; `None` when the site shows none.
    target: Target | None = None
    match_format: str | None = None
    start_at: datetime | None = None
    #: Empty in a listing's entry, and at breaks.
    batters: tuple[Batter, ...] = ()
    bowler: Bowler | None = None
    #: Equal fingerprints mean: nothing that we keep has changed.
    fingerprint: str = ""


class Listing(Struct, frozen=True, kw_only=True):
    """The matches a site shows now. An empty one is an answer; a failed one is an error."""

    boards: tuple[Board, ...]
    #: Matches that are in the list with an entry we cannot read: neither missing nor finished.
    unreadable: tuple[str, ...] = ()


class BallItem(Struct, frozen=True, kw_only=True):
    """A delivery in the event list, before its wickets are joined to it."""

    id: int
    innings: int
    over: int
    #: Its number among the deliveries of the over, from 1, where the source numbers them.
    nth: int | None = None
    delivery: Delivery


class WicketItem(Struct, frozen=True, kw_only=True):
    """A wicket in the event list; it belongs to a ball with the same innings and label."""

    id: int
    innings: int
    label: Overs
    wicket: Wicket


class OverItem(Struct, frozen=True, kw_only=True):
    """An over's end in the event list."""

    id: int
    innings: int
    over: int
    summary: OverSummary
    #: The source's id of it; `None` stands for `id`.
    source_event_id: str | None = None


FeedItem = BallItem | WicketItem | OverItem


class FeedPage(Struct, frozen=True, kw_only=True):
    """One page of the event list, newest first."""

    items: tuple[FeedItem, ...]
    #: What to ask `before` for the next page; `None` when this was the end.
    next_before: str | None
    #: Whether the end of the list is not the beginning of the match: only the newest items are shown.
    is_window: bool = False
    #: Items shown apart from the list; of what lies between them and it nothing is said.
    detached: tuple[FeedItem, ...] = ()
    #: Keys of teams with the names that the page writes beside them, as far as it does.
    teams: Mapping[str, str] = {}


class ScorecardInnings(Struct, frozen=True, kw_only=True):
    number: int
    team: str
    score: InningsScore


class Scorecard(Struct, frozen=True, kw_only=True):
    innings: tuple[ScorecardInnings, ...]


class Names(Struct, frozen=True, kw_only=True):
    """What keys stand for. A key that the site did not resolve is absent, not empty."""

    players: Mapping[str, str]
    teams: Mapping[str, str]


Reading = Listing | Board | FeedPage | Scorecard | Names


class Source(Protocol):
    """One site."""

    name: str

    def request(self, ask: Ask) -> FetchRequest:
        """Return how to ask the site."""
        ...

    def parse(self, ask: Ask, body: bytes) -> Reading:
        """Return what the body says, or raise a `ParseError` or `ObservationError`."""
        ...


class SourceConfig(Struct, frozen=True, kw_only=True):
    """What an operator says about a site, from `config/sources.yaml`."""

    domain_id: str
    enabled: bool
    precedence_weight: int
    adapter_class: str
    #: The only hosts that may be asked, as `host` or `host:port`.
    hosts: tuple[str, ...]
    #: Whether private and loopback addresses are allowed: for a simulator, never for a real site.
    allow_private_addresses: bool
    #: Who gave leave to read this site, when and how; a real site stays disabled without it.
    permission: str | None
    metadata: Mapping[str, str]
