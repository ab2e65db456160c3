"""What stands between a source's requests and its fetcher: one `GuardedFetcher` per source, and its policies."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec
from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import CircuitOpen, EmptyBody, FetchError, FetchTimeout, SourceError
from longstop.fetching.addresses import allowed_target
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.resilience.breaker import BreakerPolicy, Move, Pass, Rest, Targets, target_policy
from longstop.resilience.retry import RetryPolicy, asked_rest, next_delay, policies
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.resilience.timeouts import SLOW_FACTOR, AdaptiveTimeouts, Timeouts
from longstop.telemetry.bus import Bus, report_breaker
from longstop.telemetry.events.sources import RequestRetried, SourceRateLimited, TimeoutsChanged

#: On top of the rest that a site asks for, up to this share of it.
REST_JITTER_SHARE = 0.1
#: No answer that takes a smaller share of the time it is given counts as a slow one.
NEARLY_LATE_SHARE = 0.8
#: Failures in which the site had no part: they say nothing about it.
_SITE_NOT_HEARD = frozenset({FailureKind.HELD, FailureKind.OURS})
#: Failures that come at once, and do not show how long an answer takes.
_QUICK_KINDS = _SITE_NOT_HEARD | {FailureKind.CONNECTION}


class FetchPolicy(Struct, frozen=True, kw_only=True):
    """What one source may cost, and where it may lead."""

    #: The only hosts that may be asked, as `host` or `host:port`.
    hosts: tuple[str, ...]
    allow_private_addresses: bool = False
    #: From the question to the last byte, redirects included; a slow site is given more, a fast one less.
    deadline_seconds: float = 10.0
    #: Counted after decompression.
    max_body_bytes: int = 5 * 1024 * 1024
    max_redirects: int = 3
    #: Requests under way at one moment; others wait, within their deadline.
    max_connections: int = 32

    @property
    def longest_deadline_seconds(self) -> float:
        """What the slowest site is given."""
        return self.deadline_seconds * SLOW_FACTOR


class GuardPolicy(Struct, frozen=True, kw_only=True):
    """How one source's requests are retried, held back and timed."""

    retry: RetryPolicy = policies().live
    breaker: BreakerPolicy = target_policy()
    #: While a host's circuit is open, one request is sent to it all the same, as often as this.
    canary_seconds: float = 2.5
    #: `None` for the defaults, with the fetch policy's deadline for one request.
    timeouts: Timeouts | None = None


class RetryBudget:
    """Keeps the retries of a source below a fifth of its traffic, so that trouble is never multiplied.

    It is counted in fifths of a retry: five first attempts earn one.
    """

    COST = 5
    START = 3 * COST
    MOST = 10 * COST

    def __init__(self) -> None:
        self._fifths = self.START
        #: How many retries were ever paid for.
        self.spent = 0

    def earn(self) -> None:
        """Count a first attempt."""
        self._fifths = min(self._fifths + 1, self.MOST)

    def spend(self) -> bool:
        """Pay for a retry; return whether there was enough."""
        if self._fifths < self.COST:
            return False
        self._fifths -= self.COST
        self.spent += 1
        return True


