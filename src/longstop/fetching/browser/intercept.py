"""Interception: what a page's script gets from the site is read as it arrives, and who waits is woken by it."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from msgspec import Struct
from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.blocking import is_allowed, without_foretelling
from longstop.fetching.browser.errands import Errands
from longstop.fetching.browser.flows import Flows, request_bytes
from longstop.fetching.guards import FetchPolicy

#: Answers kept for one page, the latest of each address.
MAX_KEPT = 64
#: A body that the browser does not hand over in this time is not waited for.
BODY_SECONDS = 10.0
#: How Chromium calls what a page's script asks for.
_QUESTIONS = frozenset({"XHR", "Fetch"})


class Wanted(Struct, frozen=True, kw_only=True):
    """The answer that somebody waits for: host and path alike, and the query with all that was asked."""

    method: str
    scheme: str
    host: str
    path: str
    query: frozenset[tuple[str, str]]

    def fits(self, method: str, url: str) -> bool:
        parts = urlsplit(url)
        return (method, parts.scheme, parts.netloc, parts.path) == (
            self.method,
            self.scheme,
            self.host,
            self.path,
        ) and self.query <= set(_pairs(parts))


class WhiteList(Struct, frozen=True, kw_only=True):
    """What else may be taken from a page: paths on the source's hosts, and JSON only."""

    hosts: tuple[str, ...]
    #: Patterns such as `/api/v1/event/*`; none takes nothing but what is asked for.
    paths: tuple[str, ...] = ()

    def admits(self, url: str, content_type: str) -> bool:
        parts = urlsplit(url)
        return (
            is_json(content_type)
            and parts.netloc in self.hosts
            and any(fnmatchcase(parts.path, pattern) for pattern in self.paths)
        )


class Capture(Struct, frozen=True, kw_only=True):
    """An answer that went by."""

    method: str
    url: str
    status: int
    #: Names in lower case.
    headers: Mapping[str, str]
    #: What the page's script sent with the question, as it wrote the names.
    asked_with: Mapping[str, str]
    #: `None` when the browser did not keep it: it was larger than the cap.
    body: bytes | None
    wire_bytes: int
    #: When it arrived, by the loop's clock.
    at: float
    #: Which answer of this page it was, from 1.
    number: int
    #: The network's word for why it is not whole; empty when it is.
    failure: str = ""


def wanted_by(request: FetchRequest) -> Wanted:
    parts = urlsplit(request.url)
    return Wanted(
        method=request.method,
        scheme=parts.scheme,
        host=parts.netloc,
        path=parts.path or "/",
        query=frozenset(_pairs(parts)),
    )


def is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind in ("application/json", "text/json") or kind.endswith("+json")


class _Under(Struct, kw_only=True):
    """A request under way."""

    method: str
    url: str
    kind: str
    asked_with: Mapping[str, str]
    status: int = 0
    headers: Mapping[str, str] = {}
    is_taken: bool = False
    #: Bytes that have come, decoded.
    size: int = 0


