"""The routes in the words of the OpenAPI document: what they give, with examples."""

from typing import Any

from longstop.sports.registry import sport_named

_RECOVERY = {
    "id": "5f3c…",
    "kind": "recycle",
    "trigger": "nothing in play was read for 92 s",
    "subject": "node-1",
    "process": "scraper",
    "began_at": "2026-11-12T10:30:45.120Z",
    "duration_seconds": 4.2,
    "pids_before": [4711, 4720],
    "pids_after": [4711, 4755],
    "outcome": "recovered",
    "observed": "crex_11HD was read again",
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

_AGE_HEADERS = {
    "X-Data-Freshness": {"description": "The last accepted poll, ISO 8601.", "schema": {"type": "string"}},
    "X-Data-Age-Seconds": {"description": "Seconds since that poll.", "schema": {"type": "number"}},
    "X-Data-Sync": {
        "description": "Whether the data were compared with the source's whole event list since the last start; "
        "`unwatched` when nobody does that any more.",
        "schema": {"type": "string", "enum": ["in_sync", "recovering", "unwatched"]},
    },
}
_ETAG = {"ETag": {"description": "The checksum of the stored payload.", "schema": {"type": "string"}}}


def _answer(description: str, example: object, headers: dict[str, Any] | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {"description": description, "content": content, "headers": headers or {}}


def _error(description: str) -> dict[str, Any]:
    return _answer(description, {"error": "One sentence that says what is wrong."})


_TOKEN_ERRORS = {401: _error("No valid Bearer token."), 403: _error("The token lacks the permission `read`.")}
_MATCH_ERRORS = {400: _error("This is no match id."), 404: _error("No such match, or it was not read yet.")}

MATCH_INFO: dict[str, Any] = {
    "summary": "A match, with its age",
    "description": "The newest payload as it was stored, with `_metadata` added. Send its ETag: 304 if unchanged.",
    "tags": ["matches"],
    "responses": {
        200: _answer("The match.", {"matchId": 1, "status": "live", "_metadata": _METADATA}, _AGE_HEADERS | _ETAG),
        304: {"description": "The payload is the one you have; the age headers are new.", "headers": _AGE_HEADERS},
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
                "description": "The number of the match, or its source and the source's id.",
                "schema": {"type": "string"},
                "examples": {"number": {"value": "1"}, "source and id": {"value": "crex_11HD"}},
            },
            {"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}},
        ],
    },
}

EVENTS: dict[str, Any] = {
    "summary": "The events of a match after a sequence number",
    "description": (
        "Every version of every event, in the order of storing. Go on with `after=next_after` while `has_more`. "
        "With `current=true`: only the latest live version of each event, all of them, in the order of play."
    ),
    "tags": ["matches"],
    "responses": {
        422: _error("A parameter is wrong."),
        **_MATCH_ERRORS,
        **_TOKEN_ERRORS,
    },
}


def events(sport: str) -> dict[str, Any]:
    """Return what describes a sport's events."""
    answer = _answer("The events.", sport_named(sport).example, _AGE_HEADERS)
    return EVENTS | {"responses": {200: answer} | EVENTS["responses"]}


HISTORY: dict[str, Any] = {
    "summary": "The kept snapshots of a match, newest first",
    "description": "At most the last five, each with its checksum and who said what. With `sequence`: that one alone.",
    "tags": ["matches"],
    "responses": {
        200: _answer("The snapshots.", {"matchId": 1, "match_id": "crex_11HD", "snapshots": [_SNAPSHOT]}, _AGE_HEADERS),
        422: _error("A parameter is wrong."),
        **_MATCH_ERRORS,
        404: _error("No such match, or this snapshot is not kept."),
        **_TOKEN_ERRORS,
    },
}

DELTA: dict[str, Any] = {
    "summary": "What changed since a snapshot",
    "description": (
        "The top-level fields that differ from the snapshot with the sequence number `since`, and the names of those "
        "that are gone under `_removed`. When that snapshot is not kept any more: `_diff_type` is `initial`, with the "
        "whole payload. Go on with `since` set to `_metadata.sequence`."
    ),
    "tags": ["matches"],
    "responses": {
        200: _answer(
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
        422: _error("A parameter is wrong."),
        **_MATCH_ERRORS,
        400: _error("This is no match id, or `since` is still to come."),
        **_TOKEN_ERRORS,
    },
}

FINDINGS: dict[str, Any] = {
    "summary": "Gaps and mismatches of a match, open ones first",
    "description": "What is missing or does not add up in what the source shows, until it is answered.",
    "tags": ["matches"],
    "responses": {
        200: _answer(
            "The findings.",
            {"matchId": 1, "match_id": "crex_11HD", "open": 1, "total": 1, "findings": [_FINDING]},
            _AGE_HEADERS,
        ),
        422: _error("A parameter is wrong."),
        **_MATCH_ERRORS,
        404: _error("No such match."),
        **_TOKEN_ERRORS,
    },
}

MATCHES: dict[str, Any] = {
    "summary": "The matches, a page at a time",
    "description": "In the order of their numbers. Go on with `after=next_after` until it is null.",
    "tags": ["matches"],
    "responses": {
        200: _answer("The matches.", {"matches": [_MATCH], "next_after": None}),
        422: _error("A parameter is wrong."),
        **_TOKEN_ERRORS,
    },
}

HEALTH: dict[str, Any] = {
    "summary": "How it goes, over all and by match",
    "description": (
        "Measured at `timestamp`, `snapshot_age_seconds` ago: usually a second, more while files cannot be read. "
        "What is not measured is null."
    ),
    "tags": ["health"],
    "responses": {200: _answer("Healthy or degraded.", _HEALTH), 503: _answer("Down.", _HEALTH | {"status": "down"})},
}

LIVE: dict[str, Any] = {
    "summary": "Whether this process answers",
    "tags": ["health"],
    "responses": {200: _answer("It does.", {"status": "alive", "loop_lag_seconds": 0.0012})},
}

READY: dict[str, Any] = {
    "summary": "Whether the store can be read and a scraper was heard",
    "tags": ["health"],
    "responses": {200: _answer("Ready.", {"status": "ready"}), 503: _error("Not ready, with the reasons.")},
}

STATUS: dict[str, Any] = {
    "summary": "The whole picture: grade, ages, breakers, memory, processes, recoveries",
    "description": "For those who run it. What is not measured, or could not be read, is null.",
    "tags": ["health"],
    "responses": {
        200: _answer(
            "The picture.",
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
    "summary": "How nodes and matches were over time, the newest first",
    "description": "A row for each node and minute, one for each match whose health_status changed; kept for 30 days.",
    "tags": ["health"],
    "responses": {
        200: _answer(
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
        422: _error("A parameter is wrong."),
        503: _error("The health log cannot be read."),
        **_TOKEN_ERRORS,
    },
}

RECOVERIES: dict[str, Any] = {
    "summary": "What was done without a person, the newest first",
    "description": "The last hundred at most, each with why, how long it took, and what was seen to come of it.",
    "tags": ["health"],
    "responses": {
        200: _answer("The recoveries.", {"recoveries": [_RECOVERY], "snapshot_age_seconds": 0.4}),
        422: _error("A parameter is wrong."),
        503: _error("The audit cannot be read."),
        **_TOKEN_ERRORS,
    },
}
