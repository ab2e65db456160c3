"""The data routes: a match with its age, the list, the events after a sequence number."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.routing import APIRoute

from longstop.api import described, shapes
from longstop.api.auth import Permission
from longstop.api.guard import json_response
from longstop.api.lookup import REVALIDATE, Lookup, not_read_yet
from longstop.clock import Moment
from longstop.model.match import MatchStatus, Phase
from longstop.storage.base import MatchFilter, MatchRow

#: The largest integer of SQLite.
MAX_INTEGER = 2**63 - 1
After = Annotated[int, Query(ge=0, le=MAX_INTEGER)]


class HotRoute(APIRoute):
    """A route whose endpoint takes the request and gives the response itself.

    FastAPI's argument handling costs more than the whole read; what it would have documented is in `described`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


class MatchRoutes:
    """Answers what a match of one sport is like now, and what happened in it."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def add_to(self, app: FastAPI) -> None:
        permitted = [Depends(self._lookup.permit)]
        data = shapes.data_path(self._lookup.sport)
        match, events = f"{data}/match-info/{{match_id}}", described.events(self._lookup.sport)
        app.router.add_api_route(match, self.match_info, route_class_override=HotRoute, **described.MATCH_INFO)
        app.router.add_api_route(f"{match}/events", self.events, dependencies=permitted, **events)
        app.router.add_api_route(f"{data}/matches", self.matches, dependencies=permitted, **described.MATCHES)

    async def match_info(self, request: Request) -> Response:
        self._lookup.require(Permission.READ, request)
        match = self._lookup.match(request.path_params["match_id"])
        view = self._lookup.view(match)
        if view is None:
            raise not_read_yet(match)
        now = Moment.of(self._lookup.clock)
        headers = shapes.age_headers(view, now) | REVALIDATE | {"ETag": f'"{view.checksum}"'}
        if is_known(request.headers.getlist("if-none-match"), view.checksum):
            return Response(status_code=304, headers=headers)
        about = shapes.metadata(view, self._lookup.open_findings(match), now)
        return Response(shapes.splice_metadata(view.payload, about), 200, headers, "application/json")

    async def matches(
        self,
        status: MatchStatus | None = None,
        phase: Phase | None = None,
        source: Annotated[str | None, Query(pattern=r"^[a-z][a-z0-9]{0,31}$")] = None,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> Response:
        sport = self._lookup.sport
        wanted = MatchFilter(status=status, phase=phase, source=source, sport=sport, after_id=after, limit=limit + 1)
        found = self._lookup.reader.matches(wanted)
        page, more = found[:limit], len(found) > limit
        now = Moment.of(self._lookup.clock)
        records = self._lookup.records(page)
        entries = [shapes.match_entry(match, records.get(match.match_id), now) for match in page]
        next_after = page[-1].match_id if more else None
        return json_response({"matches": entries, "next_after": next_after}, headers=REVALIDATE)

    async def events(
        self,
        match_id: str,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 500,
        current: bool = False,
    ) -> Response:
        match = self._lookup.match(match_id)
        page = self._current(match) if current else self._page(match, after, limit)
        return json_response(page, headers=self._lookup.headers(match))

    def _current(self, match: MatchRow) -> dict[str, Any]:
        """Return all live events; going on from their `next_after` misses nothing and repeats nothing."""
        events = self._lookup.reader.current_events(match.match_id)
        last = max((stored.seq for stored in events), default=0)
        return shapes.events_page(match, shapes.in_order_of_play(events), last, has_more=False)

    def _page(self, match: MatchRow, after: int, limit: int) -> dict[str, Any]:
        found = self._lookup.reader.events_after(match.match_id, after, limit + 1)
        page = found[:limit]
        return shapes.events_page(match, page, page[-1].seq if page else after, has_more=len(found) > limit)


def is_known(if_none_match: list[str], checksum: str) -> bool:
    """Return whether the client already holds this payload; a weak tag is as good as a strong one here."""
    tags = (tag.strip().removeprefix("W/") for header in if_none_match for tag in header.split(","))
    return any(tag in ("*", f'"{checksum}"') for tag in tags)
