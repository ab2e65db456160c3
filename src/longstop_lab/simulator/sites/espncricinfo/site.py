"""The simulated espncricinfo: two kinds of page, each with its data in one script."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from longstop.clock import Clock
from longstop_lab.simulator.cricket.world import World
from longstop_lab.simulator.http import Request, Response
from longstop_lab.simulator.sites.espncricinfo.balls import has_commentary, live_summary, recent_balls
from longstop_lab.simulator.sites.espncricinfo.ids import match_number
from longstop_lab.simulator.sites.espncricinfo.innings import all_innings
from longstop_lab.simulator.sites.espncricinfo.match import match_object, stamped
from longstop_lab.simulator.sites.espncricinfo.page import next_page, not_found_page
from longstop_lab.simulator.sites.espncricinfo.players import match_players

LIST = "/live-cricket-score"
_CARD = re.compile(r"/series/[a-z0-9-]+-\d+/[a-z0-9-]+-(\d+)/full-scorecard")
_HTML = "text/html; charset=utf-8"


class EspncricinfoSite:
    """Answers requests from what the world shows now."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._keys = {str(match_number(key)): key for key in world.boards}
        self._matches = _Kept()
        self._contents = _Kept()

    def answer(self, request: Request) -> Response:
        if request.method == "GET" and request.path == LIST:
            return self._listing()
        asked = _CARD.fullmatch(request.path)
        key = self._keys.get(asked[1]) if asked and request.method == "GET" else None
        return Response(status=404, body=not_found_page(), content_type=_HTML) if key is None else self._card(key)

    def _listing(self) -> Response:
        matches = b",".join(self._match(key) for key in self._world.boards)
        data = b'{"content":{"matches":[' + matches + b"]}}"
        page = next_page("Live Cricket Score", "/live-cricket-score/CiLivePage", data)
        return Response(body=page, content_type=_HTML)

    def _card(self, key: str) -> Response:
        content = self._contents.get(key, self._world.boards[key].version, partial(self._content, key))
        inner = b'{"match":' + self._match(key) + b',"content":' + content + b"}"
        data = b'{"sponsoredFeatures":{},"data":' + inner + b"}"
        title = f"{self._world.boards[key].game.title} Scorecard"
        return Response(body=next_page(title, "/match/v2/CiMatchScorecardPage", data), content_type=_HTML)

    def _match(self, key: str) -> bytes:
        board = self._world.boards[key]
        match = self._matches.get(key, board.version, lambda: match_object(board, self._world.start_at(key)))
        # An old copy shows its own time; the clock of a frozen simulator still runs.
        return stamped(match, self._clock.now() if self._world.is_frozen else self._world.now)

    def _content(self, key: str) -> dict[str, Any]:
        board, wall = self._world.boards[key], partial(self._world.moment, key)
        summary = live_summary(board, wall)
        is_super_over = bool(board.begun) and board.game.innings[board.current - 1].is_super_over
        return {
            **({"recentBallCommentary": recent_balls(board, wall)} if has_commentary(board) else {}),
            "matchPlayers": match_players(board.game),
            "innings": all_innings(board, wall, is_super_over=False),
            "superOverInnings": all_innings(board, wall, is_super_over=True),
            "videos": [],
            "supportInfo": {
                "stories": [],
                "liveSummary": None if is_super_over else summary,
                "superOverLiveSummary": summary if is_super_over else None,
                "weather": None,
            },
        }


class _Kept:
    """JSON by match, rendered again only after a change."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, bytes]] = {}

    def get(self, key: str, version: int, render: Callable[[], dict[str, Any]]) -> bytes:
        kept = self._kept.get(key)
        if kept is None or kept[0] != version:
            kept = self._kept[key] = (version, msgspec.json.encode(render()))
        return kept[1]
