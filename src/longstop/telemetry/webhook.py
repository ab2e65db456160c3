"""The webhook sink: sends alerts as signed JSON to one URL. The emitter of an event never waits for it."""

import asyncio
import hmac
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime
from random import random
from threading import Lock
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
from curl_cffi import AsyncSession, CurlError, CurlOpt, Response
from msgspec import Struct

from longstop.clock import Clock, SystemClock, to_iso
from longstop.errors import FetchError, FetchTimeout, ForbiddenTarget, SourceFailed
from longstop.fetching.responses import REDIRECTS, map_curl_error, status_error
from longstop.resilience.retry import next_delay, policies
from longstop.telemetry.alerts import QUIET_SECONDS, AlertFilter, Notification, alert_of
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import AlertUndelivered

#: Queued alerts; beyond, the oldest is dropped.
MAX_WAITING = 1_000
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
async def open_post(url: str, *, deadline_seconds: float = DEADLINE_SECONDS) -> AsyncIterator[Post]:
    """Open a function that posts to a URL, without proxies, cookies or redirects."""
    session: AsyncSession[Response] = AsyncSession(
        allow_redirects=False,
        timeout=deadline_seconds,
        trust_env=False,
        discard_cookies=True,
        # Without an empty proxy, curl reads http_proxy from the environment.
        curl_options={CurlOpt.PROXY: ""},
    )
    try:
        yield _Poster(session, url, deadline_seconds, SystemClock()).post
    finally:
        await session.close()


