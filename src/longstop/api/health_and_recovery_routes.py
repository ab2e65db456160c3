"""The health routes. `/health`, `/live` and `/ready` need no token; `/status…` and `/recoveries` do."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response
from msgspec import Struct

from longstop.api import openapi_responses
from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.health_documents import health_log_entry, recovery_entry
from longstop.api.json_and_error_responses import (
    NO_STORE,
    RETRY_SOON,
    error_response,
    json_response,
    reading_within,
)
from longstop.api.large_answers import LargeAnswers
from longstop.api.tokens import BearerScheme, Permission, Secret, require
from longstop.clock import Clock
from longstop.storage.base import KEEP_FOR, MAX_MATCH_ID, RECOVERIES_KEPT, HealthLogStore, HealthRow

#: Rows are not kept for longer.
MAX_HOURS = int(KEEP_FOR.total_seconds() // 3600)
MAX_ROWS_SHOWN = 10_000
#: How long a request waits for the health log; its file may hang.
LOG_TIMEOUT_SECONDS = 2.0


class HealthRoutes(Struct, frozen=True, kw_only=True, eq=False):
    """Serves the health cache from memory, and the health log from its file."""

    cache: HealthCache
    log: HealthLogStore
    large: LargeAnswers
    secret: Secret
    clock: Clock
    lag: Callable[[], float | None]

    def add_to(self, app: FastAPI) -> None:
        router, authorised = app.router, [Depends(self._authorise)]
        router.add_api_route("/health", self.health, **openapi_responses.HEALTH)
        router.add_api_route("/live", self.live, **openapi_responses.LIVE)
        router.add_api_route("/ready", self.ready, **openapi_responses.READY)
        router.add_api_route("/status", self.status, dependencies=authorised, **openapi_responses.STATUS)
        router.add_api_route("/recoveries", self.recoveries, dependencies=authorised, **openapi_responses.RECOVERIES)
        router.add_api_route(
            "/status/history", self.history, dependencies=authorised, **openapi_responses.STATUS_HISTORY
        )

    async def _authorise(self, request: Request, _documented: BearerScheme) -> None:
        require(self.secret, Permission.READ, request, self.clock.now())

    async def health(self) -> Response:
        """Return health, overall and per match. What was not measured is null.

        Measured at `timestamp`, `snapshot_age_seconds` ago: normally one second, more while files cannot be read.
        """
        status, document = self.cache.health()
        return json_response(document, status=status, headers=NO_STORE)

    async def live(self) -> Response:
        """Return whether this process responds. Reads no file."""
        return json_response({"status": "alive", "loop_lag_seconds": self.lag()}, headers=NO_STORE)

    async def ready(self) -> Response:
        """Return whether the store is readable and a scraper is running."""
        reasons = self.cache.unready_reasons()
        if reasons:
            sentence = f"Not ready: {'; '.join(reasons)}."
            return json_response({"error": sentence, "reasons": reasons}, status=503)
        return json_response({"status": "ready"}, headers=NO_STORE)

    async def status(self) -> Response:
        """Return the full status for operators: grade, ages, breakers, memory, processes, recoveries.

        What was not measured, or could not be read, is null.
        """
        return json_response(self.cache.status() | {"api_loop_lag_seconds": self.lag()}, headers=NO_STORE)

    async def recoveries(self, limit: Annotated[int, Query(ge=1, le=RECOVERIES_KEPT)] = RECOVERIES_KEPT) -> Response:
        """Return automatic recoveries, newest first, each with its trigger, duration and observed outcome."""
        known = self.cache.recoveries()
        if known is None:
            return error_response(503, "The audit cannot be read at the moment.", RETRY_SOON)
        entries, age = known
        shown = [recovery_entry(each) for each in entries[:limit]]
        return json_response({"recoveries": shown, "snapshot_age_seconds": age}, headers=NO_STORE)

    async def history(
        self,
        match: Annotated[str | None, Query(max_length=200)] = None,
        hours: Annotated[float, Query(gt=0, le=MAX_HOURS)] = 1.0,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS_SHOWN)] = 1000,
    ) -> Response:
        """Return the health of nodes and matches over time, newest first.

        One row per node and minute, and one per match whose health_status changed. Rows are kept for 30 days.
        """
        since = self.clock.now() - timedelta(hours=hours)

        async def rows() -> list[HealthRow]:
            async with reading_within(LOG_TIMEOUT_SECONDS, "The health log cannot be read at the moment."):
                return await health_log_rows(self.log, match, since, limit)

        def respond(found: list[HealthRow]) -> Response:
            return json_response({"history": [health_log_entry(each) for each in found]}, headers=NO_STORE)

        return await self.large.answer(rows, respond)


async def health_log_rows(log: HealthLogStore, match: str | None, since: datetime, limit: int) -> list[HealthRow]:
    """Return the newest rows first: all, or those of the match with this number or reference."""
    if match is not None and match.isdecimal() and int(match) <= MAX_MATCH_ID:
        return await log.recent(match_id=int(match), since=since, limit=limit)
    return await log.recent(ref=match, since=since, limit=limit)
