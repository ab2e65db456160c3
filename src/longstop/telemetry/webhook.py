"""The webhook sink: sends alerts as signed JSON to one URL. The emitter of an event never waits for it."""

import asyncio
import hmac
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from functools import partial
from random import random
from threading import Lock
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
from curl_cffi import AsyncSession, CurlError, CurlOpt, Response
from msgspec import Struct

from longstop.clock import Clock, SystemClock, to_iso
from longstop.errors import FetchError, FetchTimeout, ForbiddenTarget, SourceFailed
from longstop.fetching.http_error_mapping import REDIRECTS, map_curl_error, status_error
from longstop.resilience.retry_policy import next_delay, policies
from longstop.telemetry.alerts import Alert, AlertFilter, alert_of
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import AlertUndelivered
from longstop.telemetry.periodic_flush import PeriodicFlush

#: Queued alerts; beyond, the oldest is dropped.
MAX_WAITING = 1_000
#: How often delayed alerts are checked.
CHECK_SECONDS = 1.0
#: At shutdown, queued alerts are sent for at most these seconds.
FLUSH_WITHIN = 2.5
#: For one attempt, from the request to the end of the response.
DEADLINE_SECONDS = 5.0
#: 1, 2, 4, 8 and 16 s between the attempts. A Retry-After within the total time is honoured.
RETRIES = msgspec.structs.replace(policies().network, total_seconds=120.0)

#: Sends a body with headers; raises a `FetchError` if it is not accepted.
Post = Callable[[bytes, Mapping[str, str]], Awaitable[None]]
OpenPost = Callable[[str], AbstractAsyncContextManager[Post]]


@asynccontextmanager
async def open_post(url: str) -> AsyncIterator[Post]:
    """Open a function that posts to a URL, without proxies, cookies or redirects.

    The URL may contain a secret, so errors name only its host.
    """
    session: AsyncSession[Response] = AsyncSession(
        allow_redirects=False,
        timeout=DEADLINE_SECONDS,
        trust_env=False,
        discard_cookies=True,
        # Without an empty proxy, curl reads http_proxy from the environment.
        curl_options={CurlOpt.PROXY: ""},
    )
    host = _host(url)

    async def post(body: bytes, headers: Mapping[str, str]) -> None:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                response = await session.post(url, data=body, headers=dict(headers), content_callback=len)
        except TimeoutError:
            raise FetchTimeout(f"{host} did not respond within {DEADLINE_SECONDS:g} s") from None
        except CurlError as error:
            # Neither the library's message nor its traceback: both may contain the URL.
            raise type(map_curl_error(error))(f"{host} is unreachable (curl {int(error.code)})") from None
        except (LookupError, ValueError):
            raise SourceFailed(f"{host} responded with invalid headers") from None
        _check(response, host)

    try:
        yield post
    finally:
        await session.close()


def _check(response: Response, host: str) -> None:
    """Raise a `FetchError` if the response does not accept the alert."""
    if response.status_code in REDIRECTS:
        raise ForbiddenTarget(f"{host} responded {response.status_code}; redirects are not followed")
    received = {name.lower(): value or "" for name, value in response.headers.items()}
    error = status_error(response.status_code, received, SystemClock().now())
    if error is not None:
        error.reason = f"{host} {error.reason}"
        raise error


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "the webhook"
    except ValueError:
        return "the webhook"


class _Message(Struct, frozen=True, kw_only=True):
    """A queued alert. All attempts have the same id, so that a receiver can drop duplicates."""

    id: str
    alert: Alert
    at: datetime

    def body(self, node: str) -> bytes:
        return msgspec.json.encode(
            {
                "id": self.id,
                "key": self.alert.key,
                "severity": self.alert.severity.value,
                "resolved": self.alert.is_resolved,
                "title": self.alert.title,
                "text": self.alert.text,
                "at": to_iso(self.at),
                "node": node,
                "suppressed": self.alert.suppressed,
                "fields": self.alert.fields,
            }
        )


def signature(secret: str, unix_seconds: int, body: bytes) -> str:
    """Return the header that authenticates a body and its time."""
    digest = hmac.digest(secret.encode(), b"%d.%b" % (unix_seconds, body), "sha256")
    return f"t={unix_seconds},v1={digest.hex()}"


