"""crex: one live list, a compact state per match, a ball feed, a scorecard and a table of names.

The shape is that of 2026: single-letter keys, values mostly strings, no time stamp and no version in any body.

*Unverified*, since no such body was recorded: the live list as a whole, wicket items, extras in a ball's value, the
names' answer, super overs, `tg` (target), and the texts of results. The simulator writes exactly what is read here.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any
from unicodedata import normalize
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.errors import LayoutChanged, ParseError, WrongMatch, belonging_to
from longstop.fetching.base import FetchRequest
from longstop.model.cricket import (
    Delivery,
    Dismissal,
    InningsScore,
    Overs,
    OverSummary,
    Runs,
    Score,
    Target,
    Wicket,
)
from longstop.model.match import SOURCE_ID, Sport
from longstop.sources.addresses import at_site
from longstop.sources.base import (
    Ask,
    BallItem,
    Batter,
    Board,
    Bowler,
    FeedItem,
    FeedPage,
    Listing,
    Names,
    OverItem,
    Reading,
    Resource,
    Scorecard,
    ScorecardInnings,
    SourceConfig,
    WicketItem,
    not_offered,
)
from longstop.sources.crex_dom import read_drawn
from longstop.sources.crex_words import moment
from longstop.sources.decode import decode

BALLS_PER_OVER = 6

#: The parenthesis is never closed on the wire; a site that learns to close it changes nothing for us.
_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})\((\d{1,3})\.(\d)\)?", re.ASCII)
_CARD_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})\((\d{1,4})\)?", re.ASCII)
_TARGET = re.compile(r"(\d{1,4})\((\d{1,3})\.(\d)\)?", re.ASCII)
_SCORE_AFTER = re.compile(r"(\d{1,4})/(\d{1,2})", re.ASCII)
_LABEL = re.compile(r"(\d{1,3})\.(\d{1,2})", re.ASCII)
_COUNT = re.compile(r"\d{1,4}", re.ASCII)

_DISMISSALS = {
    1: Dismissal.BOWLED,
    2: Dismissal.CAUGHT,
    3: Dismissal.LBW,
    4: Dismissal.RUN_OUT,
    5: Dismissal.STUMPED,
    6: Dismissal.HIT_WICKET,
    7: Dismissal.RETIRED,
    8: Dismissal.OBSTRUCTING,
}

#: The address of a match's page until 2025, and since.
_MATCH_PAGE = re.compile(
    r"/scoreboard/(?P<old>[0-9A-Z]{1,8})(?:/|$)"
    r"|/cricket-live-score/[a-zA-Z0-9-]+-match-updates-(?P<new>[0-9A-Z]{1,8})(?:/|$)"
)

_BALL_PART = re.compile(r"(?P<number>\d{0,2})(?P<kind>wd|nb|lb|b|p)?(?P<extras>\d?)", re.ASCII)
_BOUNDARIES = {4: 6, 8: 4}


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
                    return _read_listing(body)
                case Resource.LIVE:
                    return _to_board(ask.source_id, decode(body, _State))
                case Resource.SCORECARD:
                    return _read_scorecard(body)
                case Resource.BALLS:
                    return _read_feed(ask.source_id, body)
                case Resource.NAMES:
                    return _read_names(body)
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


# --- bodies ---------------------------------------------------------------------------------------------------------


#: Bounds that no match reaches: a number beyond them is another field or another site.
_Small = Annotated[int, Meta(ge=0, le=9_999)]
_Id = Annotated[int, Meta(ge=0, le=2**53)]
_Milliseconds = Annotated[int, Meta(ge=0, le=4_102_444_800_000)]


class _State(Struct, frozen=True):
    """What we read of a live state and of a list's entry; every other key is odds, forecasts and decoration."""

    a: str
    B: str
    j: str
    k: str = ""
    fo: str | UnsetType = UNSET
    mt: _Milliseconds | UnsetType = UNSET
    tg: str | UnsetType = UNSET
    p: str = ""
    q: str = ""
    s: str = ""
    b: str = ""
    c: str = ""


class _Head(Struct, frozen=True):
    """What every feed item has; of a text between the balls it is all that we read."""

    type: str
    id: _Id
    mfkey: str | UnsetType = UNSET


class _Item(_Head, frozen=True):
    """A ball, a wicket or an over's end; which fields must be there depends on `type`."""

    inning: _Small | UnsetType = UNSET
    on: _Small | UnsetType = UNSET
    o: str | _Small | UnsetType = UNSET
    b: str | UnsetType = UNSET
    fv: int | UnsetType = UNSET
    s: str | UnsetType = UNSET
    bf: str | UnsetType | None = UNSET
    pf: str | UnsetType | None = UNSET
    player: str | UnsetType = UNSET
    pf_out: str | UnsetType | None = UNSET
    dismissal: _Small | UnsetType = UNSET
    runs: _Small | UnsetType = UNSET
    team: str | None = None
    tfkey: str | None = None


