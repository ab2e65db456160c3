"""The data routes: a match with its age, the list, the events after a sequence number."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from longstop.api import described, shapes
from longstop.api.auth import Permission, Scheme, TokenVerifier, require
from longstop.api.guard import json_response
from longstop.api.shapes import MatchView, from_hot, from_store
from longstop.clock import Clock, Moment
from longstop.errors import UsageError
from longstop.model.match import MatchStatus, MonitoringRecord, Phase, parse_match_id
from longstop.sports.registry import sports
from longstop.storage.base import HotReader, MatchFilter, MatchReader, MatchRow

#: The largest integer of SQLite.
MAX_INTEGER = 2**63 - 1
After = Annotated[int, Query(ge=0, le=MAX_INTEGER)]


REVALIDATE = {"Cache-Control": "no-cache"}


class Lookup:
    """Finds things for the routes of one sport, in the readers it was given.

    The readers may answer on the loop, as those of SQLite do: most reads take less time than the hop to a thread.
    While a file is known to hang, no request may read it: it would block all the others.
    """

    def __init__(
        self,
        *,
        reader: MatchReader,
        hot: HotReader,
        verifier: TokenVerifier,
        clock: Clock,
        sport: str,
        is_hanging: Callable[[], bool] = lambda: False,
    ) -> None:
        self.sport = sport
        self.reader = reader
        self.hot = hot
        self.clock = clock
        self._verifier = verifier
        self._is_hanging = is_hanging

    async def permit(self, request: Request, _documented: Scheme) -> None:
        self.require(Permission.READ, request)

    def require(self, permission: Permission, request: Request) -> None:
        require(self._verifier, permission, request, self.clock.now())
        if self._is_hanging():
            raise HTTPException(503, "The store cannot be read at the moment.", {"Retry-After": "5"})

    async def match(self, text: str) -> MatchRow:
        """Return the match that a path names, or raise what the client is told."""
        match = await look_up(self.reader, text)
        if match is None:
            raise HTTPException(404, f"No match {text} is known.")
        if match.sport not in sports():
            raise HTTPException(404, f"Match {text} is {match.sport}, and no package for that sport is installed here.")
        if match.sport != self.sport:
            raise HTTPException(404, f"Match {text} is {match.sport}: ask {shapes.match_path(match)}.")
        return match

    async def records(self, page: Sequence[MatchRow]) -> dict[int, MonitoringRecord]:
        """Return how the watching of these matches goes, by their ids; they stand in the order of those."""
        if not page:
            return {}
        found = await self.hot.records(page[0].match_id, page[-1].match_id)
        return {record.match_id: record for record in found}

    async def view(self, match: MatchRow) -> MatchView | None:
        """Return what is known of a match; `None` while it was never read."""
        row = await self.hot.row(match.match_id)
        live = from_hot(match, row) if row else None
        if live is not None:
            return live
        snapshots = await self.reader.snapshots(match.match_id)
        return from_store(match, snapshots[0], row.record if row else None) if snapshots else None

    async def headers(self, match: MatchRow) -> dict[str, str]:
        """Return the headers of an answer about a match: its age, and that it is to be asked again."""
        return shapes.age_headers(await self.view(match), Moment.of(self.clock)) | REVALIDATE

    async def open_findings(self, match: MatchRow) -> int:
        return sum(stored.closed_at is None for stored in await self.reader.findings(match.match_id))


async def look_up(reader: MatchReader, text: str) -> MatchRow | None:
    """Return the match of this name, of any sport; raise what a client is told who names nothing."""
    try:
        name = parse_match_id(text)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    return await (reader.match(name) if isinstance(name, int) else reader.find(name))


def not_read_yet(match: MatchRow) -> HTTPException:
    return HTTPException(404, f"Match {match.ref} was discovered and has not been read yet.")


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
        match = await self._lookup.match(request.path_params["match_id"])
        view = await self._lookup.view(match)
        if view is None:
            raise not_read_yet(match)
        now = Moment.of(self._lookup.clock)
        headers = shapes.age_headers(view, now) | REVALIDATE | {"ETag": f'"{view.checksum}"'}
        if is_known(request.headers.getlist("if-none-match"), view.checksum):
            return Response(status_code=304, headers=headers)
        about = shapes.metadata(view, await self._lookup.open_findings(match), now)
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
        found = await self._lookup.reader.matches(wanted)
        page, more = found[:limit], len(found) > limit
        now = Moment.of(self._lookup.clock)
        records = await self._lookup.records(page)
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
        match = await self._lookup.match(match_id)
        page = await (self._current(match) if current else self._page(match, after, limit))
        return json_response(page, headers=await self._lookup.headers(match))

    async def _current(self, match: MatchRow) -> dict[str, Any]:
        """Return all live events; going on from their `next_after` misses nothing and repeats nothing."""
        events = await self._lookup.reader.current_events(match.match_id)
        last = max((stored.seq for stored in events), default=0)
        return shapes.events_page(match, shapes.in_order_of_play(events, match), last, has_more=False)

    async def _page(self, match: MatchRow, after: int, limit: int) -> dict[str, Any]:
        found = await self._lookup.reader.events_after(match.match_id, after, limit + 1)
        page = found[:limit]
        return shapes.events_page(match, page, page[-1].seq if page else after, has_more=len(found) > limit)


def is_known(if_none_match: list[str], checksum: str) -> bool:
    """Return whether the client already holds this payload; a weak tag is as good as a strong one here."""
    tags = (tag.strip().removeprefix("W/") for header in if_none_match for tag in header.split(","))
    return any(tag in ("*", f'"{checksum}"') for tag in tags)
