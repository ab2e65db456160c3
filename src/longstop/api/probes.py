"""The routes for those who watch us. Those for machines need no token: `/health`, `/live`, `/ready`."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response

from longstop.api import described
from longstop.api.auth import Permission, Scheme, TokenVerifier, require
from longstop.api.guard import error_response, json_response
from longstop.api.outlook import Outlook
from longstop.api.status import recovery_entry
from longstop.clock import Clock
from longstop.storage.base import RECOVERIES_KEPT

_NO_STORE = {"Cache-Control": "no-store"}


class Probes:
    """Answers how it goes, from memory alone."""

    def __init__(
        self, outlook: Outlook, *, verifier: TokenVerifier, clock: Clock, lag: Callable[[], float | None]
    ) -> None:
        self._outlook = outlook
        self._verifier = verifier
        self._clock = clock
        self._lag = lag

    def add_to(self, app: FastAPI) -> None:
        permitted = [Depends(self._permit)]
        app.router.add_api_route("/health", self.health, **described.HEALTH)
        app.router.add_api_route("/live", self.live, **described.LIVE)
        app.router.add_api_route("/ready", self.ready, **described.READY)
        app.router.add_api_route("/status", self.status, dependencies=permitted, **described.STATUS)
        app.router.add_api_route("/recoveries", self.recoveries, dependencies=permitted, **described.RECOVERIES)

    async def _permit(self, request: Request, _documented: Scheme) -> None:
        require(self._verifier, Permission.READ, request, self._clock.now())

    async def health(self) -> Response:
        answer = self._outlook.health()
        return Response(answer.body, answer.status, _NO_STORE, "application/json")

    async def live(self) -> Response:
        return json_response({"status": "alive", "loop_lag_seconds": self._lag()}, headers=_NO_STORE)

    async def ready(self) -> Response:
        reasons = self._outlook.unready_because()
        if reasons:
            sentence = f"Not ready: {'; '.join(reasons)}."
            return json_response({"error": sentence, "reasons": reasons}, status=503)
        return json_response({"status": "ready"}, headers=_NO_STORE)

    async def status(self) -> Response:
        return json_response(self._outlook.status() | {"api_loop_lag_seconds": self._lag()}, headers=_NO_STORE)

    async def recoveries(self, limit: Annotated[int, Query(ge=1, le=RECOVERIES_KEPT)] = RECOVERIES_KEPT) -> Response:
        known = self._outlook.recoveries()
        if known is None:
            return error_response(503, "The audit cannot be read at the moment.", {"Retry-After": "5"})
        entries, age = known
        shown = [recovery_entry(each) for each in entries[:limit]]
        return json_response({"recoveries": shown, "snapshot_age_seconds": age}, headers=_NO_STORE)
