"""The site: which path answers what, for how long it may be kept, and under which tag."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.world import FootballWorld
from longstop_lab.simulator.http import Request, Response
from longstop_lab.simulator.pages.decoration import asset
from longstop_lab.simulator.sites.sofascore.event import list_event, single_event
from longstop_lab.simulator.sites.sofascore.incidents import incidents
from longstop_lab.simulator.sites.sofascore.lineups import lineups
from longstop_lab.simulator.sites.sofascore.page import event_page, live_page
from longstop_lab.simulator.sites.sofascore.statistics import statistics
from longstop_lab.simulator.sites.sofascore.statuses import LISTED, has_begun

SITE = "sofascore"
LIST = "/api/v1/sport/football/events/live"

_LIST_KEPT = "max-age=5, public, s-maxage=5, stale-while-revalidate=60"
_HTML = "text/html; charset=utf-8"
_CALL = re.compile(r"/api/v1/event/(\d{1,12})(?:/(incidents|lineups|statistics))?")
_PAGE = re.compile(r"/event/[a-z0-9-]+/(\d{1,12})")
_NOT_FOUND = {"error": {"code": 404, "message": "Not Found"}}

_Body = dict[str, Any]


class SofascoreSite:
    """Answers requests from what the world shows now."""

    def __init__(self, world: FootballWorld, *, poll_seconds: float = 4.0) -> None:
        self._world = world
        self._poll_seconds = poll_seconds
        self._entries: dict[str, tuple[tuple[int, int], msgspec.Raw]] = {}
        self._calls: dict[str | None, tuple[Callable[[str], _Body | None], int]] = {
            None: (self._event, 172_800),
            "incidents": (self._incidents, 172_800),
            "lineups": (self._lineups, 3600),
            "statistics": (self._statistics, 172_800),
        }

    def answer(self, request: Request) -> Response:
        if request.method != "GET":
            return asset(request) or _not_found()
        if request.path == LIST:
            return _tagged(request, {"events": self._live()}, _LIST_KEPT)
        if call := _CALL.fullmatch(request.path):
            return self._call(request, call[1], call[2])
        if request.path == "/football/live":
            return Response(body=live_page(self._world), content_type=_HTML)
        page = _PAGE.fullmatch(request.path)
        if page and page[1] in self._world.boards:
            match = self._world.boards[page[1]].match
            return Response(body=event_page(match, self._poll_seconds), content_type=_HTML)
        return asset(request) or _not_found()

    def _call(self, request: Request, key: str, part: str | None) -> Response:
        render, kept_seconds = self._calls[part]
        body = render(key) if key in self._world.boards else None
        return _not_found() if body is None else _tagged(request, body, f"max-age=10, public, s-maxage={kept_seconds}")

    def _live(self) -> list[msgspec.Raw]:
        return [self._entry(key, board) for key, board in self._world.boards.items() if board.status in LISTED]

    def _entry(self, key: str, board: FootballBoard) -> msgspec.Raw:
        """Return a match's entry, rendered again only after a change."""
        version = (board.version, self._world.tick)
        kept = self._entries.get(key)
        if kept is None or kept[0] != version:
            kept = self._entries[key] = (version, msgspec.Raw(msgspec.json.encode(list_event(self._world, key))))
        return kept[1]

    def _event(self, key: str) -> _Body | None:
        return {"event": single_event(self._world, key)}

    def _incidents(self, key: str) -> _Body | None:
        board = self._world.boards[key]
        return incidents(board) if has_begun(board) else None

    def _lineups(self, key: str) -> _Body | None:
        return lineups(self._world.boards[key], self._world.elapsed(key))

    def _statistics(self, key: str) -> _Body | None:
        return statistics(self._world.boards[key], self._world.elapsed(key))


def _tagged(request: Request, body: _Body, kept: str) -> Response:
    encoded = msgspec.json.encode(body)
    tag = f'W/"{sha256(encoded).hexdigest()[:10]}"'
    headers = {"ETag": tag, "Cache-Control": kept}
    if request.headers.get("if-none-match") == tag:
        return Response(status=304, headers=headers)
    return Response(body=encoded, content_type="application/json", headers=headers)


def _not_found() -> Response:
    headers = {"Cache-Control": "public, max-age=3600"}
    return Response(status=404, body=msgspec.json.encode(_NOT_FOUND), content_type="application/json", headers=headers)
