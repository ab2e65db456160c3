"""The routes for those who watch us: `/health`, `/live` and `/ready`. They need no token."""

from datetime import datetime

from fastapi import FastAPI, Response
from msgspec import Struct

from longstop.api import described
from longstop.api.guard import json_response
from longstop.api.health import SILENT_AFTER, HealthStatus, grade, health_document, heard, unreadable
from longstop.clock import Clock
from longstop.errors import StorageError
from longstop.storage.base import HotReader, MatchFilter, MatchReader

#: A health answer is used again for this long, so that many watchers cost no more than one.
HEALTH_KEPT_SECONDS = 1.0
_NO_STORE = {"Cache-Control": "no-store"}


class _Kept(Struct, frozen=True):
    body: bytes
    status: int
    taken_at: float


class Probes:
    """Answers how it goes."""

    def __init__(self, *, reader: MatchReader, hot: HotReader, clock: Clock, started_at: datetime) -> None:
        self._reader = reader
        self._hot = hot
        self._clock = clock
        self._started_at = started_at
        self._kept: _Kept | None = None

    def add_to(self, app: FastAPI) -> None:
        app.router.add_api_route("/health", self.health, **described.HEALTH)
        app.router.add_api_route("/live", self.live, **described.LIVE)
        app.router.add_api_route("/ready", self.ready, **described.READY)

    async def health(self) -> Response:
        kept = self._kept
        if kept is None or self._clock.monotonic() - kept.taken_at >= HEALTH_KEPT_SECONDS:
            kept = self._kept = self._measure()
        return Response(kept.body, kept.status, _NO_STORE, "application/json")

    async def live(self) -> Response:
        return json_response({"status": "alive"}, headers=_NO_STORE)

    async def ready(self) -> Response:
        reasons = self._unready_because()
        if reasons:
            sentence = f"Not ready: {'; '.join(reasons)}."
            return json_response({"error": sentence, "reasons": reasons}, status=503)
        return json_response({"status": "ready"}, headers=_NO_STORE)

    def _measure(self) -> _Kept:
        now = self._clock.now()
        try:
            beats = self._hot.beats()
            records = self._hot.records()
            graded = grade(beats, records, now)
        except StorageError:
            beats, records, graded = (), (), unreadable()
        document = health_document(graded, beats, records, started_at=self._started_at, now=now)
        status = 503 if graded.status is HealthStatus.DOWN else 200
        return _Kept(bytes(json_response(document).body), status, self._clock.monotonic())

    def _unready_because(self) -> list[str]:
        reasons = []
        try:
            self._reader.matches(MatchFilter(limit=1))
        except StorageError:
            reasons.append("the store cannot be read")
        try:
            if not heard(self._hot.beats(), self._clock.now()):
                reasons.append(f"no scraper has been heard for {SILENT_AFTER.seconds} s")
        except StorageError:
            reasons.append("the live view cannot be read")
        return reasons
