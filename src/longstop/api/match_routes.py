"""The data routes of one sport: a match with its age, the list, events, snapshots, deltas, findings."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.routing import APIRoute
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException

from longstop.api import match_documents, openapi_responses
from longstop.api.json_and_error_responses import RETRY_SOON, STORE_UNREADABLE, json_response
from longstop.api.large_answers import FEW, SMALL_BYTES, LargeAnswers
from longstop.api.match_documents import MatchView, from_hot, from_store
from longstop.api.tokens import BearerScheme, Permission, Secret, require
from longstop.clock import Clock, Moment
from longstop.errors import UsageError
from longstop.model.data_finding import StoredFinding
from longstop.model.event import StoredEvent
from longstop.model.match import MatchRow, MatchStatus, Phase, parse_match_id
from longstop.model.polling_status import MonitoringRecord
from longstop.model.snapshot import Snapshot, delta
from longstop.sports.registry import sports
from longstop.storage.base import HotReader, MatchFilter, MatchReader

T = TypeVar("T")
_Listed = tuple[list[MatchRow], Sequence[MonitoringRecord], set[int]]

#: The largest integer of SQLite.
MAX_INTEGER = 2**63 - 1
After = Annotated[int, Query(ge=0, le=MAX_INTEGER)]

#: Events in a page if the client gives no limit. All current ones of most matches are in one page.
VERSIONS_LIMIT, CURRENT_LIMIT = 500, 1000

_REVALIDATE = {"Cache-Control": "no-cache"}


class DirectRoute(APIRoute):
    """A route whose endpoint takes the request and returns the response itself.

    FastAPI's argument handling costs more than the whole read. The parameters are documented in `openapi`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


