"""Parses crex's fixture list (`getFixture`): matches with start times, results and both scores, live or not."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from longstop.errors import LayoutChanged
from longstop.model.match import SOURCE_ID, MatchStatus
from longstop.model.source_queries_and_answers import Listing
from longstop.sources.bodies_and_urls import decode, read_listing
from longstop.sources.crex.live_list_and_scores import Milliseconds, numbers
from longstop.sports.cricket.model import Board, InningsScore, Overs, result_in

_UPCOMING, _LIVE = 0, 1
_SCORE = re.compile(r"(\d{1,4})/(\d{1,2}) (\d{1,3})\.(\d)", re.ASCII)


class _Key(Struct, frozen=True):
    #: Absent while the match has no page.
    mf: str | None = None


class Fixture(_Key, frozen=True, kw_only=True):
    """The fields that are used. `s1` is the score of `t1f`, `s2` that of `t2f`: this is not the order of play."""

    t1f: str = ""
    t2f: str = ""
    t: Milliseconds = 0
    status: Literal[0, 1, 2]
    statusText: str = ""  # noqa: N815 - the site's spelling
    formats: str | None = None
    result: str | None = None
    #: The side that batted first.
    bf: str | None = None
    s1: str | None = None
    o1: str | None = None
    s2: str | None = None
    o2: str | None = None


def read_fixtures(body: bytes) -> Listing:
    return read_listing(_with_keys(body), lambda key, entry: _to_board(key, decode(entry, Fixture)))


def fixtures_content(body: bytes) -> list[Fixture]:
    """Return what is read of a fixture list, for its digest."""
    return [decode(entry, Fixture) for _, entry in _with_keys(body)]


def _with_keys(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the fixtures that have a key; others cannot be requested."""
    for raw in decode(body, list[msgspec.Raw]):
        key = decode(bytes(raw), _Key).mf
        if key:
            yield key, bytes(raw)


def _to_board(key: str, fixture: Fixture) -> Board:
    if not SOURCE_ID.fullmatch(key):
        raise LayoutChanged(f"{key[:80]!r} is not a match key")
    first, second = _scores(fixture)
    result = result_in(fixture.result or "")
    is_plain = fixture.status != _LIVE or fixture.statusText == "Live"
    headline = result.text if result else "" if is_plain else fixture.statusText
    return Board(
        source_id=key,
        status=MatchStatus.COMPLETED if result else _status(fixture, has_begun=first is not None),
        headline=headline,
        batting=fixture.t1f,
        bowling=fixture.t2f,
        is_batting_known=False,
        first=first,
        second=second,
        result=result,
        is_innings_over=result is not None,
        match_format=fixture.formats or None,
        start_at=datetime.fromtimestamp(fixture.t / 1000, UTC) if fixture.t else None,
        fingerprint="|".join((fixture.t1f, fixture.t2f, headline, str(first), str(second), str(fixture.t))),
    )


def _status(fixture: Fixture, *, has_begun: bool) -> MatchStatus:
    if fixture.status == _UPCOMING:
        return MatchStatus.UPCOMING
    if fixture.status == _LIVE and fixture.statusText == "Live":
        return MatchStatus.LIVE
    # "Toss Delayed" is no break of play: nothing has begun.
    return MatchStatus.BREAK if has_begun else MatchStatus.UPCOMING


def _scores(fixture: Fixture) -> tuple[InningsScore | None, InningsScore | None]:
    """Return the scores in the order of play; none if it is not clear who batted first."""
    one, two = _score(fixture.s1, fixture.o1), _score(fixture.s2, fixture.o2)
    if one and two and fixture.bf not in (fixture.t1f, fixture.t2f):
        return None, None
    return (two, one) if one is None or fixture.bf == fixture.t2f else (one, two)


def _score(score: str | None, overs: str | None) -> InningsScore | None:
    if not (score and overs):
        return None
    runs, wickets, over, ball = numbers(_SCORE, f"{score} {overs}", "s1")
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(over, ball))
