"""The webhook sink: alerts go to one address as signed JSON; who has something to say never waits for it."""

import asyncio
import hmac
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime
from random import random
from threading import Lock
from uuid import uuid4

import msgspec
from msgspec import Struct

from longstop.clock import Clock, to_iso
from longstop.errors import FetchError
from longstop.resilience.retry import next_delay, policies
from longstop.telemetry.alerts import alert_of
from longstop.telemetry.bus import Bus
from longstop.telemetry.conditions import QUIET_SECONDS, Conditions, Told
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import AlertUndelivered
from longstop.telemetry.posting import Post, open_post

#: Alerts that wait; beyond, the oldest is dropped.
MAX_WAITING = 1_000
#: At the end, what waits may still go out for so many seconds.
FLUSH_WITHIN = 2.5
#: 1, 2, 4, 8 and 16 s lie between the attempts; a receiver that asks for a longer rest gets other alerts later.
RETRIES = msgspec.structs.replace(policies().network, total_seconds=120.0)

OpenPost = Callable[[str], AbstractAsyncContextManager[Post]]


class Message(Struct, frozen=True, kw_only=True):
    """An alert on its way; the id stays the same over all attempts, so that a receiver can drop doubles."""

    id: str
    told: Told
    at: datetime

    def body(self, node: str) -> bytes:
        alert = self.told.alert
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
                "suppressed": self.told.suppressed,
                "fields": alert.fields,
            }
        )


class Loss(Struct, frozen=True, kw_only=True):
    """Why a message was not delivered."""

    attempts: int
    reason: str


def signature(secret: str, unix_seconds: int, body: bytes) -> str:
    """Return the header that proves who sent a body, and when."""
    digest = hmac.digest(secret.encode(), b"%d.%b" % (unix_seconds, body), "sha256")
    return f"t={unix_seconds},v1={digest.hex()}"


class WebhookSink:
    """Takes events from any thread without waiting; alerts among them are sent while `delivering` lasts."""

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
        self._conditions = Conditions(quiet_seconds)
        self._waiting: deque[Message] = deque()
        #: How many alerts were dropped since that was last told.
        self._dropped = 0
        #: What is under way.
        self._sending: Message | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._is_stopping = False

    def take(self, event: Telemetry) -> None:
        alert = alert_of(event)
        if alert is None:
            return
        with self._lock:
            told = self._conditions.admit(alert, self._clock.monotonic())
            if told is not None:
                self._put(told)
        if told is not None or not alert.is_resolved:
            self._wake()

    @asynccontextmanager
    async def delivering(self, bus: Bus) -> AsyncIterator[None]:
        """Send what is heard; what cannot be delivered is told to the bus."""
        self._loop = asyncio.get_running_loop()
        async with self._open_post(self._url) as post:
            task = asyncio.create_task(self._deliver_all(post, bus), name="webhook")
            try:
                yield
            finally:
                await self._stop(task)
                self._tell_left(bus)

    async def _stop(self, task: asyncio.Task[None]) -> None:
        self._is_stopping = True
        self._news.set()
        try:
            await asyncio.wait([task], timeout=FLUSH_WITHIN)
        finally:
            self._loop = None
            task.cancel()
            await asyncio.wait([task])

    def _put(self, told: Told) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._forget(self._waiting.popleft().told.alert.key)
            self._dropped += 1
        self._waiting.append(Message(id=uuid4().hex, told=told, at=self._clock.now()))

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop may be closed between two lines
                loop.call_soon_threadsafe(self._news.set)

    async def _deliver_all(self, post: Post, bus: Bus) -> None:
        while True:
            self._news.clear()
            self._tell_dropped(bus)
            if (message := self._next()) is not None:
                await self._try(message, post, bus)
            elif self._is_stopping:
                return
            else:
                await self._wait()

    def _next(self) -> Message | None:
        with self._lock:
            for told in self._conditions.overdue(self._clock.monotonic()):
                self._put(told)
            self._sending = self._waiting.popleft() if self._waiting else None
            return self._sending

    async def _wait(self) -> None:
        """Wait for something to send, or for what was held back."""
        with self._lock:
            due_at = self._conditions.next_due()
        wait = None if due_at is None else max(0.0, due_at - self._clock.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._news.wait()

    async def _try(self, message: Message, post: Post, bus: Bus) -> None:
        try:
            lost = await self._deliver(message, post)
        except Exception as error:  # a bug met by one alert must not keep the others
            lost = Loss(attempts=0, reason=f"a bug: {type(error).__name__}")
        self._sending = None
        if lost is not None:
            self._lose(message, lost, bus)

    async def _deliver(self, message: Message, post: Post) -> Loss | None:
        body = message.body(self._node)
        began, attempts = self._clock.monotonic(), 0
        while True:
            attempts += 1
            try:
                await post(body, self._headers(message, body))
            except FetchError as error:
                wait = next_delay(RETRIES, attempts, self._clock.monotonic() - began, error, random())
                if wait is None:
                    return Loss(attempts=attempts, reason=error.reason)
                await asyncio.sleep(wait)
            else:
                return None

    def _headers(self, message: Message, body: bytes) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "X-Longstop-Alert-Id": message.id}
        if self._secret:
            headers["X-Longstop-Signature"] = signature(self._secret, int(self._clock.now().timestamp()), body)
        return headers

    def _lose(self, message: Message, lost: Loss, bus: Bus) -> None:
        key = message.told.alert.key
        with self._lock:
            self._forget(key)
        bus.emit(AlertUndelivered(alert=key, attempts=lost.attempts, reason=lost.reason))

    def _forget(self, key: str) -> None:
        """Count a condition as never told: nobody has heard of the trouble, so its end is no news."""
        self._conditions.forget(key)
        ends = [each for each in self._waiting if each.told.alert.is_resolved and each.told.alert.key == key]
        for message in ends:
            self._waiting.remove(message)

    def _tell_dropped(self, bus: Bus) -> None:
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            reason = f"{dropped} alerts were dropped: more than {MAX_WAITING:,} were waiting"
            bus.emit(AlertUndelivered(alert="webhook", attempts=0, reason=reason))

    def _tell_left(self, bus: Bus) -> None:
        self._tell_dropped(bus)
        with self._lock:
            left = [self._sending, *self._waiting] if self._sending else list(self._waiting)
            self._waiting.clear()
        for message in left:
            bus.emit(
                AlertUndelivered(
                    alert=message.told.alert.key, attempts=0, reason="the process ended before it was sent"
                )
            )
