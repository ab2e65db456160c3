"""Summaries, descriptions, responses and examples of all routes, for the OpenAPI document.

The routes return bytes that the scraper has encoded, so there are no response models to generate this from.
"""

from typing import Any

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
_FINDING = {
    "kind": "gap",
    "place": "1:14",
    "detail": "missing: ball 3, 4",
    "opened_at": "2026-11-12T10:30:40.002Z",
    "closed_at": None,
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


def _response(description: str, example: object, headers: dict[str, Any] | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {"description": description, "content": content, "headers": headers or {}}


def _error(description: str) -> dict[str, Any]:
    return _response(description, _AN_ERROR)


_TOKEN_ERRORS = {
    401: _error("The Bearer token is missing or not valid."),
    403: _error("The token does not have the permission `read`."),
}
_MATCH_ERRORS = {400: _error("This is not a match id."), 404: _error("No such match, or it was not polled yet.")}
_BAD_PARAMETER = {422: _error("A parameter is not valid.")}

# --- data routes ------------------------------------------------------------------------------------------------------

MATCH_INFO: dict[str, Any] = {
    "summary": "A match, with its age",
    "description": "The newest stored payload, with `_metadata` added. Send its ETag to get 304 while it is unchanged.",
    "tags": ["matches"],
    "responses": {
        200: _response("The match.", {"matchId": 1, "status": "live", "_metadata": _METADATA}, _AGE_HEADERS | _ETAG),
        304: {"description": "The payload is unchanged; the age headers are current.", "headers": _AGE_HEADERS},
        **_MATCH_ERRORS,
        **_TOKEN_ERRORS,
    },
    "openapi_extra": {
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
}


def events(sport: str) -> dict[str, Any]:
    """Return the documentation of a sport's events route, with the sport's own example."""
    return {
        "summary": "The events of a match after a sequence number",
        "description": (
            "Every version of every event, in the order they were stored. Continue with `after=next_after` while "
            "`has_more`. With `current=true`: only the latest live version of each event, all at once, in the order "
            "of play."
        ),
        "tags": ["matches"],
        "responses": {
            200: _response("The events.", sport_named(sport).example, _AGE_HEADERS),
            **_BAD_PARAMETER,
            **_MATCH_ERRORS,
            **_TOKEN_ERRORS,
        },
    }


HISTORY: dict[str, Any] = {
    "summary": "The stored snapshots of a match, newest first",
    "description": "The last five at most, each with checksum and provenance. With `sequence`: only that one.",
    "tags": ["matches"],
    "responses": {
        200: _response(
            "The snapshots.", {"matchId": 1, "match_id": "crex_11HD", "snapshots": [_SNAPSHOT]}, _AGE_HEADERS
        ),
        **_BAD_PARAMETER,
        **_MATCH_ERRORS,
        404: _error("No such match, or this snapshot is not stored any more."),
        **_TOKEN_ERRORS,
    },
}

DELTA: dict[str, Any] = {
    "summary": "What changed since a snapshot",
    "description": (
        "The top-level fields that differ from the snapshot with the sequence number `since`; `_removed` names the "
        "fields that are gone. If that snapshot is not stored any more, `_diff_type` is `initial` and the payload is "
        "complete. Continue with `since` set to `_metadata.sequence`."
    ),
    "tags": ["matches"],
    "responses": {
        200: _response(
            "The difference.",
            {
                "_diff_type": "update",
                "_sequence_delta": 2,
                "_removed": ["headline"],
                "status": "live",
                "_metadata": _METADATA,
            },
            _AGE_HEADERS,
        ),
        **_BAD_PARAMETER,
        **_MATCH_ERRORS,
        400: _error("This is not a match id, or `since` is in the future."),
        **_TOKEN_ERRORS,
    },
}

FINDINGS: dict[str, Any] = {
    "summary": "Gaps and mismatches of a match, open ones first",
    "description": "What is missing or inconsistent in the data of the source. A finding closes when it is resolved.",
    "tags": ["matches"],
    "responses": {
        200: _response(
            "The findings.",
            {"matchId": 1, "match_id": "crex_11HD", "open": 1, "total": 1, "findings": [_FINDING]},
            _AGE_HEADERS,
        ),
        **_BAD_PARAMETER,
        **_MATCH_ERRORS,
        404: _error("No such match."),
        **_TOKEN_ERRORS,
    },
}

MATCHES: dict[str, Any] = {
    "summary": "The matches, page by page",
    "description": "Ordered by number. Continue with `after=next_after` until it is null.",
    "tags": ["matches"],
    "responses": {
        200: _response("The matches.", {"matches": [_MATCH], "next_after": None}),
        **_BAD_PARAMETER,
        **_TOKEN_ERRORS,
    },
}

# --- health routes ----------------------------------------------------------------------------------------------------

HEALTH: dict[str, Any] = {
    "summary": "Health, overall and per match",
    "description": (
        "Measured at `timestamp`, `snapshot_age_seconds` ago: normally one second, more while files cannot be read. "
        "What was not measured is null."
    ),
    "tags": ["health"],
    "responses": {
        200: _response("Healthy or degraded.", _HEALTH),
        503: _response("Down.", _HEALTH | {"status": "down"}),
    },
}

LIVE: dict[str, Any] = {
    "summary": "Whether this process responds",
    "tags": ["health"],
    "responses": {200: _response("It responds.", {"status": "alive", "loop_lag_seconds": 0.0012})},
}

READY: dict[str, Any] = {
    "summary": "Whether the store is readable and a scraper is running",
    "tags": ["health"],
    "responses": {200: _response("Ready.", {"status": "ready"}), 503: _error("Not ready, with the reasons.")},
}

STATUS: dict[str, Any] = {
    "summary": "Full status: grade, ages, breakers, memory, processes, recoveries",
    "description": "For operators. What was not measured, or could not be read, is null.",
    "tags": ["health"],
    "responses": {
        200: _response(
            "The status.",
            {
                "grade": "healthy",
                "status": "healthy",
                "reasons": [],
                "snapshot_age_seconds": 0.4,
                "freshness": {"median": 1.2, "p50": 1.2, "p95": 2.4, "max": 2.6, "count": 13},
                "queue_depth": 0,
                "active_tasks": 2,
                "audit_entries": [_RECOVERY],
            },
        ),
        **_TOKEN_ERRORS,
    },
}

STATUS_HISTORY: dict[str, Any] = {
    "summary": "Health of nodes and matches over time, newest first",
    "description": (
        "One row per node and minute, and one per match whose health_status changed. Rows are kept for 30 days."
    ),
    "tags": ["health"],
    "responses": {
        200: _response(
            "The rows.",
            {
                "history": [
                    {
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
                ]
            },
        ),
        **_BAD_PARAMETER,
        503: _error("The health log cannot be read."),
        **_TOKEN_ERRORS,
    },
}

RECOVERIES: dict[str, Any] = {
    "summary": "Automatic recoveries, newest first",
    "description": "The last hundred at most, each with its trigger, duration and observed outcome.",
    "tags": ["health"],
    "responses": {
        200: _response("The recoveries.", {"recoveries": [_RECOVERY], "snapshot_age_seconds": 0.4}),
        **_BAD_PARAMETER,
        503: _error("The audit cannot be read."),
        **_TOKEN_ERRORS,
    },
}

# --- admin routes -----------------------------------------------------------------------------------------------------


def _plain(description: str, example: object) -> dict[str, Any]:
    """Return a response without a declared schema."""
    return {"description": description, "content": {"application/json": {"example": example}}}


_ADMIN_ERRORS = {
    401: _plain("The Bearer token is missing or not valid.", _AN_ERROR),
    403: _plain("The token does not have the permission `admin`.", _AN_ERROR),
}


def _command(summary: str, description: str, **more: Any) -> dict[str, Any]:
    return {
        "summary": summary,
        "description": f"{description} Needs the permission `admin`.",
        "tags": ["admin"],
        "responses": {
            200: _plain("Done.", _COMMAND),
            202: _plain("Not answered yet: poll `Location`.", _COMMAND | {"state": "taken", "answer": None}),
            **_ADMIN_ERRORS,
            404: _plain("No such match, site or source.", _AN_ERROR),
            409: _plain("The command conflicts with the current state.", _AN_ERROR),
            422: _plain("The body or a parameter is not valid.", _AN_ERROR),
            429: _plain("Too many commands are pending.", _AN_ERROR),
            503: _plain("No scraper is running, a file is unreadable, or memory is insufficient.", _AN_ERROR),
        },
        **more,
    }


_WATCH_BODY = {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}}

WATCH = _command(
    "Watch a match",
    "Takes the URL of its page. The match is polled until it ends or is unwatched, whether the site lists it or not.",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _WATCH_BODY, "example": {"url": _COMMAND["argument"]}}},
        }
    },
)
UNWATCH = _command("Unwatch a match", "Stops polling it for good, also after a restart.")
PAUSE_MATCH = _command("Pause a match", "Stops polling it until it is resumed, also after a restart.")
RESUME_MATCH = _command("Resume a match", "Restarts polling with a full poll.")
PAUSE_SOURCE = _command("Pause a source", "Sends no request to its site until it is resumed, also after a restart.")
RESUME_SOURCE = _command("Resume a source", "Restarts polling of all its matches.")
RECYCLE = _command("Restart connections and browsers", "Restarts polling of all matches.")

COMMAND: dict[str, Any] = {
    "summary": "The outcome of a command",
    "description": "`state` is pending, taken, done, refused, failed or expired. Needs the permission `admin`.",
    "tags": ["admin"],
    "responses": {
        200: _plain("The command.", _COMMAND),
        **_ADMIN_ERRORS,
        404: _plain("No such command.", _AN_ERROR),
        503: _plain("The commands cannot be read at the moment.", _AN_ERROR),
    },
}
