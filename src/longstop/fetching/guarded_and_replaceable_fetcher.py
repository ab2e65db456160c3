"""Retries, circuit breaker, rate limit and deadlines between a source's requests and its fetcher."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec
from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import CircuitOpen, EmptyBody, FetchError, FetchTimeout, SourceError
from longstop.fetching.addresses import allowed_url
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.model.request_pause import FormerPause, NoStoredPauses, PauseKind, SourcePauses
from longstop.resilience.adaptive_timeouts import SLOW_FACTOR, AdaptiveTimeouts, Timeouts
from longstop.resilience.breaker import BreakerPolicy, HostBreakers, HostPermit, Transition, target_policy
from longstop.resilience.retry_policy import MAX_RETRY_AFTER, RetryPolicy, next_delay, policies, requested_wait
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.telemetry.bus import Bus, report_breaker
from longstop.telemetry.events.sources import RequestRetried, SourceRateLimited, TimeoutsChanged

#: Random extra wait after Retry-After, as a share of it.
RETRY_AFTER_JITTER_SHARE = 0.1
#: A response that takes a smaller share of its deadline does not count as slow.
SLOW_SHARE = 0.8
#: Failures without a response of the site: they say nothing about it.
_NOT_THE_SITE = frozenset({FailureKind.NOT_SENT, FailureKind.OURS})
#: Immediate failures, which do not show how long a response takes.
_IMMEDIATE = _NOT_THE_SITE | {FailureKind.CONNECTION}


class FetchPolicy(Struct, frozen=True, kw_only=True):
    """The limits of one source's requests."""

    #: The only hosts that requests may go to, as `host` or `host:port`.
    hosts: tuple[str, ...]
    allow_private_addresses: bool = False
    #: From the request to the last byte, redirects included. It adapts to the site's latency.
    deadline_seconds: float = 10.0
    #: Counted after decompression.
    max_body_bytes: int = 5 * 1024 * 1024
    max_redirects: int = 3
    #: Concurrent requests; others wait, within their deadline.
    max_connections: int = 32

    @property
    def longest_deadline_seconds(self) -> float:
        """The deadline for the slowest site."""
        return self.deadline_seconds * SLOW_FACTOR


class GuardPolicy(Struct, frozen=True, kw_only=True):
    """How one source's requests are retried, rejected and timed."""

    retry: RetryPolicy = policies().live
    breaker: BreakerPolicy = target_policy()
    #: While a host's circuit is open, one canary request is sent in this interval.
    canary_seconds: float = 2.5
    #: `None` for the defaults, with the fetch policy's deadline for one request.
    timeouts: Timeouts | None = None


class RetryBudget:
    """Limits the retries of a source to a fifth of its traffic, so that retries never multiply an outage.

    It counts fifths of a retry: five first attempts earn one retry.
    """

    COST = 5
    START = 3 * COST
    MOST = 10 * COST

    def __init__(self) -> None:
        self._fifths = self.START

    def earn(self) -> None:
        """Count a first attempt."""
        self._fifths = min(self._fifths + 1, self.MOST)

    def spend(self) -> bool:
        """Take a retry from the budget; return whether there was one."""
        if self._fifths < self.COST:
            return False
        self._fifths -= self.COST
        return True


