"""The site: which path answers what."""

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.world import World
from longstop_lab.simulator.http import Request, Response, failure, to_json
from longstop_lab.simulator.pages.crex_page import LISTING, key_of, listing_page, match_page
from longstop_lab.simulator.pages.decoration import asset
from longstop_lab.simulator.sites.crex.feed import BallFeed
from longstop_lab.simulator.sites.crex.scorecard import scorecard
from longstop_lab.simulator.sites.crex.state import list_entry, live_state

_NOT_VALID = "Not a valid Request"
_BROKEN_PAYLOAD = "Request Payload Error!"
_HTML = "text/html; charset=utf-8"


class _FeedAsk(Struct, frozen=True):
    matchKey: str = ""  # noqa: N815, the site's own spelling
    lastDocId: int | Annotated[str, Meta(pattern="^[0-9]{1,18}$")] | None = None  # noqa: N815


class _NamesAsk(Struct, frozen=True):
    p: list[str] = []
    t: list[str] = []


class CrexSite:
    """Answers requests from what the world shows now."""

    def __init__(self, world: World, *, poll_seconds: float = 4.0) -> None:
        self._world = world
        self._poll_seconds = poll_seconds
        self._feeds: dict[str, BallFeed] = {}
        self._entries: dict[str, tuple[tuple[int, int], msgspec.Raw]] = {}
        self._routes: dict[tuple[str, str], Callable[[Request], Response]] = {
            ("GET", "/api/v3/getLiveMatches"): self._live_matches,
            ("GET", "/api/v3/getSV3"): self._live_state,
            ("GET", "/api/v3/getSC4"): self._scorecard,
            ("POST", "/commentary/v1/getBallFeeds"): self._ball_feed,
            ("POST", "/mapping/getHomeMapData"): self._names,
            ("GET", LISTING): self._listing,
        }

    def answer(self, request: Request) -> Response:
        route = self._routes.get((request.method, request.path))
        if route:
            return route(request)
        return self._page(request) or asset(request) or failure(404, _NOT_VALID)

    def _page(self, request: Request) -> Response | None:
        board = self._world.boards.get(key_of(request.path) or "")
        if board is None or request.method != "GET":
            return None
        return Response(body=match_page(board.game, self._poll_seconds), content_type=_HTML)

    def _listing(self, _request: Request) -> Response:
        return Response(body=listing_page(self._world.boards.values()), content_type=_HTML)

    def _live_matches(self, _request: Request) -> Response:
        return to_json({key: self._entry(key, board) for key, board in self._world.boards.items()})

    def _entry(self, key: str, board: Board) -> msgspec.Raw:
        """Return a match's entry, rendered again only after a change: the listing may have a thousand matches."""
        version = (board.version, self._world.tick)
        kept = self._entries.get(key)
        if kept is None or kept[0] != version:
            entry = list_entry(board, self._world.start_at(key), self._world.tick)
            kept = self._entries[key] = (version, msgspec.Raw(msgspec.json.encode(entry)))
        return kept[1]

    def _live_state(self, request: Request) -> Response:
        key = request.query.get("key", "")
        board = self._world.boards.get(key)
        if board is None:
            return failure(404, _NOT_VALID)
        return to_json(live_state(board, self._world.start_at(key), self._world.tick))

    def _scorecard(self, request: Request) -> Response:
        board = self._world.boards.get(request.query.get("key", ""))
        return to_json(scorecard(board)) if board else failure(404, _NOT_VALID)

    def _ball_feed(self, request: Request) -> Response:
        try:
            ask = msgspec.json.decode(request.body, type=_FeedAsk)
        except msgspec.MsgspecError:
            return failure(400, _BROKEN_PAYLOAD)
        if not ask.matchKey:
            return failure(400, "matchKey missing from request")
        board = self._world.boards.get(ask.matchKey)
        if board is None:
            return failure(404, _NOT_VALID)
        feed = self._feeds.get(ask.matchKey) or self._feeds.setdefault(ask.matchKey, BallFeed(board))
        return to_json(feed.page(None if ask.lastDocId is None else int(ask.lastDocId)))

    def _names(self, request: Request) -> Response:
        try:
            ask = msgspec.json.decode(request.body, type=_NamesAsk)
        except msgspec.MsgspecError:
            return failure(400, _BROKEN_PAYLOAD)
        return to_json({"p": _resolved(ask.p, self._world.player_name), "t": _resolved(ask.t, self._world.team_name)})


def _resolved(keys: Iterable[str], name_of: Callable[[str], str | None]) -> list[dict[str, str]]:
    """Return the names that are known; a key without one is left out."""
    return [{"f_key": key, "n": name} for key in keys if (name := name_of(key)) is not None]