class GuardedFetcher:
    """Sends one source's requests through all guards, which share what they know about the site.

    The order of the guards is the design; each covers all that follow it:

    1. Names: whichever guard or fetcher raises an error, it says which source and request it belongs to.
    2. Listed hosts: before anything that counts, since a request that may not be sent costs no retry and no breaker.
    3. Retries: outside of all that holds requests back, so that every attempt is checked again. One deadline covers all
       attempts. It says nothing about the site, so the guards below see it as a cancellation.
    4. Rest: before the circuit, so that a request held back uses up neither the canary nor the place of a probe.
    5. Circuit of the host: outside the deadline, so that an attempt without an answer counts as a failed connection.
    6. Deadline of one attempt: it follows how fast the site has answered of late, empty answers included.
    7. No empty page: innermost, since to all other guards an empty answer is an answer.
    """

    def __init__(
        self,
        inner: Fetcher,
        policy: FetchPolicy,
        *,
        clock: Clock,
        bus: Bus,
        guards: GuardPolicy | None = None,
        random: Random | None = None,
    ) -> None:
        guards = guards or GuardPolicy()
        #: The operator may change it while we run.
        self.policy = policy
        self.budget = RetryBudget()
        self.targets = Targets(guards.breaker, guards.canary_seconds)
        self.rest = Rest()
        self.timeouts = AdaptiveTimeouts(guards.timeouts or Timeouts(fetch=policy.deadline_seconds))
        self._inner = inner
        self._retry = guards.retry
        self._clock = clock
        self._bus = bus
        self._dice = (random or Random()).random

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def fetch(self, request: FetchRequest) -> Page:
        try:
            policy = self.policy
            target = allowed_target(request.url, policy.hosts, policy.allow_private_addresses)
            return await self._with_retries(request, target.authority)
        except SourceError as error:
            error.name(request.source, str(request))
            raise

    async def _with_retries(self, request: FetchRequest, host: str) -> Page:
        """Send a request again when that may help; page and error say how often it was tried before.

        A retry that is held back raises the error that made it necessary, which says more.
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
        """Return the seconds until the next attempt; `None` when there is none, or it would be held back."""
        now = self._clock.monotonic()
        wait = next_delay(self._retry, error.retries + 1, now - started, error, self._dice())
        return wait if wait is not None and host not in self.targets.open_hosts(now) and self.budget.spend() else None

    async def _attempt(self, request: FetchRequest, host: str, started: float) -> Page | FetchError:
        """Send a request once, unless rest or circuit hold it back; return the page, or what went wrong."""
        now = self._clock.monotonic()
        rest = self.rest.hold(now)
        if rest > 0:
            return CircuitOpen(f"the site has asked for rest, {rest:.1f} s more", retry_after_seconds=rest)
        leave = self.targets.enter(host, now)
        if leave is None:
            return self._circuit_open(host, now)
        self._emit_moves(leave.moves)
        total = self._retry.total_seconds
        try:
            async with asyncio.timeout(None if total is None else total - (now - started)):
                return await self._send(request, leave, now)
        except TimeoutError:
            return FetchTimeout(f"no whole answer within {total:g} s")
        finally:
            # What was cancelled says nothing, and must not keep its place among the probes.
            self.targets.release(leave, self._clock.monotonic())

    async def _send(self, request: FetchRequest, leave: Pass, started: float) -> Page | FetchError:
        """Wait for the answer within its own deadline, and note what it says about the site."""
        seconds = self.timeouts.now.fetch
        try:
            async with asyncio.timeout(seconds):
                page = await self._inner.fetch(request)
        except FetchError as error:
            return self._failed(request, leave, started, error)
        except TimeoutError:
            return self._failed(request, leave, started, FetchTimeout(f"no whole answer within {seconds:g} s"))
        if page.status == 204 or not page.body:
            return self._failed(request, leave, started, EmptyBody(f"answered {page.status} with an empty body"))
        now = self._clock.monotonic()
        self._learn(request.source, now - started)
        self._count_answer(leave, started, now)
        return page

    def _failed(self, request: FetchRequest, leave: Pass, started: float, error: FetchError) -> FetchError:
        """Return the error, once deadline, circuit and rest have taken note of it, in this order."""
        now, kind = self._clock.monotonic(), kind_of(error)
        if isinstance(error, FetchTimeout) or kind not in _QUICK_KINDS:
            self._learn(request.source, now - started)
        error.is_canary = leave.is_trial
        if kind is FailureKind.CONNECTION:
            self._emit_moves(self.targets.fail(leave, now), error.reason)
        elif kind not in _SITE_NOT_HEARD:
            self._count_answer(leave, started, now)
        if not isinstance(error, CircuitOpen):
            self._obey(request, error, now)
        return error

    def _learn(self, source: str, seconds: float) -> None:
        changed = self.timeouts.observe(seconds)
        if changed is not None:
            self._bus.emit(
                TimeoutsChanged(
                    source=source,
                    mean_seconds=round(self.timeouts.mean, 3),
                    fetch_seconds=round(changed.fetch, 3),
                    page_seconds=round(changed.page, 3),
                    navigation_seconds=round(changed.navigation, 3),
                    selector_seconds=round(changed.selector, 3),
                )
            )

    def _count_answer(self, leave: Pass, started: float, now: float) -> None:
        """Whatever the site answered, the connection is good."""
        took = now - started
        # A site that has been given more time may take it.
        counted = took if took > NEARLY_LATE_SHARE * self.timeouts.now.fetch else 0.0
        moves = self.targets.succeed(leave, now, counted)
        if moves:
            self._emit_moves(moves, f"answered after {took:.1f} s")

    def _obey(self, request: FetchRequest, error: FetchError, now: float) -> None:
        """Hold all requests to the site for as long as one answer has asked for."""
        asked = asked_rest(error)
        if asked is not None:
            is_news = not self.rest.remaining(now)
            self.rest.ask(asked * (1.0 + REST_JITTER_SHARE * self._dice()), now)
            # A retry waits until the rest is over for all requests, or it would be held back.
            error.retry_after_seconds = self.rest.remaining(now)
            if is_news:
                seconds = round(self.rest.remaining(now), 1)
                self._bus.emit(SourceRateLimited(source=request.source, seconds=seconds, reason=error.reason))

    def _circuit_open(self, host: str, now: float) -> CircuitOpen:
        seconds = self.targets.remaining(host, now)
        reason = f"{host} is left alone for {seconds:.1f} s more" if seconds else f"{host} is being tried by others"
        return CircuitOpen(reason, retry_after_seconds=seconds)

    def _emit_moves(self, moves: tuple[Move, ...], last: str = "") -> None:
        for move in moves:
            report_breaker(self._bus, "target", move.host, move.transition, last=last)

    def _emit_retry(self, request: FetchRequest, error: FetchError, wait: float) -> None:
        self._bus.emit(
            RequestRetried(
                source=request.source,
                request=str(request),
                attempt=error.retries + 2,
                error_type=type(error).__name__,
                error_message=error.reason,
                wait_seconds=round(wait, 3),
            )
        )


class RenewableFetcher:
    """Holds a fetcher that can be replaced in use: new requests go by the new one, old ones end by the old."""

    def __init__(self, make: Callable[[], Fetcher]) -> None:
        self._make = make
        self._current = make()
        #: How many requests are under way by each.
        self._busy: Counter[Fetcher] = Counter()

    @property
    def current(self) -> Fetcher:
        """The fetcher that new requests go by."""
        return self._current

    async def fetch(self, request: FetchRequest) -> Page:
        fetcher = self._current
        self._busy[fetcher] += 1
        try:
            return await fetcher.fetch(request)
        finally:
            self._busy[fetcher] -= 1
            await self._close_if_old(fetcher)

    async def renew(self) -> None:
        """Go on with a new fetcher; the old one is closed once its last request has ended."""
        old, self._current = self._current, self._make()
        await self._close_if_old(old)

    async def aclose(self) -> None:
        for fetcher in {self._current, *self._busy}:
            await fetcher.aclose()

    async def _close_if_old(self, fetcher: Fetcher) -> None:
        if fetcher is not self._current and not self._busy[fetcher]:
            del self._busy[fetcher]
            await fetcher.aclose()