class Interception:
    """Listens to one page. It is there before the first navigation, so nothing goes by unheard."""

    def __init__(self, cdp: CDPSession, policy: FetchPolicy, white_list: WhiteList) -> None:
        self._cdp = cdp
        self._policy = policy
        self._white_list = white_list
        self._wanted: set[Wanted] = set()
        self._under_way: dict[str, _Under] = {}
        self.flows = Flows(policy.max_body_bytes)
        #: The questions of the page's own script that are not answered yet.
        self._open_questions: set[str] = set()
        self._kept: OrderedDict[tuple[str, str], Capture] = OrderedDict()
        self._news = asyncio.Event()
        self._errands = Errands()
        self._numbers = 0
        self._main_frame = ""
        #: The load that the page shows, and the one before it, whose late answers are nobody's business.
        self._load = ""
        self._left_load = ""
        #: The answer to the latest navigation; its body is read like any other.
        self.document: Capture | None = None
        #: Why the latest navigation was not let through; empty when it was.
        self.forbidden = ""
        #: How many frames the site has pushed: a sign that something changed, never what.
        self.signals = 0
        #: When the last one came, by the loop's clock.
        self.signalled_at = float("-inf")
        #: When the page's script last got something, by the loop's clock.
        self.stirred_at = float("-inf")
        self.on_signal: Callable[[], None] | None = None
        #: Called when more has come of an answer than the cap allows; the browser goes on taking it.
        self.on_excess: Callable[[], None] | None = None

    async def begin(self, *, blocked: list[dict[str, Any]], paused: list[dict[str, Any]]) -> None:
        """Listen, and block, from here on."""
        listeners: dict[str, Callable[[dict[str, Any]], None]] = {
            "Network.requestWillBeSent": self._sent,
            "Network.responseReceived": self._received,
            "Network.dataReceived": self._came,
            "Network.loadingFinished": self._finished,
            "Network.loadingFailed": self._failed,
            "Network.webSocketFrameReceived": self._signalled,
            "Fetch.requestPaused": self._paused,
        }
        for name, listener in listeners.items():
            self._cdp.on(name, listener)
        size = self._policy.max_body_bytes
        await self._cdp.send("Network.enable", {"maxTotalBufferSize": 4 * size, "maxResourceBufferSize": size})
        tree = await self._cdp.send("Page.getFrameTree")
        self._main_frame = tree["frameTree"]["frame"]["id"]
        await self._cdp.send("Network.setBlockedURLs", {"urlPatterns": blocked})
        await self._cdp.send("Fetch.enable", {"patterns": paused})

    def want(self, wanted: Wanted) -> None:
        """Take this answer, now and whenever it comes again."""
        self._wanted.add(wanted)

    def take_over(self, other: "Interception") -> None:
        """Want what another one wants, and tell whom it tells."""
        self._wanted |= other._wanted
        self.on_signal = other.on_signal

    def start_navigation(self) -> None:
        """Forget what belongs to the page before."""
        self.flows.start_anew()
        self.document = None
        self.forbidden = ""
        self._left_load = self._load
        self._under_way.clear()
        self._open_questions.clear()

    def newest(self, wanted: Wanted, after: int = 0) -> Capture | None:
        """Return the newest answer that fits and came after that one."""
        fitting = (each for each in reversed(self._kept.values()) if wanted.fits(each.method, each.url))
        newest = max(fitting, key=lambda each: each.number, default=None)
        return newest if newest is not None and newest.number > after else None

    @property
    def is_quiet(self) -> bool:
        """Whether the page's script waits for nothing."""
        return not self._open_questions

    @property
    def number(self) -> int:
        """The number of the newest answer."""
        return self._numbers

    async def news(self) -> None:
        """Wait until something has happened on this page."""
        self._news.clear()
        await self._news.wait()

    def wake(self) -> None:
        self._news.set()

    async def aclose(self) -> None:
        await self._errands.aclose()

    def _sent(self, event: dict[str, Any]) -> None:
        self.flows.count.requests_total += 1
        request, load = event["request"], event.get("loaderId", "")
        if event.get("type") == "Document" and event.get("frameId") == self._main_frame:
            self._load = load
        if load and load == self._left_load:
            return
        kind = event.get("type", "")
        if kind in _QUESTIONS:
            self._open_questions.add(event["requestId"])
        self._under_way[event["requestId"]] = _Under(
            method=request["method"], url=request["url"], kind=kind, asked_with=request["headers"]
        )

    def _received(self, event: dict[str, Any]) -> None:
        under = self._under_way.get(event["requestId"])
        if under is None:
            return
        response = event["response"]
        self.flows.went(request_bytes(under.method, under.url, under.asked_with))
        under.status = int(response["status"])
        under.headers = {name.lower(): value for name, value in response["headers"].items()}
        under.url = response["url"]
        content_type = under.headers.get("content-type", response.get("mimeType", ""))
        is_document = under.kind == "Document" and event.get("frameId") == self._main_frame
        under.is_taken = is_document or self._is_wanted(under) or self._white_list.admits(under.url, content_type)

    def _came(self, event: dict[str, Any]) -> None:
        """Count what has come; a body without an end is not waited for to the end, and metered all the same."""
        request_id, size = event["requestId"], int(event.get("dataLength", 0))
        self.flows.came(request_id, size, int(event.get("encodedDataLength", 0)))
        under = self._under_way.get(request_id)
        if under is None or not under.is_taken:
            return
        under.size += size
        if under.size > self._policy.max_body_bytes:
            del self._under_way[request_id]
            self._exceeded(request_id, under)

    def _exceeded(self, request_id: str, under: _Under) -> None:
        self._answered(request_id)
        self._numbers += 1
        self._keep(under, None, under.size, self._numbers)
        if self.on_excess is not None:
            self.on_excess()

    def _finished(self, event: dict[str, Any]) -> None:
        under = self._under_way.pop(event["requestId"], None)
        self._answered(event["requestId"])
        wire_bytes = int(event.get("encodedDataLength", 0))
        self.flows.finished(event["requestId"], wire_bytes)
        if under is not None and under.is_taken:
            # The body is asked for here and now: a moment later the browser may have let it go.
            self._numbers += 1
            self._errands.run(self._take(event["requestId"], under, wire_bytes, self._numbers))

    def _failed(self, event: dict[str, Any]) -> None:
        under = self._under_way.pop(event["requestId"], None)
        self._answered(event["requestId"])
        self.flows.failed(event["requestId"])
        if event.get("blockedReason"):
            self.flows.count.requests_blocked += 1
        elif under is not None and not event.get("canceled") and self._is_waited_for(under):
            self._numbers += 1
            self._keep(under, None, 0, self._numbers, failure=str(event.get("errorText", "")))

    def _answered(self, request_id: str) -> None:
        if request_id in self._open_questions:
            self._open_questions.discard(request_id)
            self.stirred_at = asyncio.get_running_loop().time()
            self.wake()

    def _signalled(self, event: dict[str, Any]) -> None:
        self.signals += 1
        self.flows.went(len(event["response"]["payloadData"]))
        self.signalled_at = asyncio.get_running_loop().time()
        self.stirred_at = asyncio.get_running_loop().time()
        if self.on_signal is not None:
            self.on_signal()

    def _paused(self, event: dict[str, Any]) -> None:
        if "responseStatusCode" in event or "responseErrorReason" in event:
            self._let_in(event)
        else:
            self._judge(event)

    def _let_in(self, event: dict[str, Any]) -> None:
        """Let the page have an answer, without what it foretells."""
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        headers = without_foretelling(event.get("responseHeaders", ()))
        if headers is not None:
            answer |= {"responseCode": event["responseStatusCode"], "responseHeaders": headers}
        self._errands.run(self._send("Fetch.continueResponse", answer))

    def _judge(self, event: dict[str, Any]) -> None:
        url, kind = event["request"]["url"], event["resourceType"]
        is_main = event.get("frameId") == self._main_frame
        hosts, private = self._policy.hosts, self._policy.allow_private_addresses
        if is_allowed(kind, url, hosts, is_main_frame=is_main, allow_private_addresses=private):
            self._errands.run(self._send("Fetch.continueRequest", {"requestId": event["requestId"]}))
            return
        if kind == "Document" and is_main:
            self.forbidden = urlsplit(url).netloc
        reason = "BlockedByClient"
        if kind == "Document" and not is_main:
            # Blocked, a frame would be given Chromium's own page of excuse, which costs as much as a page of the site.
            reason = "Aborted"
            self.flows.count.requests_blocked += 1
        self._errands.run(self._send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": reason}))

    async def _take(self, request_id: str, under: _Under, wire_bytes: int, number: int) -> None:
        try:
            body = await self._body(request_id)
        except (PlaywrightError, TimeoutError):
            return  # the page has left, or goes
        self.flows.count.captured += 1
        self._keep(under, body, wire_bytes, number)

    def _keep(self, under: _Under, body: bytes | None, wire_bytes: int, number: int, failure: str = "") -> None:
        capture = Capture(
            method=under.method,
            url=under.url,
            status=under.status,
            headers=under.headers,
            asked_with=under.asked_with,
            body=body,
            wire_bytes=wire_bytes,
            at=asyncio.get_running_loop().time(),
            number=number,
            failure=failure,
        )
        if under.kind == "Document":
            self.document = capture
        key = (capture.method, capture.url)
        self._kept.pop(key, None)
        self._kept[key] = capture
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        self.wake()

    def _is_wanted(self, under: _Under) -> bool:
        return any(wanted.fits(under.method, under.url) for wanted in self._wanted)

    def _is_waited_for(self, under: _Under) -> bool:
        return under.is_taken or self._is_wanted(under)

    async def _body(self, request_id: str) -> bytes | None:
        """Return a body; `None` when it was too large for the browser to keep."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                answer = await self._cdp.send("Network.getResponseBody", {"requestId": request_id})
        except PlaywrightError as error:
            if "evicted" in str(error):
                return None
            raise
        text = str(answer["body"])
        body = base64.b64decode(text) if answer["base64Encoded"] else text.encode("utf-8", "surrogatepass")
        return body if len(body) <= self._policy.max_body_bytes else None

    async def _send(self, command: str, parameters: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                await self._cdp.send(command, parameters)
        except (PlaywrightError, TimeoutError):
            pass  # the page is gone, or goes: whoever waits for it has a deadline


def _pairs(parts: SplitResult) -> Iterable[tuple[str, str]]:
    return parse_qsl(parts.query, keep_blank_values=True)