class _CardInnings(Struct, frozen=True):
    c: str
    d: str


class _Name(Struct, frozen=True):
    f_key: str
    n: str | None = None


class _NameTable(Struct, frozen=True):
    p: list[_Name]
    t: list[_Name]


def _read_listing(body: bytes) -> Listing:
    entries = decode(body, dict[str, msgspec.Raw])
    boards: list[Board] = []
    unreadable: list[str] = []
    for key, raw in entries.items():
        try:
            if not SOURCE_ID.fullmatch(key):
                raise LayoutChanged(f"{key[:80]!r} is no match key")
            boards.append(_to_board(key, decode(bytes(raw), _State)))
        except ParseError:
            unreadable.append(key[:80])
    if unreadable and not boards:
        raise LayoutChanged(f"none of the {len(unreadable)} entries of the list can be read")
    return Listing(boards=tuple(boards), unreadable=tuple(unreadable))


def _read_scorecard(body: bytes) -> Scorecard:
    innings = [
        ScorecardInnings(number=number, team=item.c, score=_card_score(item.d))
        for number, item in enumerate(decode(body, list[_CardInnings]), start=1)
    ]
    return Scorecard(innings=tuple(innings))


def _read_names(body: bytes) -> Names:
    table = decode(body, _NameTable)
    return Names(players=_named(table.p), teams=_named(table.t))


def _named(names: list[_Name]) -> dict[str, str]:
    """Keep what has a name; a key without one stays unresolved and is asked for again."""
    return {item.f_key: _tidy(item.n) for item in names if item.n and item.n.strip()}


# --- the scoreboard -------------------------------------------------------------------------------------------------


def _to_board(source_id: str, state: _State) -> Board:
    batting, _, bowling = state.a.partition(".")
    first, second = _innings_score("j", state.j), _innings_score("k", state.k)
    # An innings that has not begun is filled with zeros: shown, but not there.
    if second is not None and second.is_blank:
        second = None
    means = moment(state.B, first)
    return Board(
        source_id=source_id,
        status=means.status,
        headline=means.headline,
        batting=batting,
        bowling=bowling,
        first=first,
        second=second,
        result=means.result,
        is_innings_over=means.is_innings_over,
        target=_target(state.tg),
        match_format=state.fo or None,
        start_at=datetime.fromtimestamp(state.mt / 1000, UTC) if state.mt else None,
        batters=_batters(state),
        bowler=_bowler(state),
        # Odds and forecasts change all the time; equal scores, sides and texts mean nothing new for us.
        fingerprint="|".join((state.a, means.headline, state.j, state.k, str(state.mt), str(state.tg))),
    )


def _innings_score(field: str, text: str) -> InningsScore | None:
    if not text:
        return None
    runs, wickets, over, ball = _numbers(_SCORE, text, field)
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(over, ball))


def _card_score(text: str) -> InningsScore:
    """Read a scorecard's score, which counts balls where the live state counts overs."""
    runs, wickets, balls = _numbers(_CARD_SCORE, text, "d")
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(*divmod(balls, BALLS_PER_OVER)))


def _target(text: str | UnsetType) -> Target | None:
    if not text:
        return None
    runs, over, ball = _numbers(_TARGET, text, "tg")
    return Target(runs=runs, overs=Overs(over, ball))


def _batters(state: _State) -> tuple[Batter, ...]:
    pairs = zip(state.p.split("."), (state.q, state.s), strict=False)
    return tuple(_batter(key, text) for key, text in pairs if key and text)


def _batter(key: str, text: str) -> Batter:
    runs, balls, *_ = _dotted(text.rstrip("*"), 2, "q")
    return Batter(key=key, runs=runs, balls=balls, on_strike=text.endswith("*"))


def _bowler(state: _State) -> Bowler | None:
    if not (state.b and state.c):
        return None
    runs, balls, wickets, *_ = _dotted(state.c, 3, "c")
    return Bowler(key=state.b, runs=runs, balls=balls, wickets=wickets)


# --- the ball feed --------------------------------------------------------------------------------------------------


def _read_feed(source_id: str, body: bytes) -> FeedPage:
    raw = decode(body, list[msgspec.Raw])
    heads = [decode(bytes(item), _Head) for item in raw]
    for head in heads:
        if source_id and head.mfkey is not UNSET and head.mfkey != source_id:
            raise WrongMatch(f"the feed is of match {head.mfkey[:20]!r}")
    items = [decode(bytes(item), _Item) for head, item in zip(heads, raw, strict=True) if head.type in _READERS]
    return FeedPage(
        items=tuple(_READERS[item.type](item) for item in items),
        next_before=str(heads[-1].id) if heads else None,
        teams={item.tfkey: _tidy(item.team) for item in items if item.tfkey and item.team},
    )


