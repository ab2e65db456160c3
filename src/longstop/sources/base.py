"""The source seam: what to ask a site (`request`) and how to read the answer (`parse`). Both are pure."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import UNSET, Struct, UnsetType

from longstop.errors import UsageError
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.base import LADDER, BrowserKind, Mode
from longstop.model.cricket import Delivery, InningsScore, Overs, OverSummary, Result, Target, Wicket
from longstop.model.football import FootballResult, Goals, Incident, Side
from longstop.model.match import MatchStatus, Sport


class Resource(StrEnum):
    """The kinds of page a source may offer."""

    LIST = "list"
    LIVE = "live"
    BALLS = "balls"
    SCORECARD = "scorecard"
    NAMES = "names"
    #: Football's.
    INCIDENTS = "incidents"
    LINEUPS = "lineups"
    STATISTICS = "statistics"
    #: A match's page as its script has drawn it: the last resort.
    DRAWN = "drawn"


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


class Line(Struct, frozen=True, kw_only=True):
    """What a listing's entry, or a match's own page, shows at a glance, whatever the sport."""

    source_id: str
    status: MatchStatus
    #: The site's own words for the last event, break or result.
    headline: str
    start_at: datetime | None = None
    #: Equal fingerprints mean: nothing that we keep of this line has changed.
    fingerprint: str = ""
    #: Whether an equal line means that nothing has happened. One that shows the score alone does not tell of cards:
    #: then the match's own pages are asked at every turn, and a long silence is no break.
    tells_all: bool = True


class Board(Line, frozen=True, kw_only=True):
    """A scoreboard: what a live state, or a listing's entry, shows of a cricket match."""

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
    #: Empty in a listing's entry, and at breaks.
    batters: tuple[Batter, ...] = ()
    bowler: Bowler | None = None


class DrawnBoard(Board, frozen=True, kw_only=True):
    """A scoreboard as a page draws it: it names the sides, and has no keys."""

    #: The side that bats, then the other one; empty while the page has not learnt a name.
    names: tuple[str, str] = ("", "")
    #: By field, which selector served, counted from 0; a later one means that the page has changed.
    selectors: Mapping[str, int] = {}


class Listing(Struct, frozen=True, kw_only=True):
    """The matches a site shows now. An empty one is an answer; a failed one is an error."""

    boards: tuple[Line, ...]
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


class FootballTeam(Struct, frozen=True, kw_only=True):
    key: str
    name: str


class PeriodScore(Struct, frozen=True, kw_only=True):
    """What one part of a match gave."""

    #: As the site calls it: `period1`, `extra1`, `penalties` …
    name: str
    home: int
    away: int


class FootballBoard(Line, frozen=True, kw_only=True):
    """What an event, or a listing's entry, shows of a football match."""

    home: FootballTeam
    away: FootballTeam
    #: Goals, those of a shoot-out apart; `None` before the kick-off, and where nothing was played.
    score: Goals | None = None
    #: By period, in order; what the site does not show is not there.
    periods: tuple[PeriodScore, ...] = ()
    penalties: Goals | None = None
    result: FootballResult | None = None
    tournament: str | None = None
    season: str | None = None
    round: int | None = None


class DrawnFootballBoard(FootballBoard, frozen=True, kw_only=True):
    """A football match as its page draws it: its sides have names, and empty keys."""

    #: By field, which selector served, counted from 0; a later one means that the page has changed.
    selectors: Mapping[str, int] = {}


class SeenIncident(Struct, frozen=True, kw_only=True):
    """Something that happened in a football match, as a source shows it now."""

    #: The source's id; unique among those of its kind.
    source_event_id: str
    #: `None` for what belongs to both sides.
    side: Side | None
    content: Incident


class Incidents(Struct, frozen=True, kw_only=True):
    """The whole list of a football match's events, oldest first."""

    items: tuple[SeenIncident, ...]
    #: Names of the players that the list mentions.
    players: Mapping[str, str] = {}


class LineupPlayer(Struct, frozen=True, kw_only=True):
    """One of a squad. What the source leaves out is `UNSET`, what it says to be nothing is `None`."""

    key: str
    name: str
    is_starter: bool
    is_captain: bool = False
    position: str | UnsetType | None = UNSET
    shirt: int | UnsetType | None = UNSET
    rating: float | UnsetType | None = UNSET
    minutes: int | UnsetType | None = UNSET


class MissingPlayer(Struct, frozen=True, kw_only=True):
    key: str
    name: str
    #: `missing` or `doubtful`.
    kind: str
    #: The source's number for why.
    reason: int | UnsetType = UNSET
    description: str | UnsetType = UNSET


class Squad(Struct, frozen=True, kw_only=True):
    formation: str | UnsetType | None = UNSET
    #: Starters first, in the order of the formation from the goalkeeper on.
    players: tuple[LineupPlayer, ...]
    missing: tuple[MissingPlayer, ...] | UnsetType = UNSET


class Lineups(Struct, frozen=True, kw_only=True):
    """Who plays: a guess until it is confirmed."""

    is_confirmed: bool
    #: `None` when the source shows no squad of this side.
    home: Squad | None
    away: Squad | None


class Statistic(Struct, frozen=True, kw_only=True):
    """One figure of both sides; with a total, so many of so many."""

    key: str
    home: float
    away: float
    home_total: float | UnsetType = UNSET
    away_total: float | UnsetType = UNSET


class Statistics(Struct, frozen=True, kw_only=True):
    #: By the source's name of the period, `ALL` for the whole match.
    periods: Mapping[str, tuple[Statistic, ...]]


Reading = Listing | Board | FeedPage | Scorecard | Names | FootballBoard | Incidents | Lineups | Statistics


class Source(Protocol):
    """One site."""

    name: str
    sport: Sport
    #: Paths of JSON that the site's pages ask for by themselves, such as `/api/v1/event/*`: a browser takes it as it
    #: goes by. What else is wanted is asked for from inside a page.
    calls: tuple[str, ...]
    #: Hosts of the pages that people see, such as `crex.com`.
    sites: tuple[str, ...]

    def request(self, ask: Ask) -> FetchRequest:
        """Return how to ask the site."""
        ...

    def parse(self, ask: Ask, body: bytes) -> Reading:
        """Return what the body says, or raise a `ParseError` or `ObservationError`."""
        ...

    def match_of(self, url: str) -> str | None:
        """Return the match whose page this address leads to; `None` when it leads to none of this site."""
        ...


def not_offered(source: str, resource: Resource) -> UsageError:
    return UsageError(f"{source} has no {resource} pages: ask for another kind")


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
    #: The browser that reads the site; `None` for none: it is asked by HTTP.
    browser: BrowserKind | None = None
    #: The ways in which the browser may be used.
    modes: tuple[Mode, ...] = LADDER