class WebhookSink:
    """Takes events from any thread without waiting; sends the alerts among them while `delivering` runs."""

    def __init__(self, url: str, secret: str = "", *, node: str, clock: Clock, open_post: OpenPost = open_post) -> None:
        self._url = url
        self._secret = secret
        self._node = node
        self._clock = clock
        self._open_post = open_post
        self._lock = Lock()
        self._filter = AlertFilter()
        self._waiting: deque[_Message] = deque()
        #: Alerts dropped and not reported yet.
        self._dropped = 0
        self._flusher: PeriodicFlush | None = None

    def take(self, event: Telemetry) -> None:
        alert = alert_of(event)
        if alert is None:
            return
        with self._lock:
            admitted = self._filter.admit(alert, self._clock.monotonic())
            self._put(admitted)
        if admitted and self._flusher is not None:
            self._flusher.wake()

    @asynccontextmanager
    async def delivering(self, bus: Bus) -> AsyncIterator[None]:
        """Send alerts; emit `AlertUndelivered` for those that cannot be delivered."""
        async with self._open_post(self._url) as post:
            deliver = partial(self._deliver_all, post, bus)
            self._flusher = PeriodicFlush("alerts", deliver, every_seconds=CHECK_SECONDS, close_within=FLUSH_WITHIN)
            try:
                async with self._flusher.running(bus):
                    yield
            finally:
                self._report_unsent(bus)

    def _put(self, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            if len(self._waiting) >= MAX_WAITING:
                self._forget(self._waiting.popleft().alert.key)
                self._dropped += 1
            self._waiting.append(_Message(id=uuid4().hex, alert=alert, at=self._clock.now()))

    async def _deliver_all(self, post: Post, bus: Bus) -> bool:
        """Send what is queued; return whether there was anything to send."""
        has_sent = False
        while (message := self._next()) is not None:
            self._report_dropped(bus)
            await self._deliver(message, post, bus)
            has_sent = True
        return has_sent

    def _next(self) -> _Message | None:
        with self._lock:
            self._put(self._filter.overdue(self._clock.monotonic()))
            return self._waiting.popleft() if self._waiting else None

    async def _deliver(self, message: _Message, post: Post, bus: Bus) -> None:
        try:
            undelivered = await self._try(message, post)
        except asyncio.CancelledError:
            with self._lock:
                self._waiting.appendleft(message)
            raise
        except Exception as error:  # a bug with one alert must not stop the others
            reason = f"internal error: {type(error).__name__}"
            undelivered = AlertUndelivered(alert=message.alert.key, attempts=1, reason=reason)
        if undelivered is not None:
            with self._lock:
                self._forget(message.alert.key)
            bus.emit(undelivered)

    async def _try(self, message: _Message, post: Post) -> AlertUndelivered | None:
        """Send an alert, with retries; return why it was not delivered."""
        body = message.body(self._node)
        began, attempts = self._clock.monotonic(), 0
        while True:
            attempts += 1
            try:
                await post(body, self._headers(message, body))
            except FetchError as error:
                wait = next_delay(RETRIES, attempts, self._clock.monotonic() - began, error, random())
                if wait is None:
                    return AlertUndelivered(alert=message.alert.key, attempts=attempts, reason=error.reason)
                await asyncio.sleep(wait)
            else:
                return None

    def _headers(self, message: _Message, body: bytes) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "X-Longstop-Alert-Id": message.id}
        if self._secret:
            headers["X-Longstop-Signature"] = signature(self._secret, int(self._clock.now().timestamp()), body)
        return headers

    def _forget(self, key: str) -> None:
        """Treat a condition as never sent: the receiver does not know the problem, so its end is not sent either."""
        self._filter.forget(key)
        for message in [each for each in self._waiting if each.alert.is_resolved and each.alert.key == key]:
            self._waiting.remove(message)

    def _report_dropped(self, bus: Bus) -> None:
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            reason = f"dropped {dropped} alerts: more than {MAX_WAITING:,} were queued"
            bus.emit(AlertUndelivered(alert="webhook", attempts=0, reason=reason))

    def _report_unsent(self, bus: Bus) -> None:
        self._report_dropped(bus)
        with self._lock:
            unsent = list(self._waiting)
            self._waiting.clear()
        for message in unsent:
            reason = "the process stopped before it was sent"
            bus.emit(AlertUndelivered(alert=message.alert.key, attempts=0, reason=reason))
