"""Hostile bodies of crex and sofascore: in the site's own shape, below the limit of a body, and beyond any real match.

They are cheap to send: what is large is rendered once. One process serves all sites, and the others must stay quick.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.http import Request

HOSTILE_BODIES = frozenset(
    {
        FaultKind.HUGE_PAGE,
        FaultKind.MANY_BALLS,
        FaultKind.MANY_MATCHES,
        FaultKind.HUGE_NAME,
        FaultKind.CONTROL_CHARACTERS,
    }
)

#: The largest body: just below the default of FETCH_MAX_BODY_BYTES.
_BYTES = 4_900_000
_NAME = "N" * 4_000_001
_MANY = 50_000
_INNINGS = 9_999
#: C0, ANSI sequences that paint, rename the window and clear the screen, DEL, C1, and characters that turn the text.
_CONTROL = "\x00\x07\b\r\n\x1b[31m\x1b]0;title\x07\x1b[2J\x7f\x85\x9b2J\u200f\u2028\u202e\u2066\ufeff"

_FEED = "/commentary/v1/getBallFeeds"
_NAMES = "/mapping/getHomeMapData"
_CREX_LIST = "/api/v3/getLiveMatches"
_LIVE_LIST = "/api/v1/sport/football/events/live"
_INCIDENTS = "/incidents"
#: The fields that a reader shows as they are. Codes, keys and numbers are not among them.
_CREX_TEXTS = frozenset({"n", "c1", "c2", "player", "bowler", "p1", "p2", "team"})
_SOFASCORE_TEXTS = frozenset({"name", "shortName", "playerName", "description", "reason", "slug"})

#: Ids of pages: page number and place on the page, so that each page continues before the last one.
_FIRST_PAGE, _PLACES = 800_000, 100_000
_PAGE_MARK = b"%PAGE%"


def hostile_crex(fault: Fault, request: Request, body: bytes) -> bytes:
    """Return a body of crex with the fault applied; other bodies are returned unchanged."""
    match fault.kind:
        case FaultKind.HUGE_PAGE if request.path == _FEED:
            return _endless_page(request)
        case FaultKind.HUGE_PAGE:
            return _padded(body)
        case FaultKind.MANY_BALLS if request.path == _FEED:
            return b"[]" if _before(request) else _many_balls()
        case FaultKind.MANY_MATCHES if request.path == _CREX_LIST:
            return body[:-1] + (b"," if len(body) > len(b"{}") else b"") + _many_cricket_matches() + b"}"
        case FaultKind.HUGE_NAME if request.path == _NAMES:
            return msgspec.json.encode(_with_huge_name(msgspec.json.decode(body), frozenset({"n"})))
        case FaultKind.CONTROL_CHARACTERS:
            return msgspec.json.encode(_with_control(msgspec.json.decode(body), _CREX_TEXTS))
    return body


def hostile_sofascore(fault: Fault, request: Request, body: bytes) -> bytes:
    """Return a body of sofascore with the fault applied; other bodies are returned unchanged."""
    match fault.kind:
        case FaultKind.HUGE_PAGE:
            return _padded(body)
        case FaultKind.MANY_BALLS if request.path.endswith(_INCIDENTS):
            return b'{"incidents":[' + _many_incidents() + b"]}"
        case FaultKind.MANY_MATCHES if request.path == _LIVE_LIST:
            listed = msgspec.json.decode(body, type=dict[str, list[msgspec.Raw]])["events"]
            return msgspec.json.encode({"events": [*listed, *_many_football_matches(_BYTES - len(body))]})
        case FaultKind.HUGE_NAME:
            return msgspec.json.encode(_with_huge_name(msgspec.json.decode(body), frozenset({"name"})))
        case FaultKind.CONTROL_CHARACTERS:
            return msgspec.json.encode(_with_control(msgspec.json.decode(body), _SOFASCORE_TEXTS))
    return body


def _padded(body: bytes) -> bytes:
    """Return the body with one more field in its first object, which no reader knows."""
    before, brace, after = body.partition(b"{")
    if not brace:
        return body
    comma = b"" if after.startswith(b"}") else b","
    return b"".join((before, brace, b'"padding":"', b"x" * (_BYTES - len(body)), b'"', comma, after))


# --- crex -------------------------------------------------------------------------------------------------------------


def _before(request: Request) -> int:
    """Return the id that a page of the event list ends before; 0 for the newest page."""
    try:
        return int(msgspec.json.decode(request.body, type=_FeedAsk).lastDocId or 0)
    except (msgspec.MsgspecError, ValueError):
        return 0


class _FeedAsk(msgspec.Struct):
    lastDocId: int | str | None = None  # noqa: N815, the site's own spelling


def _endless_page(request: Request) -> bytes:
    """Return a page whose ids continue before those of the last one; there are hundreds of thousands."""
    before = _before(request)
    page = max(1, before // _PLACES - 1) if before else _FIRST_PAGE
    return _page_template().replace(_PAGE_MARK, b"%06d" % page)


@cache
def _page_template() -> bytes:
    balls = (
        _ball(f"{_PAGE_MARK.decode()}{nth:05d}", innings=0, over=nth // 6 % 999, ball=nth % 6 + 1) for nth in _down()
    )
    return _joined(balls, _BYTES)


def _down() -> range:
    return range(_PLACES - 1, -1, -1)


@cache
def _many_balls() -> bytes:
    first = _FIRST_PAGE * _PLACES
    balls = (
        _ball(str(first + nth), innings=nth % _INNINGS, over=0, ball=nth % 6 + 1) for nth in range(_MANY - 1, -1, -1)
    )
    return b"[" + ",".join(balls).encode() + b"]"


def _joined(items: Any, most: int) -> bytes:
    """Return a JSON list of as many items as fit."""
    kept, size = [], 2
    for item in items:
        size += len(item) + 1
        if size > most:
            break
        kept.append(item)
    return b"[" + ",".join(kept).encode() + b"]"


def _ball(id_: str, *, innings: int, over: int, ball: int) -> str:
    # Without the fields that no reader needs: 50,000 balls must fit into one body.
    place = f'"inning":{innings},"on":{over},"o":"{over}.{ball}"'
    return f'{{"type":"b","id":{id_},{place},"b":"1","fv":2,"bf":"A","pf":"B"}}'


@cache
def _many_cricket_matches() -> bytes:
    entry = '{"a":"A.B","B":"1","j":"1/0(0.1","k":"0/0(0.0"}'
    return ",".join(f'"Z{nth:05d}":{entry}' for nth in range(_MANY)).encode()


# --- sofascore --------------------------------------------------------------------------------------------------------


@cache
def _many_incidents() -> bytes:
    shown = '"incidentType":"card","isHome":true,"incidentClass":"yellow"'
    return ",".join(f'{{{shown},"id":{9_000_000 + nth},"time":{nth % 90 + 1}}}' for nth in range(_MANY)).encode()


@cache
def _every_football_match() -> tuple[msgspec.Raw, ...]:
    rest = (
        '"status":{"code":6,"type":"inprogress"},"homeTeam":{"id":1,"name":"A"},"awayTeam":{"id":2,"name":"B"},'
        '"homeScore":{},"awayScore":{},"startTimestamp":0'
    )
    return tuple(msgspec.Raw(f'{{"id":{900_000_000 + nth},{rest}}}'.encode()) for nth in range(_MANY))


def _many_football_matches(most: int) -> tuple[msgspec.Raw, ...]:
    """Return as many matches as fit into this many bytes: each takes more than one of crex."""
    every = _every_football_match()
    return every[: most // (len(bytes(every[0])) + 1)]


# --- both -------------------------------------------------------------------------------------------------------------


def _with_huge_name(body: Any, names: frozenset[str]) -> Any:
    """Return the body with the first of its names replaced; a second one would not fit."""
    is_replaced = False

    def changed(value: Any) -> Any:
        nonlocal is_replaced
        if isinstance(value, list):
            return [changed(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        result = {}
        for name, each in value.items():
            if name in names and not is_replaced and _is_of_team_or_player(value):
                is_replaced, each = True, _NAME
            result[name] = changed(each)
        return result

    return changed(body)


def _is_of_team_or_player(value: Mapping[str, Any]) -> bool:
    return "f_key" in value or "nameCode" in value or "position" in value


def _with_control(value: Any, texts: frozenset[str]) -> Any:
    """Return the body with control characters around and inside every text."""
    if isinstance(value, list):
        return [_with_control(each, texts) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _spoilt(each) if name in texts and isinstance(each, str) and each else _with_control(each, texts)
        for name, each in value.items()
    }


def _spoilt(text: str) -> str:
    half = len(text) // 2
    return f"{_CONTROL}{text[:half]}{_CONTROL}{text[half:]}{_CONTROL}"
