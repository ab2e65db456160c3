"""Responses and examples of all routes, for the OpenAPI document. The descriptions are the docstrings of the routes.

The routes return bytes that the scraper has encoded, so there are no response models to generate this from.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from longstop.api.serialisers import event_of
from longstop.model.event import StoredEvent
from longstop.sports.base import Sport
from longstop.sports.registry import sport_named

_RECOVERY = {
    "id": "5f3c…",
    "kind": "recycle",
    "trigger": "no successful poll of a match in play for 92 s",
    "subject": "node-1",
    "process": "scraper",
    "began_at": "2026-11-12T10:30:45.120Z",
    "duration_seconds": 4.2,
    "pids_before": [4711, 4720],
    "pids_after": [4711, 4755],
    "outcome": "recovered",
    "observed": "crex_11HD was polled again",
}
_MATCH = {
    "matchId": 1,
    "match_id": "crex_11HD",
    "title": "Reds v Blues",
    "status": "live",
    "phase": "active",
    "start_time": "2026-11-12T10:00:00.000Z",
    "data_age_seconds": 1.2,
    "last_poll_at": "2026-11-12T10:30:45.120Z",
    "sync": "in_sync",
    "url": "/cricket-data/match-info/1",
}
_METADATA = {
    "scraped_at": "2026-11-12T10:30:45.120Z",
    "data_age_seconds": 1.2,
    "captured_at": "2026-11-12T10:30:40.002Z",
    "sequence": 17,
    "checksum": "9f2c…",
    "scraper_id": "node-1",
    "source": "scraper",
    "sync": "in_sync",
    "phase": "active",
    "open_findings": 0,
}
_SNAPSHOT = {
    "sequence": 17,
    "checksum": "9f2c…",
    "created_at": "2026-11-12T10:30:40.002Z",
    "scraper_id": "node-1",
    "update_latency_ms": 12,
    "data_source": "scraper",
    "provenance": {"*": {"source": "crex", "confidence": 1.0, "at": "2026-11-12T10:30:40.002Z"}},
    "payload": {"matchId": 1, "status": "live"},
}
_OF_MATCH = {"matchId": 1, "match_id": "crex_11HD"}
_DELTA = {
    "_diff_type": "update",
    "_sequence_delta": 2,
    "_removed": ["headline"],
    "status": "live",
    "_metadata": _METADATA,
}
_FINDING = {
    "kind": "gap",
    "place": "1:14",
    "detail": "missing: ball 3, 4",
    "opened_at": "2026-11-12T10:30:40.002Z",
    "closed_at": None,
}
_HEALTH_ROW = {
    "scraper_id": "node-1",
    "timestamp": "2026-11-12T10:30:45.120Z",
    "matchId": 1,
    "match_id": "crex_11HD",
    "health_status": "degraded",
    "error_count": 3,
    "memory_mb": 31.4,
    "cpu_percent": 0.6,
    "update_latency_ms": None,
    "polling_interval_seconds": 2.5,
    "uptime_seconds": None,
    "last_update_age_seconds": 124.0,
}
_HEALTH = {
    "status": "healthy",
    "grade": "healthy",
    "reasons": [],
    "snapshot_age_seconds": 0.4,
    "timestamp": "2026-11-12T10:30:46.320Z",
    "uptime_seconds": 900.0,
    "active_scraper_count": 1,
    "total_matches_scraping": 1,
    "total_memory_mb": 61.4,
}

_STATUS = {
    "grade": "healthy",
    "status": "healthy",
    "reasons": [],
    "snapshot_age_seconds": 0.4,
    "freshness": {"median": 1.2, "p50": 1.2, "p95": 2.4, "max": 2.6, "count": 13},
    "queue_depth": 0,
    "active_tasks": 2,
    "audit_entries": [_RECOVERY],
}
_COMMAND = {
    "id": 7,
    "kind": "watch",
    "argument": "https://crex.com/cricket-live-score/a-vs-b-match-updates-11HD",
    "asked_by": "api: jane",
    "asked_at": "2026-11-12T10:30:45.120Z",
    "state": "done",
    "refusal": None,
    "answer": "Watching crex_11HD as match 12.",
    "answered_at": "2026-11-12T10:30:45.530Z",
}

_AGE_HEADERS = {
    "X-Data-Freshness": {"description": "When the last accepted poll was, ISO 8601.", "schema": {"type": "string"}},
    "X-Data-Age-Seconds": {"description": "Seconds since that poll.", "schema": {"type": "number"}},
    "X-Data-Sync": {
        "description": "Whether the data were compared with the source's full event list since the last start; "
        "`unwatched` when the match is not polled any more.",
        "schema": {"type": "string", "enum": ["in_sync", "recovering", "unwatched"]},
    },
}
_ETAG = {"ETag": {"description": "The checksum of the stored payload.", "schema": {"type": "string"}}}
_AN_ERROR = {"error": "One sentence that says what is wrong and what to do."}

#: What a status code means, for all routes that may return it.
_TOKEN_ERRORS = {
    401: "The Bearer token is missing or not valid.",
    403: "The token does not have the permission `read`.",
}
_MATCH_ERRORS = {400: "This is not a match id.", 404: "No such match, or it was not polled yet.", **_TOKEN_ERRORS}
_BAD_PARAMETER = {422: "A parameter is not valid."}


def _response(description: str, example: object, headers: dict[str, Any] | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {"description": description, "content": content, "headers": headers or {}}


def _route(
    tag: str, responses: Mapping[int, dict[str, Any]], errors: Mapping[int, str] | None = None, **more: Any
) -> dict[str, Any]:
    failures = {status: _response(meaning, _AN_ERROR) for status, meaning in (errors or {}).items()}
    return {"tags": [tag], "responses": {**responses, **failures}, **more}


# --- data routes ------------------------------------------------------------------------------------------------------

MATCH_INFO = _route(
    "matches",
    {
        200: _response("The match.", {"matchId": 1, "status": "live", "_metadata": _METADATA}, _AGE_HEADERS | _ETAG),
        304: {"description": "The payload is unchanged; the age headers are current.", "headers": _AGE_HEADERS},
    },
    _MATCH_ERRORS,
    openapi_extra={
        "security": [{"HTTPBearer": []}],
        "parameters": [
            {
                "name": "match_id",
                "in": "path",
                "required": True,
                "description": "The number of the match, or source and id at the source.",
                "schema": {"type": "string"},
                "examples": {"number": {"value": "1"}, "source and id": {"value": "crex_11HD"}},
            },
            {"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}},
        ],
    },
)


def _events_page(sport: Sport[Any]) -> dict[str, Any]:
    """Return a page with the sport's example of an event."""
    if sport.example is None:
        return {}
    at = datetime(2026, 11, 12, 10, 30, 45, 120_000, tzinfo=UTC)
    stored = StoredEvent(event=sport.example, seq=41, epoch=1, captured_at=at)
    source = sport.example.source or sport.name
    return {
        "matchId": 1,
        "match_id": f"{source}_11HD",
        "events": [event_of(sport, stored, source)],
        "next_after": 41,
        "has_more": False,
    }


