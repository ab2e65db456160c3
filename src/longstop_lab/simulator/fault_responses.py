"""Responses under a fault: error statuses, HTML pages, old copies, wrong bodies."""

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.faults import Fault, FaultKind, FaultRule
from longstop_lab.simulator.football.world import FootballWorld
from longstop_lab.simulator.hostile_bodies import HOSTILE_BODIES, hostile_crex, hostile_sofascore
from longstop_lab.simulator.http import Request, Response, failure
from longstop_lab.simulator.pages.hostile import PAGE_FAULTS, break_page
from longstop_lab.simulator.sites.crex.faults import TeamKeys, corrupt
from longstop_lab.simulator.sites.espncricinfo.faults import corrupt_page
from longstop_lab.simulator.sites.sofascore.faults import corrupt as corrupt_football
from longstop_lab.simulator.timeline import Timeline

_JSON = "application/json"
_HTML = "text/html; charset=utf-8"
_PAGE = b"<!doctype html><html><head><title>Scores</title></head><body>Back in a moment.</body></html>"
_CHALLENGE = (
    b"<!doctype html><html><head><title>One moment</title></head><body><h1>Checking your browser</h1>"
    b'<form id="challenge-form" action="/challenge" method="post"><div class="captcha" data-sitekey="simulated"></div>'
    b"<p>Please confirm that you are a person.</p></form></body></html>"
)
_BOMB_CHUNK_BYTES = 1_000_000
_BOMB_CHUNKS = 200
#: Old copies are cached for this many rules; others are rebuilt on request.
_KEPT = 4

Key = TypeVar("Key")
Value = TypeVar("Value")
WorldT = TypeVar("WorldT", bound=Timeline[Any, Any])
_Asked = tuple[str, str, tuple[tuple[str, str], ...], bytes]


class Site(Protocol):
    """Responds to requests from the state of a world."""

    def answer(self, request: Request) -> Response: ...


class FaultInjector(Generic[WorldT]):
    """A site that answers well, or as badly as a rule says."""

    def __init__(self, world: WorldT, make_site: Callable[[WorldT], Site]) -> None:
        self._world = world
        self._make_site = make_site
        self._site = make_site(world)
        self._older: dict[float, tuple[WorldT, Site]] = {}
        self._frozen: dict[int, dict[_Asked, Response]] = {}

    def answer(self, request: Request, rule: FaultRule | None = None) -> Response:
        match rule:
            case None:
                return self._site.answer(request)
            case FaultRule(fault=Fault(kind=FaultKind.STATUS) as fault):
                return _refusal(fault)
            case FaultRule(fault=Fault(kind=FaultKind.HTML)):
                return Response(body=_PAGE, content_type=_HTML)
            case FaultRule(fault=Fault(kind=FaultKind.CHALLENGE)):
                return Response(body=_CHALLENGE, content_type=_HTML)
            case FaultRule(fault=Fault(kind=FaultKind.BOMB)):
                return Response(body=_bomb(), headers={"Content-Encoding": "gzip"})
            case FaultRule(fault=Fault(kind=FaultKind.MOVED)):
                return self._site.answer(replace(request, path=f"{request.path}/moved"))
            case FaultRule(fault=Fault(kind=FaultKind.OLDER) as fault):
                return self._older_site(fault.seconds).answer(request)
            case FaultRule(fault=Fault(kind=FaultKind.FROZEN)):
                return self._frozen_answer(rule.id, request)
            case FaultRule(fault=Fault(kind=FaultKind.OTHER_MATCH)):
                return self._site.answer(self._about_another(request))
        return self._untrue(rule.fault, request)

    def _older_site(self, seconds: float) -> Site:
        world, site = _kept(self._older, seconds, self._twin)
        world.advance_to(self._world.seconds - seconds)
        return site

    def _twin(self) -> tuple[WorldT, Site]:
        twin = self._world.twin()
        return twin, self._make_site(twin)

    def _frozen_answer(self, rule_id: int, request: Request) -> Response:
        answers = _kept(self._frozen, rule_id, dict[_Asked, Response])
        asked = (request.method, request.path, tuple(sorted(request.query.items())), request.body)
        if asked not in answers:
            answers[asked] = self._site.answer(request)
        return answers[asked]

    def _untrue(self, fault: Fault, request: Request) -> Response:
        good = self._site.answer(request)
        if fault.kind in PAGE_FAULTS:
            is_page = good.content_type == _HTML and good.status == 200
            return replace(good, body=break_page(fault, good.body)) if is_page else good
        if good.status == 200 and good.content_type == _HTML:
            return replace(good, body=corrupt_page(fault, good.body))
        if good.status != 200 or not good.content_type.startswith(_JSON):
            return good
        if fault.kind in HOSTILE_BODIES:
            hostile = hostile_sofascore if isinstance(self._world, FootballWorld) else hostile_crex
            return replace(good, body=hostile(fault, request, good.body))
        if isinstance(self._world, FootballWorld):
            return replace(good, body=corrupt_football(fault, request, good.body))
        return replace(good, body=corrupt(fault, request, good.body, self._teams(request)))

    def _about_another(self, request: Request) -> Request:
        """Return the request as it would read about the match that follows in the world's order."""
        keys = list(self._world.boards)
        if request.match_key not in keys or len(keys) == 1:
            return request
        return request.about(keys[(keys.index(request.match_key) + 1) % len(keys)])

    def _teams(self, request: Request) -> TeamKeys | None:
        board = self._world.boards.get(request.match_key or "")
        if not isinstance(board, Board):
            return None
        one, two = board.game.sides
        return one.key, two.key


def _kept(kept: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    """Return what is kept under a key, made when it is not there; of too many, the first one goes."""
    if key not in kept:
        if len(kept) >= _KEPT:
            del kept[next(iter(kept))]
        kept[key] = make()
    return kept[key]


def _refusal(fault: Fault) -> Response:
    refused = failure(fault.status, "Request refused")
    if fault.retry_after_seconds is None:
        return refused
    return replace(refused, headers={"Retry-After": str(fault.retry_after_seconds)})


@cache
def _bomb() -> bytes:
    packer = zlib.compressobj(level=9, wbits=31)
    chunk = b" " * _BOMB_CHUNK_BYTES
    return b"".join(packer.compress(chunk) for _ in range(_BOMB_CHUNKS)) + packer.flush()