def _to_ball(item: _Item) -> BallItem:
    over = _whole(item, "on", item.on)
    label = Overs(*_numbers(_LABEL, _text(item, "o", item.o), "o"))
    if label.over != over:
        raise LayoutChanged(f"ball {item.id} is labelled {label} in over {over}")
    delivery = Delivery(
        label=label,
        runs=read_ball_value(_text(item, "b", item.b)),
        boundary=_BOUNDARIES.get(_whole(item, "fv", item.fv)),
        batter=_key(item, "pf", item.pf),
        bowler=_key(item, "bf", item.bf),
    )
    return BallItem(id=item.id, innings=_innings(item), over=over, delivery=delivery)


def _to_wicket(item: _Item) -> WicketItem:
    kind = _DISMISSALS.get(_whole(item, "dismissal", item.dismissal), Dismissal.OTHER)
    name = _tidy(_text(item, "player", item.player))
    wicket = Wicket(kind=kind, player_out=name, player_key=_key(item, "pf_out", item.pf_out))
    label = Overs(*_numbers(_LABEL, _text(item, "o", item.o), "o"))
    return WicketItem(id=item.id, innings=_innings(item), label=label, wicket=wicket)


def _to_over(item: _Item) -> OverItem:
    runs, wickets = _numbers(_SCORE_AFTER, _text(item, "s", item.s), "s")
    summary = OverSummary(
        runs=_whole(item, "runs", item.runs),
        score=Score(runs=runs, wickets=wickets),
        bowler=_key(item, "bf", item.bf),
    )
    return OverItem(id=item.id, innings=_innings(item), over=_whole(item, "on", item.on), summary=summary)


#: Other types are text between the balls, and no events.
_READERS: dict[str, Callable[[_Item], FeedItem]] = {"b": _to_ball, "w": _to_wicket, "o": _to_over}


def _innings(item: _Item) -> int:
    """Return the innings from 1; the feed counts from 0."""
    return _whole(item, "inning", item.inning) + 1


def read_ball_value(text: str) -> Runs:
    """Read what a ball gave: `4`, `wd`, `5wd`, `4nb` (four off the bat), `nb2` (two extras), `lb+5p`."""
    counts = dict.fromkeys(("batter", "wides", "noballs", "byes", "legbyes", "penalty"), 0)
    for part in text.split("+"):
        found = _BALL_PART.fullmatch(part)
        if not part or found is None or (found["extras"] and found["kind"] != "nb"):
            raise LayoutChanged(f"{text[:40]!r} is no ball value")
        number, kind = found["number"], found["kind"]
        match kind:
            case None:
                counts["batter"] += int(number)
            case "nb":
                counts["batter"] += int(number or 0)
                counts["noballs"] += int(found["extras"] or 1)
            case _:
                counts[_EXTRAS[kind]] += int(number or 1)
    return Runs(**counts)


_EXTRAS = {"wd": "wides", "b": "byes", "lb": "legbyes", "p": "penalty"}


# --- small readers --------------------------------------------------------------------------------------------------


def _numbers(pattern: re.Pattern[str], text: str, field: str) -> list[int]:
    found = pattern.fullmatch(text)
    if found is None:
        raise LayoutChanged(f"field {field!r} reads {text[:40]!r}")
    return [int(group) for group in found.groups()]


def _dotted(text: str, least: int, field: str) -> list[int]:
    parts = text.split(".")
    if len(parts) < least or not all(_COUNT.fullmatch(part) for part in parts):
        raise LayoutChanged(f"field {field!r} reads {text[:40]!r}")
    return [int(part) for part in parts]


def _text(item: _Item, field: str, value: str | int | UnsetType) -> str:
    if not isinstance(value, str):
        raise LayoutChanged(f"item {item.id} of type {item.type!r} has no text {field!r}")
    return value


def _key(item: _Item, field: str, value: str | UnsetType | None) -> str | None:
    """Return a key, or `None` where the site left it empty; a field that is gone altogether is another layout."""
    if value is UNSET:
        raise LayoutChanged(f"item {item.id} of type {item.type!r} has no key {field!r}")
    return value or None


def _tidy(name: str) -> str:
    return normalize("NFC", name.strip())


def _whole(item: _Item, field: str, value: int | UnsetType) -> int:
    if not isinstance(value, int):
        raise LayoutChanged(f"item {item.id} of type {item.type!r} has no count {field!r}")
    return value