class _Poster:
    """Posts to one URL. It may contain a secret, so errors name only its host."""

    def __init__(self, session: AsyncSession[Response], url: str, deadline_seconds: float, clock: Clock) -> None:
        self._session = session
        self._url = url
        self._host = _host(url)
        self._deadline_seconds = deadline_seconds
        self._clock = clock

    async def post(self, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            async with asyncio.timeout(self._deadline_seconds):
                response = await self._send(body, headers)
        except TimeoutError:
            raise FetchTimeout(f"{self._host} did not respond within {self._deadline_seconds:g} s") from None
        received = {name.lower(): value or "" for name, value in response.headers.items()}
        if response.status_code in REDIRECTS:
            raise ForbiddenTarget(f"{self._host} responded {response.status_code}; redirects are not followed")
        error = status_error(response.status_code, received, self._clock.now())
        if error is not None:
            error.reason = f"{self._host} {error.reason}"
            raise error

    async def _send(self, body: bytes, headers: Mapping[str, str]) -> Response:
        try:
            return await self._session.post(self._url, data=body, headers=dict(headers), content_callback=len)
        except CurlError as error:
            # Neither the library's message nor its traceback: both may contain the URL.
            raise type(map_curl_error(error))(f"{self._host} is unreachable (curl {int(error.code)})") from None
        except (LookupError, ValueError):
            raise SourceFailed(f"{self._host} responded with invalid headers") from None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "the webhook"
    except ValueError:
        return "the webhook"


class _Message(Struct, frozen=True, kw_only=True):
    """A queued alert. All attempts have the same id, so that a receiver can drop duplicates."""

    id: str
    notification: Notification
    at: datetime

    @property
    def key(self) -> str:
        return self.notification.alert.key

    def body(self, node: str) -> bytes:
        alert = self.notification.alert
        return msgspec.json.encode(
            {
                "id": self.id,
                "key": alert.key,
                "severity": alert.severity.value,
                "resolved": alert.is_resolved,
                "title": alert.title,
                "text": alert.text,
                "at": to_iso(self.at),
                "node": node,
                "suppressed": self.notification.suppressed,
                "fields": alert.fields,
            }
        )


def signature(secret: str, unix_seconds: int, body: bytes) -> str:
    """Return the header that authenticates a body and its time."""
    digest = hmac.digest(secret.encode(), b"%d.%b" % (unix_seconds, body), "sha256")
    return f"t={unix_seconds},v1={digest.hex()}"


class WebhookSink:
    """Takes events from any thread without waiting; sends the alerts among them while `delivering` runs."""

    def __init__(
        self,
        url: str,
        secret: str = "",
        *,
        node: str,
        clock: Clock,
        open_post: OpenPost = open_post,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._url = url
        self._secret = secret
        self._node = node
        self._clock = clock
        self._open_post = open_post
        self._lock = Lock()
        self._filter = AlertFilter(quiet_seconds)
        self._waiting: deque[_Message] = deque()
        #: Alerts dropped and not reported yet.
        self._dropped = 0
        self._sending: _Message | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._is_stopping = False

    def take(self, event: Telemetry) -> None:
        alert = alert_of(event)
        if alert is None:
            return
        with self._lock:
            notification = self._filter.admit(alert, self._clock.monotonic())
            if notification is not None:
                self._put(notification)
        if notification is not None or not alert.is_resolved:
            self._wake()

    @asynccontextmanager
    async def delivering(self, bus: Bus) -> AsyncIterator[None]:
        """Send alerts; emit `AlertUndelivered` for those that cannot be delivered."""
        self._loop = asyncio.get_running_loop()
        async with self._open_post(self._url) as post:
            task = asyncio.create_task(self._deliver_all(post, bus), name="webhook")
            try:
                yield
            finally:
                await self._stop(task)
                self._report_unsent(bus)

    async def _stop(self, task: asyncio.Task[None]) -> None:
        self._is_stopping = True
        self._woken.set()
        try:
            await asyncio.wait([task], timeout=FLUSH_WITHIN)
        finally:
            self._loop = None
            task.cancel()
            await asyncio.wait([task])

    def _put(self, notification: Notification) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._forget(self._waiting.popleft().key)
            self._dropped += 1
        self._waiting.append(_Message(id=uuid4().hex, notification=notification, at=self._clock.now()))

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop may be closed meanwhile
                loop.call_soon_threadsafe(self._woken.set)

    async def _deliver_all(self, post: Post, bus: Bus) -> None:
        while True:
            self._woken.clear()
            self._report_dropped(bus)
            if (message := self._next()) is not None:
                await self._try(message, post, bus)
            elif self._is_stopping:
                return
            else:
                await self._wait()

    def _next(self) -> _Message | None:
        with self._lock:
            for notification in self._filter.overdue(self._clock.monotonic()):
                self._put(notification)
            self._sending = self._waiting.popleft() if self._waiting else None
            return self._sending

    async def _wait(self) -> None:
        """Wait for a new alert, or until a delayed one is due."""
        with self._lock:
            due_at = self._filter.next_due()
        wait = None if due_at is None else max(0.0, due_at - self._clock.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._woken.wait()

    async def _try(self, message: _Message, post: Post, bus: Bus) -> None:
        try:
            undelivered = await self._deliver(message, post)
        except Exception as error:  # a bug with one alert must not block the others
            reason = f"internal error: {type(error).__name__}"
            undelivered = AlertUndelivered(alert=message.key, attempts=0, reason=reason)
        self._sending = None
        if undelivered is not None:
            with self._lock:
                self._forget(message.key)
            bus.emit(undelivered)

    async def _deliver(self, message: _Message, post: Post) -> AlertUndelivered | None:
        body = message.body(self._node)
        began, attempts = self._clock.monotonic(), 0
        while True:
            attempts += 1
            try:
                await post(body, self._headers(message, body))
            except FetchError as error:
                wait = next_delay(RETRIES, attempts, self._clock.monotonic() - began, error, random())
                if wait is None:
                    return AlertUndelivered(alert=message.key, attempts=attempts, reason=error.reason)
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
        for message in [each for each in self._waiting if each.notification.alert.is_resolved and each.key == key]:
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
            unsent = [self._sending, *self._waiting] if self._sending else list(self._waiting)
            self._waiting.clear()
        for message in unsent:
            bus.emit(AlertUndelivered(alert=message.key, attempts=0, reason="the process stopped before it was sent"))
