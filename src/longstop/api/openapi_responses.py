"""Responses of all routes, for the OpenAPI document. Descriptions are the routes' docstrings; the examples are JSON.

The routes return bytes that the scraper has encoded, so there are no response models to generate this from.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from longstop.api.match_documents import event_of
from longstop.model.event import StoredEvent
from longstop.sports.base import Sport
from longstop.sports.registry import sport_named

_EXAMPLES = json.loads((files("longstop.api") / "openapi_examples.json").read_text(encoding="utf-8"))
_METADATA, _HEALTH, _RECOVERY, _COMMAND = (_EXAMPLES[name] for name in ("metadata", "health", "recovery", "command"))
_DELTA = _EXAMPLES["delta"] | {"_metadata": _METADATA}
_FINDINGS = {"open": 1, "total": 1, "findings": [_EXAMPLES["finding"]]}
_STATUS = _EXAMPLES["status"] | {"audit_entries": [_RECOVERY]}
_OF_MATCH = {"matchId": 1, "match_id": "crex_11HD"}

_AGE_HEADERS = {
    "X-Data-Freshness": {"description": "When the last accepted poll was, ISO 8601.", "schema": {"type": "string"}},
    "X-Data-Age-Seconds": {"description": "Seconds since that poll.", "schema": {"type": "number"}},
    "X-Data-Sync": {
        "description": "Whether the data were compared with the source's full event list since the last start; "
        "`unwatched` when the match is not polled any more.",
        "schema": {"type": "string", "enum": ["in_sync", "recovering", "unwatched"]},
    },
    "X-Data-Reliable": {
        "description": "Whether nothing speaks against the data; `reliability_reasons` in the body says what does.",
        "schema": {"type": "string", "enum": ["true", "false"]},
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


#: What every route may return, or the server in place of it.
_ALWAYS = {
    400: "This is not an HTTP request that can be read.",
    408: "The request took too long to arrive.",
    413: "The body is too large.",
    414: "The URL is too long.",
    431: "The headers are too large or too many.",
    503: "The store cannot be read, or the API is too busy or out of connections; see `Retry-After`.",
}


def _route(
    tag: str, responses: Mapping[int, dict[str, Any]], errors: Mapping[int, str] | None = None, **more: Any
) -> dict[str, Any]:
    failures = {status: _response(meaning, _AN_ERROR) for status, meaning in (_ALWAYS | dict(errors or {})).items()}
    return {"tags": [tag], "responses": dict(sorted({**failures, **responses}.items())), **more}


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
    {200: _response("The snapshots.", _OF_MATCH | {"snapshots": [_EXAMPLES["snapshot"]]}, _AGE_HEADERS)},
    _MATCH_ERRORS | _BAD_PARAMETER | {404: "No such match, or this snapshot is not stored any more."},
)
DELTA = _route(
    "matches",
    {200: _response("The difference.", _DELTA, _AGE_HEADERS)},
    _MATCH_ERRORS | _BAD_PARAMETER | {400: "This is not a match id, or `since` is in the future."},
)
FINDINGS = _route(
    "matches",
    {200: _response("The findings.", _OF_MATCH | _FINDINGS, _AGE_HEADERS)},
    _MATCH_ERRORS | _BAD_PARAMETER | {404: "No such match."},
)
MATCHES = _route(
    "matches",
    {200: _response("The matches.", {"matches": [_EXAMPLES["match"]], "next_after": None})},
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
    {200: _response("The rows.", {"history": [_EXAMPLES["health_row"]]})},
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
