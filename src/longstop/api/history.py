"""The routes about how a match came to be what it is: kept snapshots, what changed since one, open questions."""

from typing import Annotated

from fastapi import Depends, FastAPI, Query, Response
from starlette.exceptions import HTTPException

from longstop.api import described, shapes
from longstop.api.guard import json_response
from longstop.api.matches import MAX_INTEGER, Lookup, not_read_yet
from longstop.api.shapes import from_store
from longstop.clock import Moment
from longstop.model.snapshot import Snapshot, delta
from longstop.storage.base import MatchRow


class HistoryRoutes:
    """Answers from the store alone, which is never behind the live view."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def add_to(self, app: FastAPI) -> None:
        permitted = [Depends(self._lookup.permit)]
        match = f"{shapes.data_path(self._lookup.sport)}/match-info/{{match_id}}"
        app.router.add_api_route(f"{match}/history", self.history, dependencies=permitted, **described.HISTORY)
        app.router.add_api_route(f"{match}/delta", self.delta, dependencies=permitted, **described.DELTA)
        app.router.add_api_route(f"{match}/findings", self.findings, dependencies=permitted, **described.FINDINGS)

    async def history(
        self, match_id: str, sequence: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None
    ) -> Response:
        match = await self._lookup.match(match_id)
        kept = await self._lookup.reader.snapshots(match.match_id)
        if sequence is not None:
            kept = [_snapshot(kept, sequence, match)]
        return json_response(shapes.history(match, kept), headers=await self._lookup.headers(match))

    async def delta(self, match_id: str, since: Annotated[int, Query(ge=0, le=MAX_INTEGER)] = 0) -> Response:
        match = await self._lookup.match(match_id)
        kept = await self._lookup.reader.snapshots(match.match_id)
        if not kept:
            raise not_read_yet(match)
        newest = kept[0]
        if since > newest.sequence:
            raise HTTPException(
                400, f"Match {match.ref} is at sequence {newest.sequence}: since={since} is still to come."
            )
        old = next((each for each in kept if each.sequence == since), None)
        changes = delta(old, newest) | {"_metadata": await self._about(match, newest)}
        return json_response(changes, headers=await self._lookup.headers(match))

    async def findings(self, match_id: str, limit: Annotated[int, Query(ge=1, le=1000)] = 500) -> Response:
        match = await self._lookup.match(match_id)
        found = await self._lookup.reader.findings(match.match_id)
        return json_response(shapes.findings(match, found, limit), headers=await self._lookup.headers(match))

    async def _about(self, match: MatchRow, newest: Snapshot) -> dict[str, object]:
        row = await self._lookup.hot.row(match.match_id)
        view = from_store(match, newest, row.record if row else None)
        return shapes.metadata(view, await self._lookup.open_findings(match), Moment.of(self._lookup.clock))


def _snapshot(kept: list[Snapshot], sequence: int, match: MatchRow) -> Snapshot:
    for snapshot in kept:
        if snapshot.sequence == sequence:
            return snapshot
    there = ", ".join(str(snapshot.sequence) for snapshot in kept) or "none"
    raise HTTPException(404, f"Snapshot {sequence} of match {match.ref} is not kept; those that are: {there}.")
