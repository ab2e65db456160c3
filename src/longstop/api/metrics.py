"""Prometheus metrics of the API process: its requests, memory, CPU and open files."""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest

#: Other methods share one label value, so that clients cannot create series.
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS"})
#: The route of requests that match none.
UNMATCHED = "unmatched"


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
