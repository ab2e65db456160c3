"""The data routes of one sport: a match with its age, the list, events, snapshots, deltas, findings."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.routing import APIRoute
from msgspec import Struct
from starlette.exceptions import HTTPException

from longstop.api import match_documents, openapi_responses
from longstop.api.json_and_error_responses import RETRY_SOON, STORE_UNREADABLE, json_response
from longstop.api.match_documents import MatchView, from_hot, from_store
from longstop.api.tokens import BearerScheme, Permission, Secret, require
from longstop.clock import Clock, Moment
from longstop.errors import UsageError
from longstop.model.match import MatchRow, MatchStatus, Phase, parse_match_id
from longstop.model.polling_status import MonitoringRecord
from longstop.model.snapshot import Snapshot, delta
from longstop.sports.registry import sports
from longstop.storage.base import HotReader, MatchFilter, MatchReader

#: The largest integer of SQLite.
MAX_INTEGER = 2**63 - 1
After = Annotated[int, Query(ge=0, le=MAX_INTEGER)]

_REVALIDATE = {"Cache-Control": "no-cache"}


class DirectRoute(APIRoute):
    """A route whose endpoint takes the request and returns the response itself.

    FastAPI's argument handling costs more than the whole read. The parameters are documented in `openapi`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


class MatchRoutes(Struct, frozen=True, kw_only=True, eq=False):
    """Serves the matches of one sport.

    The readers may answer on the event loop, as those of SQLite do: most reads take less time than a thread hop.
    While a file hangs, no request may read it: it would block all others.
    """

    reader: MatchReader
    hot: HotReader
    secret: Secret
    clock: Clock
    sport: str
    is_hanging: Callable[[], bool]

    def add_to(self, app: FastAPI) -> None:
        router, authorised = app.router, [Depends(self._authorise)]
        data = match_documents.data_path(self.sport)
        match, events = f"{data}/match-info/{{match_id}}", openapi_responses.events(self.sport)
        router.add_api_route(match, self.match_info, route_class_override=DirectRoute, **openapi_responses.MATCH_INFO)
        router.add_api_route(f"{match}/events", self.events, dependencies=authorised, **events)
        router.add_api_route(f"{data}/matches", self.matches, dependencies=authorised, **openapi_responses.MATCHES)
        router.add_api_route(f"{match}/history", self.history, dependencies=authorised, **openapi_responses.HISTORY)
        router.add_api_route(f"{match}/delta", self.delta, dependencies=authorised, **openapi_responses.DELTA)
        router.add_api_route(f"{match}/findings", self.findings, dependencies=authorised, **openapi_responses.FINDINGS)

    async def match_info(self, request: Request) -> Response:
        """Return the newest stored payload, with `_metadata` added. Send its ETag to get 304 while it is unchanged."""
        self._require_read(request)
        match = await self._match(request.path_params["match_id"])
        view = await self._view(match)
        if view is None:
            raise _not_polled_yet(match)
        headers = await self._headers(match, view) | {"ETag": f'"{view.checksum}"'}
        if _is_known(request.headers.getlist("if-none-match"), view.checksum):
            return Response(status_code=304, headers=headers)
        about = match_documents.metadata(view, await self._open_findings(match), Moment.of(self.clock))
        return Response(match_documents.splice_metadata(view.payload, about), 200, headers, "application/json")

    async def matches(
        self,
        status: MatchStatus | None = None,
        phase: Phase | None = None,
        source: Annotated[str | None, Query(pattern=r"^[a-z][a-z0-9]{0,31}$")] = None,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> Response:
        """List the matches by number. Continue with `after=next_after` until it is null."""
        wanted = MatchFilter(
            status=status, phase=phase, source=source, sport=self.sport, after_id=after, limit=limit + 1
        )
        found = await self.reader.matches(wanted)
        page, more = found[:limit], len(found) > limit
        now = Moment.of(self.clock)
        records, incomplete = await self._records(page), await self._with_open_findings(page)
        entries = [
            match_documents.match_entry(
                match, records.get(match.match_id), now, has_findings=match.match_id in incomplete
            )
            for match in page
        ]
        next_after = page[-1].match_id if more else None
        return json_response({"matches": entries, "next_after": next_after}, headers=_REVALIDATE)

    async def events(
        self,
        match_id: str,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 500,
        current: bool = False,
    ) -> Response:
        """Return the events of a match after a sequence number.

        Every version of every event, in the order they were stored. Continue with `after=next_after` while `has_more`.
        With `current=true`: only the latest live version of each event, all at once, in the order of play.
        """
        match = await self._match(match_id)
        page = await (self._current(match) if current else self._page(match, after, limit))
        return json_response(page, headers=await self._headers(match))

    async def history(
        self, match_id: str, sequence: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None
    ) -> Response:
        """Return the stored snapshots of a match, newest first.

        The last five at most, each with checksum and provenance. With `sequence`: only that one.
        """
        match = await self._match(match_id)
        snapshots = await self.reader.snapshots(match.match_id)
        if sequence is not None:
            snapshots = [_snapshot(snapshots, sequence, match)]
        return json_response(match_documents.history(match, snapshots), headers=await self._headers(match))

    async def delta(self, match_id: str, since: Annotated[int, Query(ge=0, le=MAX_INTEGER)] = 0) -> Response:
        """Return what changed since the snapshot with the sequence number `since`.

        The top-level fields that differ; `_removed` names the fields that are gone. If that snapshot is not stored any
        more, `_diff_type` is `initial` and the payload is complete. Continue with `since` set to `_metadata.sequence`.
        """
        match = await self._match(match_id)
        snapshots = await self.reader.snapshots(match.match_id)
        if not snapshots:
            raise _not_polled_yet(match)
        newest = snapshots[0]
        if since > newest.sequence:
            raise HTTPException(
                400, f"since={since} is in the future: match {match.ref} is at sequence {newest.sequence}."
            )
        old = next((each for each in snapshots if each.sequence == since), None)
        row = await self.hot.row(match.match_id)
        view = from_store(match, newest, row.record if row else None)
        about = match_documents.metadata(view, await self._open_findings(match), Moment.of(self.clock))
        return json_response(delta(old, newest) | {"_metadata": about}, headers=await self._headers(match))

    async def findings(self, match_id: str, limit: Annotated[int, Query(ge=1, le=1000)] = 500) -> Response:
        """Return gaps and mismatches of a match, open ones first.

        What is missing or inconsistent in the data of the source. A finding closes when it is resolved.
        """
        match = await self._match(match_id)
        found = await self.reader.findings(match.match_id)
        return json_response(match_documents.findings(match, found, limit), headers=await self._headers(match))

    async def _authorise(self, request: Request, _documented: BearerScheme) -> None:
        self._require_read(request)

    def _require_read(self, request: Request) -> None:
        require(self.secret, Permission.READ, request, self.clock.now())
        if self.is_hanging():
            raise HTTPException(503, STORE_UNREADABLE, RETRY_SOON)

    async def _match(self, text: str) -> MatchRow:
        """Return the match that a path names; raise 400 or 404 without one of this sport."""
        match = await find_match(self.reader, text)
        if match is None:
            raise unknown_match(text)
        if match.sport not in sports():
            raise HTTPException(404, f"Match {text} is {match.sport}, and no package for that sport is installed here.")
        if match.sport != self.sport:
            raise HTTPException(404, f"Match {text} is {match.sport}: ask {match_documents.match_path(match)}.")
        return match

    async def _records(self, page: Sequence[MatchRow]) -> dict[int, MonitoringRecord]:
        """Return the live records of these matches, which are ordered by id."""
        if not page:
            return {}
        found = await self.hot.records(page[0].match_id, page[-1].match_id)
        return {record.match_id: record for record in found}

    async def _with_open_findings(self, page: Sequence[MatchRow]) -> set[int]:
        return await self.reader.with_open_findings(page[0].match_id, page[-1].match_id) if page else set()

    async def _view(self, match: MatchRow) -> MatchView | None:
        """Return the live view, else the newest snapshot; `None` before the first poll."""
        row = await self.hot.row(match.match_id)
        live = from_hot(match, row) if row else None
        if live is not None:
            return live
        snapshots = await self.reader.snapshots(match.match_id)
        return from_store(match, snapshots[0], row.record if row else None) if snapshots else None

    async def _headers(self, match: MatchRow, view: MatchView | None = None) -> dict[str, str]:
        view = view or await self._view(match)
        # The live record knows about findings; an archived match has none.
        has_findings = view is not None and view.record is None and await self._open_findings(match) > 0
        return match_documents.age_headers(view, Moment.of(self.clock), has_findings=has_findings) | _REVALIDATE

    async def _open_findings(self, match: MatchRow) -> int:
        return sum(stored.closed_at is None for stored in await self.reader.findings(match.match_id))

    async def _current(self, match: MatchRow) -> dict[str, Any]:
        """Return all live events. Continuing from their `next_after` misses and repeats nothing."""
        events = await self.reader.current_events(match.match_id)
        last = max((stored.seq for stored in events), default=0)
        return match_documents.events_page(match, match_documents.in_order_of_play(events, match), last, has_more=False)

    async def _page(self, match: MatchRow, after: int, limit: int) -> dict[str, Any]:
        found = await self.reader.events_after(match.match_id, after, limit + 1)
        page = found[:limit]
        return match_documents.events_page(match, page, page[-1].seq if page else after, has_more=len(found) > limit)


async def find_match(reader: MatchReader, text: str) -> MatchRow | None:
    """Return the match with this number or reference, of any sport; raise 400 if the text is neither."""
    try:
        name = parse_match_id(text)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    return await (reader.match(name) if isinstance(name, int) else reader.find(name))


def unknown_match(text: str) -> HTTPException:
    return HTTPException(404, f"There is no match {text}; the list of matches has the ids that exist.")


def _not_polled_yet(match: MatchRow) -> HTTPException:
    return HTTPException(404, f"Match {match.ref} was discovered but not polled yet.")


def _snapshot(snapshots: list[Snapshot], sequence: int, match: MatchRow) -> Snapshot:
    for snapshot in snapshots:
        if snapshot.sequence == sequence:
            return snapshot
    stored = ", ".join(str(snapshot.sequence) for snapshot in snapshots) or "none"
    raise HTTPException(404, f"Snapshot {sequence} of match {match.ref} is not stored any more; stored: {stored}.")


def _is_known(if_none_match: list[str], checksum: str) -> bool:
    """Return whether the client already has this payload. Weak and strong tags are equal here."""
    tags = (tag.strip().removeprefix("W/") for header in if_none_match for tag in header.split(","))
    return any(tag in ("*", f'"{checksum}"') for tag in tags)
