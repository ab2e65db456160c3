"""A source behind its guards, in virtual time: what the tests of the guards share."""

import asyncio
from collections.abc import Callable, Iterable
from random import Random

from longstop.errors import CircuitOpen, FetchError
from longstop.fetching.base import FetchRequest, Page
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy, GuardedFetcher, GuardPolicy
from longstop.model.request_pause import SourcePauses
from longstop.resilience.breaker import BreakerPolicy, target_policy
from longstop.resilience.retry_policy import RetryPolicy, policies
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import RequestRetried
from longstop.testing import ScriptedFetcher, ScriptedReply, VirtualClock
from tests.memory import MemorySink

POLICY = FetchPolicy(hosts=("crex.com", "api.crex.com"), deadline_seconds=10)
REQUEST = FetchRequest(source="crex", url="https://crex.com/live?token=secret")
API_REQUEST = FetchRequest(source="crex", url="https://api.crex.com/state")
ONCE = RetryPolicy(attempts=1)


class NoDice(Random):
    """Dice that always show 0, so that waits are as stated."""

    def random(self) -> float:
        return 0.0


class Site:
    """A scripted site, the guarded fetcher in front of it, and the emitted events."""

    def __init__(
        self,
        script: Callable[[FetchRequest], ScriptedReply],
        *,
        delay_seconds: float = 0.0,
        retry: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
        pauses: SourcePauses | None = None,
        random: Random | None = None,
    ) -> None:
        self.sink = MemorySink()
        #: How many requests were rejected.
        self.rejected = 0
        self.inner = ScriptedFetcher(script, delay_seconds=delay_seconds)
        self.fetcher = GuardedFetcher(
            self.inner,
            POLICY,
            clock=VirtualClock(),
            bus=Bus([self.sink]),
            guards=GuardPolicy(retry=retry or policies().live, breaker=breaker or target_policy()),
            pauses=pauses,
            random=random or NoDice(),
        )

    @property
    def asked(self) -> int:
        return len(self.inner.requests)

    @property
    def retries(self) -> int:
        """How many requests were sent again."""
        return sum(isinstance(event, RequestRetried) for event in self.sink.events)

    def open_hosts(self) -> tuple[str, ...]:
        return self.fetcher.targets.open_hosts(now())

    def rest_seconds(self) -> float:
        return max(0.0, self.fetcher.postponed_until - now())

    def takes(self, seconds: float) -> None:
        """Let each answer take so long from here on."""
        self.inner._delay_seconds = seconds

    async def fetch(self, request: FetchRequest = REQUEST) -> Page | FetchError:
        try:
            return await self.fetcher.fetch(request)
        except FetchError as error:
            self.rejected += isinstance(error, CircuitOpen)
            return error

    async def fetch_often(self, times: int, request: FetchRequest = REQUEST) -> list[Page | FetchError]:
        return [await self.fetch(request) for _ in range(times)]


def saying(*answers: ScriptedReply) -> Callable[[FetchRequest], ScriptedReply]:
    """Return a script that gives one answer after the other, and then the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def now() -> float:
    return asyncio.get_running_loop().time()


def types(outcomes: Iterable[Page | FetchError]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]
