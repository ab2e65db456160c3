"""What surrounds every route: limits before it, safe headers after it, and errors as one JSON sentence."""

import traceback

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Severity, Telemetry

MAX_TARGET_BYTES = 2048
#: Whoever gives orders sends a small one; the others need none, but some clients always send one.
MAX_BODY_BYTES = 64 * 1024

_SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


class RequestFailed(Telemetry, frozen=True, kw_only=True):
    """A request met an error that is not the client's; the client is told nothing of it but that."""

    name = "request.failed"
    severity = Severity.ERROR
    method: str
    path: str
    error_type: str
    error_message: str
    stack_trace: str


def json_response(document: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(document), status, headers, "application/json")


def error_response(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return json_response({"error": sentence}, status=status, headers=headers)


class Guard:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, bus: Bus) -> None:
        self._app = app
        self._bus = bus

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        refusal = _refuse_oversize(scope)
        if refusal is not None:
            await refusal(scope, receive, answer.send)
            return
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:  # whatever it is, the client gets a sentence and we get the trace
            self._bus.emit(_describe(scope, error))
            if answer.started:
                raise
            await _apology(error)(scope, receive, answer.send)


class _Answer:
    """Adds the safe headers on the way out."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(raw=message["headers"])
            headers.update(_SAFE_HEADERS)
            if message["status"] >= 400:
                headers["Cache-Control"] = "no-store"
        await self._send(message)


def _refuse_oversize(scope: Scope) -> Response | None:
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_TARGET_BYTES:
        return error_response(414, f"The address is longer than {MAX_TARGET_BYTES} bytes.")
    announced = Headers(scope=scope).get("content-length", "0")
    # The body is left unread, so the connection cannot be used for another request.
    if not announced.isdecimal() or int(announced[:20]) > MAX_BODY_BYTES:
        return error_response(413, "No request here needs a body of that size.", {"Connection": "close"})
    return None


def _apology(error: Exception) -> Response:
    if isinstance(error, StorageError):
        return error_response(503, "The store cannot be read at the moment.", {"Retry-After": "5"})
    return error_response(500, "Something went wrong here; it has been recorded.")


def _describe(scope: Scope, error: Exception) -> RequestFailed:
    return RequestFailed(
        method=scope["method"],
        path=scope["path"],
        error_type=type(error).__name__,
        error_message=str(error),
        stack_trace="".join(traceback.format_exception(error)),
    )


def guard(app: FastAPI, bus: Bus) -> None:
    """Put the guard around an app."""
    app.add_middleware(Guard, bus=bus)

    @app.exception_handler(HTTPException)
    async def _on_http_error(_request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers) if error.headers else None
        return error_response(error.status_code, _sentence(error), headers)

    @app.exception_handler(RequestValidationError)
    async def _on_invalid_parameter(_request: Request, error: RequestValidationError) -> Response:
        problems = (f"{each['loc'][-1]}: {each['msg'][:1].lower()}{each['msg'][1:]}" for each in error.errors())
        return error_response(422, f"The request cannot be answered: {'; '.join(problems)}.")


def _sentence(error: HTTPException) -> str:
    """Return our words for what the framework says of a path or method that does not exist."""
    match error.detail:
        case "Not Found":
            return "There is nothing at this address."
        case "Method Not Allowed":
            return f"This address is only for {(error.headers or {}).get('Allow', 'GET')}."
        case own:
            return own