class MatchRoutes(Struct, frozen=True, kw_only=True, eq=False):
    """Serves the matches of one sport.

    `reader` and `hot` may answer on the event loop, as those of SQLite do: most reads take less time than a thread hop.
    While a file hangs, no request may read it: it would block all others. Nor one that is not the file that is written.
    """

    reader: MatchReader
    #: Does not answer on the event loop.
    large_reader: MatchReader
    large: LargeAnswers
    hot: HotReader
    secret: Secret
    clock: Clock
    sport: str
    is_store_unusable: Callable[[], bool]

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
        view = await self._view(match, self.reader)
        if view is None:
            raise _not_polled_yet(match)
        has_findings = await _has_findings(match, view, self.reader)
        headers = self._headers(view, has_findings) | {"ETag": f'"{view.checksum}"'}
        if _is_known(request.headers.getlist("if-none-match"), view.checksum):
            return Response(status_code=304, headers=headers)
        about = match_documents.metadata(
            view, await self.reader.count_open_findings(match.match_id), Moment.of(self.clock)
        )
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

        async def read(reader: MatchReader, wanted: MatchFilter) -> _Listed:
            found = await reader.matches(wanted)
            if not found:
                return [], (), set()
            first, last = found[0].match_id, found[-1].match_id
            return found, await self.hot.records(first, last), await reader.with_open_findings(first, last)

        def respond(found: _Listed) -> Response:
            rows, records, incomplete = found
            page, now = rows[:limit], Moment.of(self.clock)
            live = {record.match_id: record for record in records}
            entries = [
                match_documents.match_entry(
                    each, live.get(each.match_id), now, has_findings=each.match_id in incomplete
                )
                for each in page
            ]
            next_after = page[-1].match_id if len(rows) > limit else None
            return json_response({"matches": entries, "next_after": next_after}, headers=_REVALIDATE)

        few = await read(self.reader, replace(wanted, limit=min(limit, FEW) + 1))
        if limit <= FEW or len(few[0]) <= FEW:
            return respond(few)
        return await self.large.answer(lambda: read(self.large_reader, wanted), respond)

    async def events(
        self,
        match_id: str,
        after: After = 0,
        limit: Annotated[int | None, Query(ge=1, le=1000)] = None,
        current: bool = False,
    ) -> Response:
        """Return the events of a match after a sequence number.

        Every version of every event, in the order they were stored, 500 in a page. With `current=true`: only the latest
        version of each event, 1000 in a page, each page in the order of play. Only pages with `after` contain voids:
        they withdraw what an earlier page contained. Continue with `after=next_after` while `has_more`.
        """
        match = await self._match(match_id)
        size = limit or (CURRENT_LIMIT if current else VERSIONS_LIMIT)

        async def read(reader: MatchReader) -> list[StoredEvent]:
            versions = reader.current_events if current else reader.events_after
            return await versions(match.match_id, after, size + 1)

        def document(_view: MatchView | None, found: list[StoredEvent]) -> dict[str, Any]:
            page, has_more = found[:size], len(found) > size
            next_after = page[-1].seq if page else after
            shown = match_documents.in_order_of_play(page, match, with_voids=after > 0) if current else page
            return match_documents.events_page(match, shown, next_after, has_more)

        return await self._answer(match, read, document, is_small=match.seq - after <= FEW)

    async def history(
        self, match_id: str, sequence: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None
    ) -> Response:
        """Return the stored snapshots of a match, newest first.

        The last five at most, each with checksum and provenance. With `sequence`: only that one.
        """
        match = await self._match(match_id)

        def document(_view: MatchView | None, snapshots: list[Snapshot]) -> dict[str, Any]:
            shown = snapshots if sequence is None else [_snapshot(snapshots, sequence, match)]
            return match_documents.history(match, shown)

        is_small = await self.reader.snapshot_bytes(match.match_id) <= SMALL_BYTES
        return await self._answer(match, lambda reader: reader.snapshots(match.match_id), document, is_small=is_small)

    async def delta(self, match_id: str, since: Annotated[int, Query(ge=0, le=MAX_INTEGER)] = 0) -> Response:
        """Return what changed since the snapshot with the sequence number `since`.

        The top-level fields that differ; `_removed` names the fields that are gone. If that snapshot is not stored any
        more, `_diff_type` is `initial` and the payload is complete. Continue with `since` set to `_metadata.sequence`.
        """
        match = await self._match(match_id)

        async def read(reader: MatchReader) -> tuple[int, list[Snapshot]]:
            return await reader.count_open_findings(match.match_id), await reader.snapshots(match.match_id)

        def document(live: MatchView | None, found: tuple[int, list[Snapshot]]) -> dict[str, Any]:
            open_findings, snapshots = found
            if not snapshots:
                raise _not_polled_yet(match)
            newest = snapshots[0]
            if since > newest.sequence:
                raise HTTPException(
                    400, f"since={since} is in the future: match {match.ref} is at sequence {newest.sequence}."
                )
            old = next((each for each in snapshots if each.sequence == since), None)
            view = from_store(match, newest, live.record if live else None)
            about = match_documents.metadata(view, open_findings, Moment.of(self.clock))
            return delta(old, newest) | {"_metadata": about}

        is_small = await self.reader.snapshot_bytes(match.match_id) <= SMALL_BYTES
        return await self._answer(match, read, document, is_small=is_small)

    async def findings(self, match_id: str, limit: Annotated[int, Query(ge=1, le=1000)] = 500) -> Response:
        """Return gaps and mismatches of a match, open ones first.

        What is missing or inconsistent in the data of the source. A finding closes when it is resolved.
        """
        match = await self._match(match_id)

        async def read(reader: MatchReader) -> tuple[list[StoredFinding], int, int]:
            number = match.match_id
            counts = await reader.count_open_findings(number), await reader.count_findings(number)
            return (await reader.findings(number, limit), *counts)

        def document(_view: MatchView | None, found: tuple[list[StoredFinding], int, int]) -> dict[str, Any]:
            return match_documents.findings(match, *found)

        is_small = await self.reader.count_findings(match.match_id) <= FEW
        return await self._answer(match, read, document, is_small=is_small)

    async def _answer(
        self,
        match: MatchRow,
        read: Callable[[MatchReader], Awaitable[T]],
        document: Callable[[MatchView | None, T], object],
        *,
        is_small: bool,
    ) -> Response:
        """Answer with the document of what is read: a small one at once, a large one when it is its turn."""

        async def read_with_age(reader: MatchReader) -> tuple[MatchView | None, bool, T]:
            self._require_readable()  # that may have changed during the wait
            # The view first: what is read may then be newer than its age says, but never older.
            view = await self._view(match, reader)
            return view, await _has_findings(match, view, reader), await read(reader)

        def respond(found: tuple[MatchView | None, bool, T]) -> Response:
            view, has_findings, content = found
            return json_response(document(view, content), headers=self._headers(view, has_findings))

        if is_small:
            return respond(await read_with_age(self.reader))
        return await self.large.answer(lambda: read_with_age(self.large_reader), respond)

    async def _authorise(self, request: Request, _documented: BearerScheme) -> None:
        self._require_read(request)

    def _require_read(self, request: Request) -> None:
        require(self.secret, Permission.READ, request, self.clock.now())
        self._require_readable()

    def _require_readable(self) -> None:
        if self.is_store_unusable():
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

    async def _view(self, match: MatchRow, reader: MatchReader) -> MatchView | None:
        """Return the live view, else the newest snapshot; `None` before the first poll."""
        row = await self.hot.row(match.match_id)
        live = from_hot(match, row) if row else None
        if live is not None:
            return live
        snapshots = await reader.snapshots(match.match_id, limit=1)
        return from_store(match, snapshots[0], row.record if row else None) if snapshots else None

    def _headers(self, view: MatchView | None, has_findings: bool) -> dict[str, str]:
        return match_documents.age_headers(view, Moment.of(self.clock), has_findings=has_findings) | _REVALIDATE


async def _has_findings(match: MatchRow, view: MatchView | None, reader: MatchReader) -> bool:
    """Return whether a match without a live record has open findings; a record knows that itself."""
    return view is not None and view.record is None and await reader.count_open_findings(match.match_id) > 0


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
