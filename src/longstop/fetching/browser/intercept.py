"""Captures what a page's script receives from the site, and wakes those who wait for it."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct
from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy
from longstop.fetching.browser.page_request_rules_and_csp import (
    blocked_patterns,
    is_allowed,
    paused_patterns,
    without_speculation,
)
from longstop.fetching.browser.tasks_and_close_after_last_use import TaskSet
from longstop.fetching.browser.traffic import Traffic, request_bytes
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy

#: Captures kept for one page, the latest of each URL.
MAX_KEPT = 64
#: How long the browser may take to hand over a body.
BODY_SECONDS = 10.0
#: Chromium's types of the requests that a page's script sends.
_SCRIPT_REQUESTS = frozenset({"XHR", "Fetch"})


class ResponsePattern(Struct, frozen=True):
    """Which response to wait for: same method, host and path, and a query that contains all given parameters."""

    #: Method, scheme, host and path.
    target: tuple[str, str, str, str]
    query: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, method: str, url: str) -> Self:
        parts = urlsplit(url)
        parameters = parse_qsl(parts.query, keep_blank_values=True)
        return cls((method, parts.scheme, parts.netloc, parts.path or "/"), frozenset(parameters))

    def matches(self, method: str, url: str) -> bool:
        other = ResponsePattern.of(method, url)
        return other.target == self.target and self.query <= other.query


class Capture(Struct, kw_only=True, eq=False):
    """A response of a page: while it is being received, and once it is captured."""

    method: str
    url: str
    #: Chromium's type of the request.
    kind: str
    #: The headers that the page's script sent, with names as it wrote them.
    request_headers: Mapping[str, str]
    status: int = 0
    #: Names in lower case.
    headers: Mapping[str, str] = {}
    is_wanted: bool = False
    #: Decoded bytes received so far.
    size: int = 0
    wire_bytes: int = 0
    #: `None` if it was larger than the limit, so that the browser did not keep it.
    body: bytes | None = None
    #: Chromium's network error if it is incomplete; empty if it is complete.
    failure: str = ""
    #: Its number among the captured responses of this page, from 1.
    number: int = 0
    #: When it was captured, by the event loop's clock.
    at: float = 0.0


def pattern_of(request: FetchRequest) -> ResponsePattern:
    return ResponsePattern.of(request.method, request.url)


def is_listed(url: str, content_type: str, hosts: tuple[str, ...], paths: tuple[str, ...]) -> bool:
    """Return whether a response is captured without a request for it: JSON from listed paths of the source's hosts."""
    parts = urlsplit(url)
    is_path_listed = any(fnmatchcase(parts.path, pattern) for pattern in paths)
    return is_json(content_type) and parts.netloc in hosts and is_path_listed


def is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind in ("application/json", "text/json") or kind.endswith("+json")


