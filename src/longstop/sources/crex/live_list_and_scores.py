"""Parses crex's live list, the compact live state of a match, and its scorecard."""

import re
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.errors import LayoutChanged
from longstop.model.match import SOURCE_ID, MatchStatus
from longstop.model.source_queries_and_answers import Listing
from longstop.sources.bodies_and_urls import decode, read_listing
from longstop.sports.cricket.model import (
    BALLS_PER_OVER,
    Batter,
    Board,
    Bowler,
    InningsScore,
    Overs,
    Result,
    RunTarget,
    Scorecard,
    ScorecardInnings,
    ends_innings,
    result_in,
)

Milliseconds = Annotated[int, Meta(ge=0, le=4_102_444_800_000)]

#: The site never closes the parenthesis; a closed one is accepted too.
_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})\((\d{1,3})\.(\d)\)?", re.ASCII)
_CARD_SCORE = re.compile(r"(\d{1,4})/(\d{1,2})\((\d{1,4})\)?", re.ASCII)
_TARGET = re.compile(r"(\d{1,4})\((\d{1,3})\.(\d)\)?", re.ASCII)
_COUNT = re.compile(r"\d{1,4}", re.ASCII)


class RecentOver(Struct, frozen=True):
    """One of the last overs: the batting side, and the innings from 0."""

    bt: str = ""
    i: int = 0


class State(Struct, frozen=True):
    """The fields of a live state, or of a list entry, that are used. Other keys are odds, forecasts and decoration."""

    #: Keys of the two sides in the order of the fixture, which does not say who bats.
    a: str
    B: str
    j: str
    k: str = ""
    fo: str | UnsetType = UNSET
    #: The start; some bodies have the format here.
    mt: Milliseconds | Annotated[str, Meta(max_length=20)] | UnsetType = UNSET
    #: The last overs, oldest first; empty outside of play.
    rb: list[RecentOver] | str | None = None
    tg: str | UnsetType = UNSET
    p: str = ""
    q: str = ""
    s: str = ""
    b: str = ""
    c: str = ""


class _CardInnings(Struct, frozen=True):
    c: str
    d: str


def read_live_list(body: bytes) -> Listing:
    return read_listing(((key, bytes(raw)) for key, raw in decode(body, dict[str, msgspec.Raw]).items()), _read_entry)


def _read_entry(key: str, entry: bytes) -> Board:
    if not SOURCE_ID.fullmatch(key):
        raise LayoutChanged(f"{key[:80]!r} is not a match key")
    return to_board(key, decode(entry, State))


def read_scorecard(body: bytes) -> Scorecard:
    innings = [
        ScorecardInnings(number=number, team=item.c, score=_card_score(item.d))
        for number, item in enumerate(decode(body, list[_CardInnings]), start=1)
    ]
    return Scorecard(innings=tuple(innings))


def to_board(source_id: str, state: State) -> Board:
    first, second = _innings_score("j", state.j), _innings_score("k", state.k)
    # The site fills an innings that has not started with zeros.
    if second is not None and second.is_blank:
        second = None
    batting, bowling, is_batting_known = _sides(state, is_second=second is not None)
    phase = read_phase(state.B, first)
    return Board(
        source_id=source_id,
        status=phase.status,
        headline=phase.headline,
        batting=batting,
        bowling=bowling,
        is_batting_known=is_batting_known,
        first=first,
        second=second,
        result=phase.result,
        is_innings_over=phase.is_innings_over,
        target=_target(state.tg),
        match_format=state.fo or (state.mt if isinstance(state.mt, str) else None) or None,
        start_at=datetime.fromtimestamp(state.mt / 1000, UTC) if isinstance(state.mt, int) and state.mt else None,
        batters=_batters(state),
        bowler=_bowler(state),
        # Odds and forecasts change constantly; only scores, sides and texts count.
        fingerprint="|".join((state.a, phase.headline, state.j, state.k, str(state.mt), str(state.tg))),
    )


def _sides(state: State, *, is_second: bool) -> tuple[str, str, bool]:
    """Return the batting side, the other one, and whether play shows which is which."""
    one, _, two = state.a.partition(".")
    last = state.rb[-1] if state.rb and isinstance(state.rb, list) else RecentOver()
    # At the start of an innings, the last overs may still be of the innings before.
    bats = last.bt if last.i % 2 == is_second else ""
    return (two, one, True) if bats and bats == two else (one, two, bool(bats) and bats == one)


def _innings_score(field: str, text: str) -> InningsScore | None:
    if not text:
        return None
    runs, wickets, over, ball = numbers(_SCORE, text, field)
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(over, ball))


def _card_score(text: str) -> InningsScore:
    """Parse a scorecard's score: it counts balls, the live state counts overs."""
    runs, wickets, balls = numbers(_CARD_SCORE, text, "d")
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(*divmod(balls, BALLS_PER_OVER)))


def _target(text: str | UnsetType) -> RunTarget | None:
    if not text:
        return None
    runs, over, ball = numbers(_TARGET, text, "tg")
    return RunTarget(runs=runs, overs=Overs(over, ball))


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


def _dotted(text: str, min_parts: int, field: str) -> list[int]:
    parts = text.split(".")
    if len(parts) < min_parts or not all(_COUNT.fullmatch(part) for part in parts):
        raise LayoutChanged(f"cannot parse field {field!r}: {text[:40]!r}")
    return [int(part) for part in parts]


def numbers(pattern: re.Pattern[str], text: str, field: str) -> list[int]:
    found = pattern.fullmatch(text)
    if found is None:
        raise LayoutChanged(f"cannot parse field {field!r}: {text[:40]!r}")
    return [int(group) for group in found.groups()]


# --- the phase of play: field B --------------------------------------------------------------------------------------

#: During play a code of the last event (`4`, `wd`, `w`, `o`, `^2` = caught, not two runs), else a text.
_CODE = re.compile(r"\^?\d{0,2}(wd|nb\d?|lb\d?|b\d?|p|w|o|B|e|bc|u|no|ba|cd|f|fh|ruka)?(\+.*)?")


def masked(state: State) -> State:
    """Return the state without the code of the last event: every code means play."""
    return msgspec.structs.replace(state, B="B") if state.B and is_code(state.B) else state


class PlayPhase(NamedTuple):
    """The phase of a match, derived from field `B`."""

    status: MatchStatus
    #: The site's text; empty if the field is a code or empty.
    headline: str
    result: Result | None
    is_innings_over: bool


def is_code(text: str) -> bool:
    """Return whether the text is a code; an empty text counts as one."""
    return _CODE.fullmatch(text) is not None


def read_phase(text: str, first: InningsScore | None) -> PlayPhase:
    """Return the phase for a code or text, given the score of the first innings."""
    headline = "" if is_code(text) else text.strip()
    result = result_in(headline) if headline else None
    return PlayPhase(_status(text, headline, first, result), headline, result, ends_innings(headline, result))


def _status(text: str, headline: str, first: InningsScore | None, result: Result | None) -> MatchStatus:
    if result is not None:
        return MatchStatus.COMPLETED
    if headline:
        return MatchStatus.BREAK
    if not text and (first is None or first.is_blank):
        return MatchStatus.UPCOMING
    return MatchStatus.LIVE
