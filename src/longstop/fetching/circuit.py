"""Guards that leave a site alone: a host to which connections fail, and a site that asks for rest."""

from collections.abc import Callable
from urllib.parse import urlsplit

from longstop.clock import Clock
from longstop.errors import CircuitOpen, FetchError
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.fetching.guards import Around
from longstop.resilience.breaker import Move, Pass, Rest, Targets
from longstop.resilience.retry import asked_rest
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.resilience.timeouts import AdaptiveTimeouts
from longstop.telemetry.breakers import tell_breaker
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import SourceRests

#: On top of the rest that a site asks for, up to this share of it.
REST_JITTER_SHARE = 0.1
#: No answer that takes a smaller share of the time it is given counts as a slow one.
NEARLY_LATE_SHARE = 0.8
#: Failures in which the site had no part: they say nothing about it.
SITE_NOT_HEARD = frozenset({FailureKind.HELD, FailureKind.OURS})


def host_of(request: FetchRequest) -> str:
    """Return the host, with its port where the URL has one, of a request whose host is listed."""
    return urlsplit(request.url).netloc.lower()


class Resting(Around):
    """Holds all requests to a site for as long as one answer has asked for."""

    def __init__(self, inner: Fetcher, *, rest: Rest, dice: Callable[[], float], clock: Clock, bus: Bus) -> None:
        super().__init__(inner)
        self._rest = rest
        self._bus = bus
        self._dice = dice
        self._clock = clock

    async def fetch(self, request: FetchRequest) -> Page:
        seconds = self._rest.hold(self._clock.monotonic())
        if seconds > 0:
            raise CircuitOpen(f"the site has asked for rest, {seconds:.1f} s more", retry_after_seconds=seconds)
        try:
            return await self._inner.fetch(request)
        except CircuitOpen:
            raise
        except FetchError as error:
            self._obey(request, error)
            raise

    def _obey(self, request: FetchRequest, error: FetchError) -> None:
        asked = asked_rest(error)
        if asked is not None:
            now = self._clock.monotonic()
            is_news = not self._rest.remaining(now)
            self._rest.ask(asked * (1.0 + REST_JITTER_SHARE * self._dice()), now)
            # Whoever waits for it waits until the rest is over for all, or would be held when he comes back.
            error.retry_after_seconds = self._rest.remaining(now)
            if is_news:
                seconds = round(self._rest.remaining(now), 1)
                self._bus.emit(SourceRests(source=request.source, seconds=seconds, reason=error.reason))


class TargetCircuit(Around):
    """Leaves a host alone to which connections fail in a row; whatever the site answers, the connection is good."""

    def __init__(self, inner: Fetcher, *, targets: Targets, timeouts: AdaptiveTimeouts, clock: Clock, bus: Bus) -> None:
        super().__init__(inner)
        self._targets = targets
        self._timeouts = timeouts
        self._clock = clock
        self._bus = bus

    async def fetch(self, request: FetchRequest) -> Page:
        host, started = host_of(request), self._clock.monotonic()
        leave = self._targets.enter(host, started)
        if leave is None:
            raise self._held(host, started)
        self._tell(leave.moves)
        try:
            page = await self._inner.fetch(request)
            self._answered(leave, started)
            return page
        except FetchError as error:
            error.is_canary = leave.is_trial
            kind = kind_of(error)
            if kind is FailureKind.CONNECTION:
                self._tell(self._targets.fail(leave, self._clock.monotonic()), error.reason)
            elif kind not in SITE_NOT_HEARD:
                self._answered(leave, started)
            raise
        finally:
            # What was cancelled says nothing, and must not keep its place among the probes.
            self._targets.release(leave, self._clock.monotonic())

    def _answered(self, leave: Pass, started: float) -> None:
        now = self._clock.monotonic()
        took = now - started
        # A site that has been given more time may take it.
        counted = took if took > NEARLY_LATE_SHARE * self._timeouts.now.fetch else 0.0
        self._tell(self._targets.succeed(leave, now, counted), f"answered after {took:.1f} s")

    def _held(self, host: str, now: float) -> CircuitOpen:
        seconds = self._targets.remaining(host, now)
        reason = f"{host} is left alone for {seconds:.1f} s more" if seconds else f"{host} is being tried by others"
        return CircuitOpen(reason, retry_after_seconds=seconds)

    def _tell(self, moves: tuple[Move, ...], last: str = "") -> None:
        for move in moves:
            tell_breaker(self._bus, "target", move.host, move.transition, last=last)
