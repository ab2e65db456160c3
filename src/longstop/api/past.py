"""The route to the health log: how nodes and matches were, over time."""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from fastapi import Depends, FastAPI, Query, Request, Response

from longstop.api import described
from longstop.api.auth import Permission, Scheme, TokenVerifier, require
from longstop.api.guard import error_response, json_response
from longstop.clock import Clock, to_iso
from longstop.errors import StorageError
from longstop.storage.base import KEEP_FOR, MAX_MATCH_ID, HealthLogReader, HealthRow

#: As long as rows are kept for.
MAX_HOURS = int(KEEP_FOR.total_seconds() // 3600)
MAX_ROWS_SHOWN = 10_000
#: A file that hangs is not waited for longer than this.
PATIENCE_SECONDS = 2.0


class PastRoutes:
    """Answers how it went."""

    def __init__(self, log: HealthLogReader, *, verifier: TokenVerifier, clock: Clock) -> None:
        self._log = log
        self._verifier = verifier
        self._clock = clock

    def add_to(self, app: FastAPI) -> None:
        permitted = [Depends(self._permit)]
        app.router.add_api_route("/status/history", self.history, dependencies=permitted, **described.STATUS_HISTORY)

    async def _permit(self, request: Request, _documented: Scheme) -> None:
        require(self._verifier, Permission.READ, request, self._clock.now())

    async def history(
        self,
        match: Annotated[str | None, Query(max_length=200)] = None,
        hours: Annotated[float, Query(gt=0, le=MAX_HOURS)] = 1.0,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS_SHOWN)] = 1000,
    ) -> Response:
        since = self._clock.now() - timedelta(hours=hours)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                rows = await rows_of(self._log, match, since, limit)
        except (StorageError, TimeoutError):
            return error_response(503, "The health log cannot be read at the moment.", {"Retry-After": "5"})
        return json_response({"history": [health_entry(each) for each in rows]}, headers={"Cache-Control": "no-store"})


async def rows_of(log: HealthLogReader, match: str | None, since: datetime, limit: int) -> list[HealthRow]:
    """Return the newest rows first: of everything, or of the match with this number or reference."""
    if match is not None and match.isdecimal() and int(match) <= MAX_MATCH_ID:
        return await log.recent(match_id=int(match), since=since, limit=limit)
    return await log.recent(ref=match, since=since, limit=limit)


def health_entry(row: HealthRow) -> dict[str, Any]:
    """Return one row; a match is called as everywhere else, a node has none."""
    entry = msgspec.structs.asdict(row)
    number, ref = entry.pop("match_id"), entry.pop("ref")
    return entry | {"timestamp": to_iso(row.timestamp), "matchId": number, "match_id": ref}