class GuardedFetcher:
    """Sends one source's requests through all guards, which share their state for all matches of the source.

    The order of the guards matters; each contains all that follow:

    1. Names: every error gets its source and request.
    2. Host list: a request that may not be sent costs no retry and does not count for a breaker.
    3. Retries: every attempt passes the guards below again. One deadline covers all attempts. It says nothing about
       the site, so the guards below see it as a cancellation.
    4. Retry-After: before the circuit, so that a postponed request uses up neither the canary nor a probe.
    5. Circuit of the host: outside the deadline, so that an attempt without a response counts as a failed connection.
    6. Deadline of one attempt: it adapts to the site's recent latency, empty responses included.
    7. Empty pages: innermost, since for all other guards an empty response is a response.
    """

    def __init__(
        self,
        inner: Fetcher,
        policy: FetchPolicy,
        *,
        clock: Clock,
        bus: Bus,
        guards: GuardPolicy | None = None,
        pauses: SourcePauses | None = None,
        random: Random | None = None,
    ) -> None:
        guards = guards or GuardPolicy()
        #: May be replaced when the configuration is reloaded.
        self.policy = policy
        self.budget = RetryBudget()
        self.targets = HostBreakers(guards.breaker, guards.canary_seconds)
        #: Until when the site postponed all requests by Retry-After.
        self.postponed_until = 0.0
        self.timeouts = AdaptiveTimeouts(guards.timeouts or Timeouts(fetch=policy.deadline_seconds))
        self._inner = inner
        self._retry = guards.retry
        self._clock = clock
        self._bus = bus
        self._random = (random or Random()).random
        self._pauses = pauses or NoStoredPauses()
        for former in self._pauses.former:
            self._resume(former)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def fetch(self, request: FetchRequest) -> Page:
        try:
            policy = self.policy
            target = allowed_url(request.url, policy.hosts, policy.allow_private_addresses)
            return await self._with_retries(request, target.authority)
        except SourceError as error:
            error.name(request.source, str(request))
            raise

    async def _with_retries(self, request: FetchRequest, host: str) -> Page:
        """Retry a request where that may help; page and error contain the number of retries.

        If a retry is rejected, the error that caused it is raised: it says more.
        """
        started = self._clock.monotonic()
        outcome = await self._attempt(request, host, started)
        if not isinstance(outcome, CircuitOpen):
            self.budget.earn()
        retries = 0
        while isinstance(outcome, FetchError):
            outcome.retries = retries
            wait = self._wait_after(outcome, host, started)
            if wait is None:
                raise outcome
            self._emit_retry(request, outcome, wait)
            await asyncio.sleep(wait)
            again = await self._attempt(request, host, started)
            if isinstance(again, CircuitOpen):
                raise outcome
            outcome = again
            retries += 1
        return msgspec.structs.replace(outcome, retries=retries) if retries else outcome

    def _wait_after(self, error: FetchError, host: str, started: float) -> float | None:
        """Return the seconds until the next attempt; `None` if there is none, or it would be rejected."""
        now = self._clock.monotonic()
        wait = next_delay(self._retry, error.retries + 1, now - started, error, self._random())
        return wait if wait is not None and host not in self.targets.open_hosts(now) and self.budget.spend() else None

    async def _attempt(self, request: FetchRequest, host: str, started: float) -> Page | FetchError:
        """Send a request once, unless Retry-After or circuit prevent it; return the page or the error."""
        now = self._clock.monotonic()
        wait = self.postponed_until - now
        if wait > 0:
            return CircuitOpen(f"rate-limited: the site sent Retry-After, {wait:.1f} s left", retry_after_seconds=wait)
        permit = self.targets.enter(host, now)
        if permit is None:
            return self._circuit_open(host, now)
        self._emit_transitions(permit.transitions)
        total = self._retry.total_seconds
        try:
            async with asyncio.timeout(None if total is None else total - (now - started)):
                return await self._send(request, permit, now)
        except TimeoutError:
            return FetchTimeout(f"no complete response within {total:g} s")
        finally:
            # A cancelled request says nothing about the host, and must not occupy a probe of its circuit.
            self.targets.release(permit)

    async def _send(self, request: FetchRequest, permit: HostPermit, started: float) -> Page | FetchError:
        """Wait for the response within the deadline of one attempt, and count the outcome."""
        seconds = self.timeouts.now.fetch
        try:
            async with asyncio.timeout(seconds):
                page = await self._inner.fetch(request)
        except FetchError as error:
            return self._failed(request, permit, started, error)
        except TimeoutError:
            return self._failed(request, permit, started, FetchTimeout(f"no complete response within {seconds:g} s"))
        if page.status == 204 or not page.body:
            return self._failed(request, permit, started, EmptyBody(f"answered {page.status} with an empty body"))
        now = self._clock.monotonic()
        self._learn(request.source, now - started)
        self._count_response(permit, started, now)
        return page

    def _failed(self, request: FetchRequest, permit: HostPermit, started: float, error: FetchError) -> FetchError:
        """Return the error after it was counted for deadline, circuit and Retry-After, in this order."""
        now, kind = self._clock.monotonic(), kind_of(error)
        if isinstance(error, FetchTimeout) or kind not in _IMMEDIATE:
            self._learn(request.source, now - started)
        error.is_canary = permit.is_trial
        if kind is FailureKind.CONNECTION:
            self._emit_transitions(self.targets.fail(permit, now), error.reason)
        elif kind not in _NOT_THE_SITE:
            self._count_response(permit, started, now)
        if not isinstance(error, CircuitOpen):
            self._postpone_all(request, error, now)
        return error

    def _learn(self, source: str, seconds: float) -> None:
        changed = self.timeouts.observe(seconds)
        if changed is not None:
            event = TimeoutsChanged(
                source=source,
                mean_seconds=round(self.timeouts.mean, 3),
                fetch_seconds=round(changed.fetch, 3),
                page_seconds=round(changed.page, 3),
                navigation_seconds=round(changed.navigation, 3),
                selector_seconds=round(changed.selector, 3),
            )
            self._bus.emit(event)

    def _count_response(self, permit: HostPermit, started: float, now: float) -> None:
        """Count a response for the circuit: whatever its content, the connection works."""
        took = now - started
        # A site whose deadline was extended may use it.
        counted = took if took > SLOW_SHARE * self.timeouts.now.fetch else 0.0
        transitions = self.targets.succeed(permit, now, counted)
        if transitions:
            self._emit_transitions(transitions, f"answered after {took:.1f} s")

    def _postpone_all(self, request: FetchRequest, error: FetchError, now: float) -> None:
        """Postpone all requests to the site, whichever host, for the time of Retry-After; the longest counts."""
        asked = requested_wait(error)
        if asked is not None:
            is_news = self.postponed_until <= now
            wait = asked * (1.0 + RETRY_AFTER_JITTER_SHARE * self._random())
            if now + wait > self.postponed_until:
                self.postponed_until = now + wait
                self._pauses.begin(PauseKind.RETRY_AFTER, request.source, wait, error.reason)
            # A retry waits as long as all other requests, or it would be rejected.
            error.retry_after_seconds = self.postponed_until - now
            if is_news:
                self._bus.emit(SourceRateLimited(source=request.source, seconds=round(wait, 1), reason=error.reason))

    def _resume(self, former: FormerPause) -> None:
        """Continue a pause of an earlier run, and report it as a new one: nothing else knows of it."""
        now = self._clock.monotonic()
        if former.kind is PauseKind.RETRY_AFTER:
            wait = min(former.seconds, MAX_RETRY_AFTER)
            self.postponed_until = now + wait
            reason = former.explained()
            self._bus.emit(SourceRateLimited(source=former.subject, seconds=round(wait, 1), reason=reason))
        elif former.kind is PauseKind.TARGET_CIRCUIT:
            for each in self.targets.reopen(former.subject, now, former.seconds, former.explained()):
                report_breaker(self._bus, "target", each)

    def _circuit_open(self, host: str, now: float) -> CircuitOpen:
        seconds = self.targets.remaining(host, now)
        state = f"open for {host}, {seconds:.1f} s left" if seconds else f"half open for {host}: probing"
        return CircuitOpen(f"circuit {state}", retry_after_seconds=seconds)

    def _emit_transitions(self, transitions: tuple[Transition, ...], last: str = "") -> None:
        for each in transitions:
            each.store(self._pauses, PauseKind.TARGET_CIRCUIT, last)
            report_breaker(self._bus, "target", each, last=last)

    def _emit_retry(self, request: FetchRequest, error: FetchError, wait: float) -> None:
        event = RequestRetried(
            source=request.source,
            request=str(request),
            attempt=error.retries + 2,
            error_type=type(error).__name__,
            error_message=error.reason,
            wait_seconds=round(wait, 3),
        )
        self._bus.emit(event)


class ReplaceableFetcher:
    """A fetcher that can be replaced in use: new requests use the new one, running ones finish in the old one."""

    def __init__(self, make: Callable[[], Fetcher]) -> None:
        self._make = make
        #: The fetcher of new requests.
        self.current = make()
        #: The number of running requests of each fetcher.
        self._busy: Counter[Fetcher] = Counter()

    async def fetch(self, request: FetchRequest) -> Page:
        fetcher = self.current
        self._busy[fetcher] += 1
        try:
            return await fetcher.fetch(request)
        finally:
            self._busy[fetcher] -= 1
            await self._close_if_old(fetcher)

    async def replace(self) -> None:
        """Use a new fetcher; the old one is closed after its last request."""
        old, self.current = self.current, self._make()
        await self._close_if_old(old)

    async def aclose(self) -> None:
        for fetcher in {self.current, *self._busy}:
            await fetcher.aclose()

    async def _close_if_old(self, fetcher: Fetcher) -> None:
        if fetcher is not self.current and not self._busy[fetcher]:
            del self._busy[fetcher]
            await fetcher.aclose()
