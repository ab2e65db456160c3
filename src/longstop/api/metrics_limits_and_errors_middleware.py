"""Middleware around every route: metrics, size limits, security headers, and errors as one JSON sentence."""

import time
import traceback
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longstop.api.json_and_error_responses import RETRY_SOON, STORE_UNREADABLE, error_response
from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Severity, Telemetry

MAX_TARGET_BYTES = 2048
#: Commands have a small body. Other routes need none, but some clients always send one.
MAX_BODY_BYTES = 64 * 1024
#: In the state of a request whose connection is one of the reserve, which serves only the probes.
IN_RESERVE = "is_in_reserve"
PROBES = frozenset({"/live", "/ready"})

_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


#: Other methods share one label value, so that clients cannot create series.
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS"})
#: The status in the metrics when a client left before its answer began.
CLIENT_GONE = 499
#: The route of requests that match none.
UNMATCHED = "unmatched"


class RequestFailed(Telemetry, frozen=True, kw_only=True):
    """A request failed on the server. The client gets no details."""

    name = "request.failed"
    severity = Severity.ERROR
    method: str
    path: str
    error_type: str
    error_message: str
    stack_trace: str


class RequestMetrics:
    """Counts and times requests by route template, method and status. The labels are bounded."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "longstop_api_requests", "Requests by outcome.", ("route", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "longstop_api_request_seconds", "Duration of requests.", ("route", "method"), registry=self._registry
        )

    def observe(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        """Record a finished request by its ASGI scope, which holds the route after routing."""
        route = getattr(scope.get("route"), "path", UNMATCHED)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def exposition(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class SafetyMiddleware:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, bus: Bus, metrics: RequestMetrics) -> None:
        self._app = app
        self._bus = bus
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_security_headers(message)
            await send(message)

        try:
            await (_reject(scope) or self._app)(scope, receive, send_safely)
        except ClientDisconnect:
            status = status or CLIENT_GONE
        except Exception as error:  # any error: the client gets a sentence, the log the traceback
            self._bus.emit(_failure(scope, error))
            if status:
                raise
            await _error_page(error)(scope, receive, send_safely)
        finally:
            self._metrics.observe(scope, status or 500, time.perf_counter() - started)


def _add_security_headers(message: Message) -> None:
    headers = MutableHeaders(raw=message["headers"])
    for name, value in _SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    if message["status"] >= 400:
        headers["Cache-Control"] = "no-store"


def _reject(scope: Scope) -> Response | None:
    """Return the answer to a request that no route may see."""
    if scope.get("state", {}).get(IN_RESERVE) and scope["path"] not in PROBES:
        return error_response(503, "Too many connections are open; try again in a few seconds.", RETRY_SOON)
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_TARGET_BYTES:
        return error_response(414, f"The URL is longer than {MAX_TARGET_BYTES} bytes.")
    announced = Headers(scope=scope).get("content-length", "0")
    # The body stays unread, so the connection cannot serve another request.
    if not announced.isdecimal() or int(announced[:20]) > MAX_BODY_BYTES:
        return error_response(413, f"The body is larger than {MAX_BODY_BYTES} bytes.", {"Connection": "close"})
    return None


def _error_page(error: Exception) -> Response:
    if isinstance(error, StorageError):
        return error_response(503, STORE_UNREADABLE, RETRY_SOON)
    return error_response(500, "Internal error; see request.failed in the log of the API.")


def _failure(scope: Scope, error: Exception) -> RequestFailed:
    return RequestFailed(
        method=scope["method"],
        path=scope["path"],
        error_type=type(error).__name__,
        error_message=str(error),
        # An error of a file is no bug: its message has the file and the cause.
        stack_trace="" if isinstance(error, StorageError) else "".join(traceback.format_exception(error)),
    )


def add_middleware(app: FastAPI, bus: Bus, metrics: RequestMetrics) -> None:
    app.add_middleware(SafetyMiddleware, bus=bus, metrics=metrics)

    @app.exception_handler(HTTPException)
    async def _on_http_error(_request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers) if error.headers else None
        return error_response(error.status_code, _sentence(error), headers)

    @app.exception_handler(RequestValidationError)
    async def _on_invalid_parameter(_request: Request, error: RequestValidationError) -> Response:
        problems = (f"{each['loc'][-1]}: {each['msg'][:1].lower()}{each['msg'][1:]}" for each in error.errors())
        return error_response(422, f"Invalid request: {'; '.join(problems)}.")


def _sentence(error: HTTPException) -> str:
    """Replace the framework's texts for an unknown path or method."""
    match error.detail:
        case "Not Found":
            return "No such route; /docs lists them."
        case "Method Not Allowed":
            return f"This route only accepts {(error.headers or {}).get('Allow', 'GET')}."
        case detail:
            return detail
