"""The guard that asks again, within one total deadline and the source's budget."""

import asyncio
from collections.abc import Callable
from math import inf

import msgspec

from longstop.clock import Clock
from longstop.errors import CircuitOpen, FetchError
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.fetching.guards import Around, within
from longstop.resilience.retry import RetryBudget, RetryPolicy, next_delay
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import RequestRetried


class Retrying(Around):
    """Sends a request again when that may help; page and error say how often it was tried before.

    Who is held back by a later guard learns what really went wrong, if this request has met it.
    """

    def __init__(
        self,
        inner: Fetcher,
        *,
        policy: RetryPolicy,
        budget: RetryBudget,
        is_hopeless: Callable[[FetchRequest], bool],
        dice: Callable[[], float],
        clock: Clock,
        bus: Bus,
    ) -> None:
        super().__init__(inner)
        self._policy = policy
        self._budget = budget
        #: Whether a request would be held back now: then nobody waits for another attempt.
        self._is_hopeless = is_hopeless
        self._dice = dice
        self._clock = clock
        self._bus = bus

    async def fetch(self, request: FetchRequest) -> Page:
        started = self._clock.monotonic()
        outcome = await self._attempt(request, started)
        if not isinstance(outcome, CircuitOpen):
            self._budget.earn()
        retries = 0
        while isinstance(outcome, FetchError):
            outcome.retries = retries
            wait = self._wait_after(outcome, request, started)
            if wait is None:
                raise outcome
            self._tell(request, outcome, wait)
            await asyncio.sleep(wait)
            again = await self._attempt(request, started)
            if isinstance(again, CircuitOpen):
                raise outcome
            outcome = again
            retries += 1
        return msgspec.structs.replace(outcome, retries=retries)

    async def _attempt(self, request: FetchRequest, started: float) -> Page | FetchError:
        total = inf if self._policy.total_seconds is None else self._policy.total_seconds
        try:
            async with within(total, spent=self._clock.monotonic() - started):
                return await self._inner.fetch(request)
        except FetchError as error:
            return error

    def _wait_after(self, error: FetchError, request: FetchRequest, started: float) -> float | None:
        elapsed = self._clock.monotonic() - started
        wait = next_delay(self._policy, error.retries + 1, elapsed, error, self._dice())
        return wait if wait is not None and not self._is_hopeless(request) and self._budget.spend() else None

    def _tell(self, request: FetchRequest, error: FetchError, wait: float) -> None:
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
