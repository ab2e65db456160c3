"""The health routes. `/health`, `/live` and `/ready` need no token; `/status…` and `/recoveries` do."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response

from longstop.api import openapi
from longstop.api.auth import BearerScheme, Permission, TokenVerifier, require
from longstop.api.health_cache import HealthCache
from longstop.api.health_documents import health_log_entry, recovery_entry
from longstop.api.middleware import error_response, json_response
from longstop.clock import Clock
from longstop.errors import StorageError
from longstop.storage.base import KEEP_FOR, MAX_MATCH_ID, RECOVERIES_KEPT, HealthLogReader, HealthRow

#: Rows are not kept for longer.
MAX_HOURS = int(KEEP_FOR.total_seconds() // 3600)
MAX_ROWS_SHOWN = 10_000
#: How long a request waits for the health log; its file may hang.
LOG_TIMEOUT_SECONDS = 2.0

_NO_STORE = {"Cache-Control": "no-store"}
_RETRY_SOON = {"Retry-After": "5"}


class HealthRoutes:
    """Serves the health cache from memory, and the health log from its file when there is one."""

    def __init__(
        self,
        cache: HealthCache,
        *,
        log: HealthLogReader | None,
        verifier: TokenVerifier,
        clock: Clock,
        lag: Callable[[], float | None],
    ) -> None:
        self._cache = cache
        self._log = log
        self._verifier = verifier
        self._clock = clock
        self._lag = lag

    def add_to(self, app: FastAPI) -> None:
        router, authorised = app.router, [Depends(self._authorise)]
        router.add_api_route("/health", self.health, **openapi.HEALTH)
        router.add_api_route("/live", self.live, **openapi.LIVE)
        router.add_api_route("/ready", self.ready, **openapi.READY)
        router.add_api_route("/status", self.status, dependencies=authorised, **openapi.STATUS)
        router.add_api_route("/recoveries", self.recoveries, dependencies=authorised, **openapi.RECOVERIES)
        if self._log is not None:
            router.add_api_route("/status/history", self.history, dependencies=authorised, **openapi.STATUS_HISTORY)

    async def _authorise(self, request: Request, _documented: BearerScheme) -> None:
        require(self._verifier, Permission.READ, request, self._clock.now())

    async def health(self) -> Response:
        response = self._cache.health()
        return Response(response.body, response.status, _NO_STORE, "application/json")

    async def live(self) -> Response:
        return json_response({"status": "alive", "loop_lag_seconds": self._lag()}, headers=_NO_STORE)

    async def ready(self) -> Response:
        reasons = self._cache.unready_reasons()
        if reasons:
            sentence = f"Not ready: {'; '.join(reasons)}."
            return json_response({"error": sentence, "reasons": reasons}, status=503)
        return json_response({"status": "ready"}, headers=_NO_STORE)

    async def status(self) -> Response:
        return json_response(self._cache.status() | {"api_loop_lag_seconds": self._lag()}, headers=_NO_STORE)

    async def recoveries(self, limit: Annotated[int, Query(ge=1, le=RECOVERIES_KEPT)] = RECOVERIES_KEPT) -> Response:
        known = self._cache.recoveries()
        if known is None:
            return error_response(503, "The audit cannot be read at the moment.", _RETRY_SOON)
        entries, age = known
        shown = [recovery_entry(each) for each in entries[:limit]]
        return json_response({"recoveries": shown, "snapshot_age_seconds": age}, headers=_NO_STORE)

    async def history(
        self,
        match: Annotated[str | None, Query(max_length=200)] = None,
        hours: Annotated[float, Query(gt=0, le=MAX_HOURS)] = 1.0,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS_SHOWN)] = 1000,
    ) -> Response:
        assert self._log is not None  # noqa: S101 - the route exists only with a log
        since = self._clock.now() - timedelta(hours=hours)
        try:
            async with asyncio.timeout(LOG_TIMEOUT_SECONDS):
                rows = await health_log_rows(self._log, match, since, limit)
        except (StorageError, TimeoutError):
            return error_response(503, "The health log cannot be read at the moment.", _RETRY_SOON)
        return json_response({"history": [health_log_entry(each) for each in rows]}, headers=_NO_STORE)


async def health_log_rows(log: HealthLogReader, match: str | None, since: datetime, limit: int) -> list[HealthRow]:
    """Return the newest rows first: all, or those of the match with this number or reference."""
    if match is not None and match.isdecimal() and int(match) <= MAX_MATCH_ID:
        return await log.recent(match_id=int(match), since=since, limit=limit)
    return await log.recent(ref=match, since=since, limit=limit)
