"""The data routes: a match with its age, the list, the events after a sequence number."""

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from longstop.api import described, shapes
from longstop.api.auth import Permission, TokenVerifier
from longstop.api.guard import json_response
from longstop.api.view import MatchView, from_hot, from_store
from longstop.clock import Clock
from longstop.errors import UsageError
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.storage.base import HotReader, MatchFilter, MatchReader, MatchRow

#: What fits SQLite's integers, written without leading zeros.
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_MAX_INTEGER = 2**63 - 1
_REVALIDATE = {"Cache-Control": "no-cache"}

_bearer_scheme = HTTPBearer(auto_error=False, description="A token from `longstop token`.")
Scheme = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer_scheme)]
After = Annotated[int, Query(ge=0, le=_MAX_INTEGER)]


class HotRoute(APIRoute):
    """A route whose endpoint takes the request and gives the response itself.

    FastAPI's argument handling costs more than the whole read; what it would have documented is in `described`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


class MatchRoutes:
    """Answers from the readers it was given.

    The reads run on the loop: each takes well under a millisecond and never waits for a writer, while a hop to a
    thread and back costs more than the read.
    """

    def __init__(self, *, reader: MatchReader, hot: HotReader, verifier: TokenVerifier, clock: Clock) -> None:
        self._reader = reader
        self._hot = hot
        self._verifier = verifier
        self._clock = clock

    def add_to(self, app: FastAPI) -> None:
        permitted = [Depends(self.permit)]
        app.router.add_api_route(
            "/cricket-data/match-info/{match_id}",
            self.match_info,
            route_class_override=HotRoute,
            **described.MATCH_INFO,
        )
        app.router.add_api_route(
            "/cricket-data/match-info/{match_id}/events", self.events, dependencies=permitted, **described.EVENTS
        )
        app.router.add_api_route("/cricket-data/matches", self.matches, dependencies=permitted, **described.MATCHES)

    async def permit(self, request: Request, _documented: Scheme) -> None:
        self._require(Permission.READ, request)

    async def match_info(self, request: Request) -> Response:
        self._require(Permission.READ, request)
        match = self._find(request.path_params["match_id"])
        view = self._view(match)
        if view is None:
            raise HTTPException(404, f"Match {match.ref} was discovered and has not been read yet.")
        now = self._clock.now()
        headers = shapes.age_headers(view, now) | _REVALIDATE | {"ETag": f'"{view.checksum}"'}
        if is_known(request.headers.getlist("if-none-match"), view.checksum):
            return Response(status_code=304, headers=headers)
        about = shapes.metadata(view, self._open_findings(match), now)
        return Response(shapes.splice_metadata(view.payload, about), 200, headers, "application/json")

    async def matches(
        self,
        status: MatchStatus | None = None,
        phase: Phase | None = None,
        source: Annotated[str | None, Query(pattern=r"^[a-z][a-z0-9]{0,31}$")] = None,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> Response:
        wanted = MatchFilter(status=status, phase=phase, source=source, after_id=after, limit=limit + 1)
        found = self._reader.matches(wanted)
        page, more = found[:limit], len(found) > limit
        now = self._clock.now()
        rows = [(match, self._hot.row(match.match_id)) for match in page]
        entries = [shapes.match_entry(match, row.record if row else None, now) for match, row in rows]
        next_after = page[-1].match_id if more else None
        return json_response({"matches": entries, "next_after": next_after}, headers=_REVALIDATE)

    async def events(
        self,
        match_id: str,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 500,
        current: bool = False,
    ) -> Response:
        match = self._find(match_id)
        page = self._current(match) if current else self._page(match, after, limit)
        headers = shapes.age_headers(self._view(match), self._clock.now()) | _REVALIDATE
        return json_response(page, headers=headers)

    def _current(self, match: MatchRow) -> dict[str, Any]:
        """Return all live events; going on from their `next_after` misses nothing and repeats nothing."""
        events = self._reader.current_events(match.match_id)
        last = max((stored.seq for stored in events), default=0)
        return shapes.events_page(match, shapes.in_order_of_play(events), last, has_more=False)

    def _page(self, match: MatchRow, after: int, limit: int) -> dict[str, Any]:
        found = self._reader.events_after(match.match_id, after, limit + 1)
        page = found[:limit]
        return shapes.events_page(match, page, page[-1].seq if page else after, has_more=len(found) > limit)

    def _require(self, permission: Permission, request: Request) -> None:
        bearer = self._verifier.verify(request.headers.get("authorization"), self._clock.now())
        if bearer is None:
            raise HTTPException(401, "A valid Bearer token is needed here.", {"WWW-Authenticate": "Bearer"})
        if permission not in bearer.permissions:
            raise HTTPException(403, f"This token does not carry the permission {permission}.")

    def _find(self, text: str) -> MatchRow:
        match = self._look_up(text)
        if match is None:
            raise HTTPException(404, f"No match {text} is known.")
        return match

    def _look_up(self, text: str) -> MatchRow | None:
        if _NUMBER.fullmatch(text):
            return self._reader.match(int(text))
        try:
            return self._reader.find(MatchRef.parse(text))
        except UsageError as error:
            raise HTTPException(400, str(error)) from error

    def _view(self, match: MatchRow) -> MatchView | None:
        row = self._hot.row(match.match_id)
        live = from_hot(match, row) if row else None
        if live is not None:
            return live
        snapshots = self._reader.snapshots(match.match_id)
        return from_store(match, snapshots[0], row.record if row else None) if snapshots else None

    def _open_findings(self, match: MatchRow) -> int:
        return sum(stored.closed_at is None for stored in self._reader.findings(match.match_id))


def is_known(if_none_match: list[str], checksum: str) -> bool:
    """Return whether the client already holds this payload; a weak tag is as good as a strong one here."""
    tags = (tag.strip().removeprefix("W/") for header in if_none_match for tag in header.split(","))
    return any(tag in ("*", f'"{checksum}"') for tag in tags)
