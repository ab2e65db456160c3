"""The routes of those who run it, in the words of the OpenAPI document."""

from typing import Any

_COMMAND = {
    "id": 7,
    "kind": "watch",
    "argument": "https://crex.com/cricket-live-score/a-vs-b-match-updates-11HD",
    "asked_by": "api: jane",
    "asked_at": "2026-11-12T10:30:45.120Z",
    "state": "done",
    "refusal": None,
    "answer": "crex_11HD is watched from now on, as match 12.",
    "answered_at": "2026-11-12T10:30:45.530Z",
}


def _answer(description: str, example: object) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"example": example}}}


def _error(description: str) -> dict[str, Any]:
    return _answer(description, {"error": "One sentence that says what is wrong."})


def _order(summary: str, description: str, **more: Any) -> dict[str, Any]:
    return {
        "summary": summary,
        "description": f"{description} Needs the permission `admin`.",
        "tags": ["admin"],
        "responses": {
            200: _answer("It is done.", _COMMAND),
            202: _answer("Not answered yet: ask at `Location`.", _COMMAND | {"state": "taken", "answer": None}),
            401: _error("No valid Bearer token."),
            403: _error("The token lacks the permission `admin`."),
            404: _error("No such match, site or source."),
            409: _error("It does not fit how things are."),
            422: _error("The body or a parameter is wrong."),
            429: _error("Too many commands are waiting."),
            503: _error("No scraper or file answers, it failed, or there is no memory for it."),
        },
        **more,
    }


_PAGE = {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}}

WATCH = _order(
    "Watch a match",
    "By the address of its page at its site; it is watched until it is over or unwatched, listed or not.",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _PAGE, "example": {"url": _COMMAND["argument"]}}},
        }
    },
)
UNWATCH = _order("Let go of a match", "It is not taken up again by itself, not even after a restart.")
PAUSE_MATCH = _order("Pause a match", "It is left alone until it is resumed, also after a restart.")
RESUME_MATCH = _order("Resume a match", "It begins anew, with a comparison of everything.")
PAUSE_SOURCE = _order("Pause a source", "Its site is asked nothing more until it is resumed, also after a restart.")
RESUME_SOURCE = _order("Resume a source", "All its matches begin anew.")
RECYCLE = _order("Make connections and browsers afresh", "All watches begin anew.")

COMMAND: dict[str, Any] = {
    "summary": "What came of a command",
    "description": "`state` is pending, taken, done, refused, failed or expired. Needs the permission `admin`.",
    "tags": ["admin"],
    "responses": {
        200: _answer("The command.", _COMMAND),
        401: _error("No valid Bearer token."),
        403: _error("The token lacks the permission `admin`."),
        404: _error("No such command."),
        503: _error("The list of commands cannot be read at the moment."),
    },
}
