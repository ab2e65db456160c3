"""crex's live list, the compact state of a match, and its scorecard."""

import re
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.errors import LayoutChanged, ParseError
from longstop.model.match import SOURCE_ID, MatchStatus
from longstop.model.observation import Listing
from longstop.sources.results import result_in
from longstop.sources.wire import decode
from longstop.sports.cricket.model import (
    BALLS_PER_OVER,
    Batter,
    Board,
    Bowler,
    InningsScore,
    Overs,
    Result,
    Scorecard,
    ScorecardInnings,
    Target,
)

Milliseconds = Annotated[int, Meta(ge=0, le=4_102_444_800_000)]

#: The parenthesis is never closed on the wire; a site that learns to close it changes nothing for us.
_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})\((\d{1,3})\.(\d)\)?", re.ASCII)
_CARD_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})\((\d{1,4})\)?", re.ASCII)
_TARGET = re.compile(r"(\d{1,4})\((\d{1,3})\.(\d)\)?", re.ASCII)
_COUNT = re.compile(r"\d{1,4}", re.ASCII)


class State(Struct, frozen=True):
    """What we read of a live state and of a list's entry; every other key is odds, forecasts and decoration."""

    a: str
    B: str
    j: str
    k: str = ""
    fo: str | UnsetType = UNSET
    mt: Milliseconds | UnsetType = UNSET
    tg: str | UnsetType = UNSET
    p: str = ""
    q: str = ""
    s: str = ""
    b: str = ""
    c: str = ""


class _CardInnings(Struct, frozen=True):
    c: str
    d: str


def read_listing(body: bytes) -> Listing:
    entries = decode(body, dict[str, msgspec.Raw])
    boards: list[Board] = []
    unreadable: list[str] = []
    for key, raw in entries.items():
        try:
            if not SOURCE_ID.fullmatch(key):
                raise LayoutChanged(f"{key[:80]!r} is no match key")
            boards.append(to_board(key, decode(bytes(raw), State)))
        except ParseError:
            unreadable.append(key[:80])
    if unreadable and not boards:
        raise LayoutChanged(f"none of the {len(unreadable)} entries of the list can be read")
    return Listing(boards=tuple(boards), unreadable=tuple(unreadable))


def read_scorecard(body: bytes) -> Scorecard:
    innings = [
        ScorecardInnings(number=number, team=item.c, score=_card_score(item.d))
        for number, item in enumerate(decode(body, list[_CardInnings]), start=1)
    ]
    return Scorecard(innings=tuple(innings))


def to_board(source_id: str, state: State) -> Board:
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
    runs, wickets, over, ball = numbers(_SCORE, text, field)
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(over, ball))


def _card_score(text: str) -> InningsScore:
    """Read a scorecard's score, which counts balls where the live state counts overs."""
    runs, wickets, balls = numbers(_CARD_SCORE, text, "d")
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(*divmod(balls, BALLS_PER_OVER)))


def _target(text: str | UnsetType) -> Target | None:
    if not text:
        return None
    runs, over, ball = numbers(_TARGET, text, "tg")
    return Target(runs=runs, overs=Overs(over, ball))


def _batters(state: State) -> tuple[Batter, ...]:
    pairs = zip(state.p.split("."), (state.q, state.s), strict=False)
    return tuple(_batter(key, text) for key, text in pairs if key and text)


def _batter(key: str, text: str) -> Batter:
    runs, balls, *_ = _dotted(text.rstrip("*"), 2, "q")
    return Batter(key=key, runs=runs, balls=balls, on_strike=text.endswith("*"))


def _bowler(state: State) -> Bowler | None:
    if not (state.b and state.c):
        return None
    runs, balls, wickets, *_ = _dotted(state.c, 3, "c")
    return Bowler(key=state.b, runs=runs, balls=balls, wickets=wickets)


def _dotted(text: str, least: int, field: str) -> list[int]:
    parts = text.split(".")
    if len(parts) < least or not all(_COUNT.fullmatch(part) for part in parts):
        raise LayoutChanged(f"field {field!r} reads {text[:40]!r}")
    return [int(part) for part in parts]


def numbers(pattern: re.Pattern[str], text: str, field: str) -> list[int]:
    found = pattern.fullmatch(text)
    if found is None:
        raise LayoutChanged(f"field {field!r} reads {text[:40]!r}")
    return [int(group) for group in found.groups()]


# --- what is said of the moment --------------------------------------------------------------------------------------

#: A code while the ball is live (`4`, `wd`, `w`, `o`, `^2` = caught, not two runs), else a text.
_CODE = re.compile(r"\^?\d{0,2}(wd|nb\d?|lb|b|p|w|o|B|e|bc|u|no|ba|cd|f|fh|ruka)?(\+.*)?")
_INNINGS_OVER = re.compile(r"^(innings break|super over)\b", re.IGNORECASE)


def masked(state: State) -> State:
    """Return the state without the code of the last event: it changes several times a ball, and all codes mean play."""
    return msgspec.structs.replace(state, B="B") if state.B and is_code(state.B) else state


class Moment(NamedTuple):
    """Where a match stands, by what is said of it."""

    status: MatchStatus
    #: The site's own words; empty while there is a code, or nothing.
    headline: str
    result: Result | None
    is_innings_over: bool


def is_code(said: str) -> bool:
    """Return whether this is no text for people; nothing at all is none either."""
    return _CODE.fullmatch(said) is not None


def moment(said: str, first: InningsScore | None) -> Moment:
    """Return what the site's word for the last event means, beside the score of the first innings."""
    headline = "" if is_code(said) else said.strip()
    result = result_in(headline) if headline else None
    is_over = result is not None or _INNINGS_OVER.search(headline) is not None
    return Moment(_status(said, headline, first, result), headline, result, is_over)


def _status(said: str, headline: str, first: InningsScore | None, result: Result | None) -> MatchStatus:
    if result is not None:
        return MatchStatus.COMPLETED
    if headline:
        return MatchStatus.BREAK
    if not said and (first is None or first.is_blank):
        return MatchStatus.UPCOMING
    return MatchStatus.LIVE