class Interception:
    """Observes the network of one page. It is set up before the first navigation, so that it misses nothing."""

    def __init__(self, cdp: CDPSession, policy: FetchPolicy, browsing: BrowserPolicy) -> None:
        self._cdp = cdp
        self._policy = policy
        self._browsing = browsing
        self._expected: set[ResponsePattern] = set()
        #: Responses that are being received, by Chromium's id of the request.
        self._pending: dict[str, Capture] = {}
        self.traffic = Traffic(policy.max_body_bytes)
        #: Requests of the page's own script without a response yet.
        self._script_requests: set[str] = set()
        self._kept: OrderedDict[tuple[str, str], Capture] = OrderedDict()
        self._changed = asyncio.Event()
        self._tasks = TaskSet()
        #: The number of the latest response.
        self.number = 0
        self._main_frame = ""
        #: The load that the page shows, and the one before it, whose late responses are ignored.
        self._load = ""
        self._left_load = ""
        #: The response to the latest navigation.
        self.document: Capture | None = None
        #: The host that the latest navigation was not allowed to reach; empty if it was allowed.
        self.forbidden = ""
        #: When the site last pushed a WebSocket frame, by the event loop's clock: a sign of a change, not the change.
        self.signalled_at = float("-inf")
        #: When the page's script last received anything, by the event loop's clock.
        self.active_at = float("-inf")
        self.on_signal: Callable[[], None] | None = None
        #: Called when a response exceeds the limit; the browser itself goes on receiving it.
        self.on_oversize: Callable[[], None] | None = None

    async def start(self) -> None:
        """Start to observe and to block."""
        listeners: dict[str, Callable[[dict[str, Any]], None]] = {
            "Network.requestWillBeSent": self._on_sent,
            "Network.responseReceived": self._on_response,
            "Network.dataReceived": self._on_data,
            "Network.loadingFinished": self._on_finished,
            "Network.loadingFailed": self._on_failed,
            "Network.webSocketFrameReceived": self._on_frame,
            "Fetch.requestPaused": self._on_paused,
        }
        for name, listener in listeners.items():
            self._cdp.on(name, listener)
        size = self._policy.max_body_bytes
        await self._cdp.send("Network.enable", {"maxTotalBufferSize": 4 * size, "maxResourceBufferSize": size})
        tree = await self._cdp.send("Page.getFrameTree")
        self._main_frame = tree["frameTree"]["frame"]["id"]
        style, private = self._browsing.is_style_blocked, self._policy.allow_private_addresses
        blocked = blocked_patterns(self._policy.hosts, allow_private_addresses=private, is_style_blocked=style)
        await self._cdp.send("Network.setBlockedURLs", {"urlPatterns": blocked})
        await self._cdp.send("Fetch.enable", {"patterns": paused_patterns(is_style_blocked=style)})

    def expect(self, pattern: ResponsePattern) -> None:
        """Capture this response, now and whenever it comes again."""
        self._expected.add(pattern)

    def inherit(self, other: "Interception") -> None:
        """Expect what another interception expects, and report signals to the same listener."""
        self._expected |= other._expected
        self.on_signal = other.on_signal

    def start_navigation(self) -> None:
        """Forget what belongs to the previous document."""
        self.traffic.reset()
        self.document = None
        self.forbidden = ""
        self._left_load = self._load
        self._pending.clear()
        self._script_requests.clear()

    def latest(self, pattern: ResponsePattern, after: int = 0) -> Capture | None:
        """Return the latest matching capture with a higher number."""
        matching = (each for each in self._kept.values() if pattern.matches(each.method, each.url))
        latest = max(matching, key=lambda each: each.number, default=None)
        return latest if latest is not None and latest.number > after else None

    @property
    def is_quiet(self) -> bool:
        """Whether the page's script waits for no response."""
        return not self._script_requests

    async def changed(self) -> None:
        """Wait until something happens on this page."""
        self._changed.clear()
        await self._changed.wait()

    def notify(self) -> None:
        self._changed.set()

    async def aclose(self) -> None:
        await self._tasks.aclose()

    def _on_sent(self, event: dict[str, Any]) -> None:
        self.traffic.count.requests_total += 1
        request, load = event["request"], event.get("loaderId", "")
        if event.get("type") == "Document" and event.get("frameId") == self._main_frame:
            self._load = load
        if load and load == self._left_load:
            return
        kind = event.get("type", "")
        if kind in _SCRIPT_REQUESTS:
            self._script_requests.add(event["requestId"])
        self._pending[event["requestId"]] = Capture(
            method=request["method"], url=request["url"], kind=kind, request_headers=request["headers"]
        )

    def _on_response(self, event: dict[str, Any]) -> None:
        pending = self._pending.get(event["requestId"])
        if pending is None:
            return
        response = event["response"]
        self.traffic.add_bytes(request_bytes(pending.method, pending.url, pending.request_headers))
        pending.status = int(response["status"])
        pending.headers = {name.lower(): value for name, value in response["headers"].items()}
        pending.url = response["url"]
        content_type = pending.headers.get("content-type", response.get("mimeType", ""))
        is_document = pending.kind == "Document" and event.get("frameId") == self._main_frame
        pending.is_wanted = (
            is_document
            or self._is_expected(pending)
            or is_listed(pending.url, content_type, self._policy.hosts, self._browsing.calls)
        )

    def _on_data(self, event: dict[str, Any]) -> None:
        """Count received data; a body that exceeds the limit is not read to its end, but is metered."""
        request_id, size = event["requestId"], int(event.get("dataLength", 0))
        self.traffic.received(request_id, size, int(event.get("encodedDataLength", 0)))
        pending = self._pending.get(request_id)
        if pending is None or not pending.is_wanted:
            return
        pending.size += size
        if pending.size > self._policy.max_body_bytes:
            del self._pending[request_id]
            self._script_request_ended(request_id)
            pending.number, pending.wire_bytes = self._next_number(), pending.size
            self._keep(pending)
            if self.on_oversize is not None:
                self.on_oversize()

    def _on_finished(self, event: dict[str, Any]) -> None:
        request_id, wire_bytes = event["requestId"], int(event.get("encodedDataLength", 0))
        pending = self._pending.pop(request_id, None)
        self._script_request_ended(request_id)
        self.traffic.finished(request_id, wire_bytes)
        if pending is not None and pending.is_wanted:
            pending.number, pending.wire_bytes = self._next_number(), wire_bytes
            # The body is requested at once: the browser may drop it soon.
            self._tasks.start(self._capture(request_id, pending))

    def _on_failed(self, event: dict[str, Any]) -> None:
        request_id = event["requestId"]
        pending = self._pending.pop(request_id, None)
        self._script_request_ended(request_id)
        self.traffic.failed(request_id)
        if event.get("blockedReason"):
            self.traffic.count.requests_blocked += 1
        elif pending is not None and not event.get("canceled") and (pending.is_wanted or self._is_expected(pending)):
            pending.number, pending.failure = self._next_number(), str(event.get("errorText", ""))
            self._keep(pending)

    def _script_request_ended(self, request_id: str) -> None:
        if request_id in self._script_requests:
            self._script_requests.discard(request_id)
            self.active_at = asyncio.get_running_loop().time()
            self.notify()

    def _on_frame(self, event: dict[str, Any]) -> None:
        self.traffic.add_bytes(len(event["response"]["payloadData"]))
        self.signalled_at = self.active_at = asyncio.get_running_loop().time()
        if self.on_signal is not None:
            self.on_signal()

    def _on_paused(self, event: dict[str, Any]) -> None:
        if "responseStatusCode" in event or "responseErrorReason" in event:
            self._continue_response(event)
        else:
            self._judge_request(event)

    def _continue_response(self, event: dict[str, Any]) -> None:
        """Let the page have a document, without the headers that make Chromium load more ahead of time."""
        parameters: dict[str, Any] = {"requestId": event["requestId"]}
        headers = without_speculation(event.get("responseHeaders", ()))
        if headers is not None:
            parameters |= {"responseCode": event["responseStatusCode"], "responseHeaders": headers}
        self._tasks.start(self._send("Fetch.continueResponse", parameters))

    def _judge_request(self, event: dict[str, Any]) -> None:
        url, kind = event["request"]["url"], event["resourceType"]
        is_main = event.get("frameId") == self._main_frame
        hosts, private = self._policy.hosts, self._policy.allow_private_addresses
        if is_allowed(kind, url, hosts, is_main_frame=is_main, allow_private_addresses=private):
            self._tasks.start(self._send("Fetch.continueRequest", {"requestId": event["requestId"]}))
            return
        if kind == "Document" and is_main:
            self.forbidden = urlsplit(url).netloc
        reason = "BlockedByClient"
        if kind == "Document" and not is_main:
            # A blocked frame would show Chromium's error page, which costs as much memory as a page of the site.
            reason = "Aborted"
            self.traffic.count.requests_blocked += 1
        self._tasks.start(self._send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": reason}))

    async def _capture(self, request_id: str, capture: Capture) -> None:
        try:
            capture.body = await self._body(request_id)
        except (PlaywrightError, TimeoutError):
            return  # the page was closed or shows another document
        self.traffic.count.captured += 1
        self._keep(capture)

    def _keep(self, capture: Capture) -> None:
        capture.at = asyncio.get_running_loop().time()
        if capture.kind == "Document":
            self.document = capture
        key = (capture.method, capture.url)
        self._kept.pop(key, None)
        self._kept[key] = capture
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        self.notify()

    def _next_number(self) -> int:
        self.number += 1
        return self.number

    def _is_expected(self, pending: Capture) -> bool:
        return any(pattern.matches(pending.method, pending.url) for pattern in self._expected)

    async def _body(self, request_id: str) -> bytes | None:
        """Return a body; `None` if it was too large for the browser to keep."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                received = await self._cdp.send("Network.getResponseBody", {"requestId": request_id})
        except PlaywrightError as error:
            if "evicted" in str(error):
                return None
            raise
        text = str(received["body"])
        body = base64.b64decode(text) if received["base64Encoded"] else text.encode("utf-8", "surrogatepass")
        return body if len(body) <= self._policy.max_body_bytes else None

    async def _send(self, command: str, parameters: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                await self._cdp.send(command, parameters)
        except (PlaywrightError, TimeoutError):
            pass  # the page is closing; those who wait for it have a deadline
