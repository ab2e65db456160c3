"""Routes for browsers and Prometheus, without a token: `/`, `/docs`, `/metrics`."""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST

from longstop import __version__
from longstop.api.json_and_error_responses import NO_STORE, json_response
from longstop.api.metrics_limits_and_errors_middleware import RequestMetrics

_INDEX = {
    "name": "longstop",
    "version": __version__,
    "docs": "/docs",
    "openapi": "/openapi.json",
    "health": "/health",
    "status": "/status",
    "metrics": "/metrics",
}


def add_pages(app: FastAPI, metrics: RequestMetrics) -> None:
    """Add the routes. They are not part of the OpenAPI document."""
    # Packaged with the product: the page loads nothing from other hosts.
    page = (files("longstop.api") / "docs.html").read_bytes()
    docs_headers = {"Cache-Control": "no-cache", "Content-Security-Policy": _policy(page)}

    async def index() -> Response:
        return json_response(_INDEX, headers={"Cache-Control": "no-cache"})

    async def docs() -> Response:
        return Response(page, 200, docs_headers, "text/html; charset=utf-8")

    async def exposition() -> Response:
        return Response(metrics.exposition(), 200, NO_STORE, CONTENT_TYPE_LATEST)

    for path, endpoint in (("/", index), ("/docs", docs), ("/metrics", exposition)):
        app.router.add_api_route(path, endpoint, include_in_schema=False)


def _policy(page: bytes) -> str:
    """Return a content security policy that allows exactly the style and the script of the page."""
    hashes = {
        name: b64encode(sha256(content).digest()).decode()
        for name, content in re.findall(rb"<(style|script)>(.*?)</\1>", page, re.DOTALL)
    }
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[b'style']}'; script-src 'sha256-{hashes[b'script']}';"
        " connect-src 'self'; frame-ancestors 'none'"
    )