def events(sport: str) -> dict[str, Any]:
    """Return the documentation of a sport's events route, with the sport's own example."""
    page = _response("The events.", _events_page(sport_named(sport)), _AGE_HEADERS)
    return _route("matches", {200: page}, _MATCH_ERRORS | _BAD_PARAMETER)


HISTORY = _route(
    "matches",
    {200: _response("The snapshots.", _OF_MATCH | {"snapshots": [_SNAPSHOT]}, _AGE_HEADERS)},
    _MATCH_ERRORS | _BAD_PARAMETER | {404: "No such match, or this snapshot is not stored any more."},
)
DELTA = _route(
    "matches",
    {200: _response("The difference.", _DELTA, _AGE_HEADERS)},
    _MATCH_ERRORS | _BAD_PARAMETER | {400: "This is not a match id, or `since` is in the future."},
)
FINDINGS = _route(
    "matches",
    {200: _response("The findings.", _OF_MATCH | {"open": 1, "total": 1, "findings": [_FINDING]}, _AGE_HEADERS)},
    _MATCH_ERRORS | _BAD_PARAMETER | {404: "No such match."},
)
MATCHES = _route(
    "matches",
    {200: _response("The matches.", {"matches": [_MATCH], "next_after": None})},
    _TOKEN_ERRORS | _BAD_PARAMETER,
)

# --- health routes ----------------------------------------------------------------------------------------------------

HEALTH = _route(
    "health",
    {200: _response("Healthy or degraded.", _HEALTH), 503: _response("Down.", _HEALTH | {"status": "down"})},
)
LIVE = _route("health", {200: _response("It responds.", {"status": "alive", "loop_lag_seconds": 0.0012})})
READY = _route("health", {200: _response("Ready.", {"status": "ready"})}, {503: "Not ready, with the reasons."})
STATUS = _route("health", {200: _response("The status.", _STATUS)}, _TOKEN_ERRORS)
STATUS_HISTORY = _route(
    "health",
    {200: _response("The rows.", {"history": [_HEALTH_ROW]})},
    _TOKEN_ERRORS | _BAD_PARAMETER | {503: "The health log cannot be read."},
)
RECOVERIES = _route(
    "health",
    {200: _response("The recoveries.", {"recoveries": [_RECOVERY], "snapshot_age_seconds": 0.4})},
    _TOKEN_ERRORS | _BAD_PARAMETER | {503: "The audit cannot be read."},
)

# --- admin routes -----------------------------------------------------------------------------------------------------


def _plain(description: str, example: object = _AN_ERROR) -> dict[str, Any]:
    """Return a response without a declared schema."""
    return {"description": description, "content": {"application/json": {"example": example}}}


_ADMIN_ERRORS = {
    401: _plain("The Bearer token is missing or not valid."),
    403: _plain("The token does not have the permission `admin`."),
}
#: The routes that send a command.
SEND = _route(
    "admin",
    {
        200: _plain("Done.", _COMMAND),
        202: _plain("Not answered yet: poll `Location`.", _COMMAND | {"state": "taken", "answer": None}),
        **_ADMIN_ERRORS,
        404: _plain("No such match, site or source."),
        409: _plain("The command conflicts with the current state."),
        422: _plain("The body or a parameter is not valid."),
        429: _plain("Too many commands are pending."),
        503: _plain("No scraper is running, a file is unreadable, or memory is insufficient."),
    },
)
_WATCH_BODY = {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}}
_WATCH_CONTENT = {"application/json": {"schema": _WATCH_BODY, "example": {"url": _COMMAND["argument"]}}}
WATCH = SEND | {"openapi_extra": {"requestBody": {"required": True, "content": _WATCH_CONTENT}}}
COMMAND = _route(
    "admin",
    {
        200: _plain("The command.", _COMMAND),
        **_ADMIN_ERRORS,
        404: _plain("No such command."),
        503: _plain("The commands cannot be read at the moment."),
    },
)
