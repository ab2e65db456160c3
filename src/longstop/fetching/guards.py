"""Guards around a fetcher: each a small wrapper with one concern. `care.py` puts them in order."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import EmptyBody, FetchError, FetchTimeout, belonging_to
from longstop.fetching.addresses import allowed_target
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.resilience.timeouts import SLOW_FACTOR, AdaptiveTimeouts
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import TimeoutsChanged

_QUICK_KINDS = frozenset({FailureKind.CONNECTION, FailureKind.HELD, FailureKind.OURS})


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


@asynccontextmanager
async def within(seconds: float, spent: float = 0.0) -> AsyncIterator[None]:
    """End what takes longer than the seconds that it was given, some of them spent already, however it drips."""
    try:
        async with asyncio.timeout(seconds - spent):
            yield
    except TimeoutError as error:
        raise FetchTimeout(f"no whole answer within {seconds:g} s") from error


class Around:
    """What all guards share: they hold a fetcher and close it."""

    def __init__(self, inner: Fetcher) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()


class NamedErrors(Around):
    """Says on every error which source and which request it belongs to."""

    async def fetch(self, request: FetchRequest) -> Page:
        with belonging_to(request.source, str(request)):
            return await self._inner.fetch(request)


class ListedHosts(Around):
    """Refuses a request to a host outside the source's list before anything is looked up or sent."""

    def __init__(self, inner: Fetcher, *, policy_now: Callable[[], FetchPolicy]) -> None:
        super().__init__(inner)
        #: The operator may change the list while we run.
        self._policy_now = policy_now

    async def fetch(self, request: FetchRequest) -> Page:
        policy = self._policy_now()
        allowed_target(request.url, policy.hosts, policy.allow_private_addresses)
        return await self._inner.fetch(request)


class Deadline(Around):
    """Ends an attempt that takes too long for this site, and learns from each how long the site takes."""

    def __init__(self, inner: Fetcher, *, timeouts: AdaptiveTimeouts, clock: Clock, bus: Bus) -> None:
        super().__init__(inner)
        self._timeouts = timeouts
        self._clock = clock
        self._bus = bus

    async def fetch(self, request: FetchRequest) -> Page:
        started = self._clock.monotonic()
        try:
            async with within(self._timeouts.now.fetch):
                page = await self._inner.fetch(request)
        except FetchError as error:
            # A connection that breaks at once says nothing about how long an answer takes, nor who was not asked.
            if isinstance(error, FetchTimeout) or kind_of(error) not in _QUICK_KINDS:
                self._learn(request.source, self._clock.monotonic() - started)
            raise
        self._learn(request.source, self._clock.monotonic() - started)
        return page

    def _learn(self, source: str, seconds: float) -> None:
        changed = self._timeouts.observe(seconds)
        if changed is not None:
            self._bus.emit(
                TimeoutsChanged(
                    source=source,
                    mean_seconds=round(self._timeouts.mean, 3),
                    fetch_seconds=round(changed.fetch, 3),
                    page_seconds=round(changed.page, 3),
                    navigation_seconds=round(changed.navigation, 3),
                    selector_seconds=round(changed.selector, 3),
                )
            )


class SomeBody(Around):
    """Refuses a good answer with nothing in it: no page of ours is empty."""

    async def fetch(self, request: FetchRequest) -> Page:
        page = await self._inner.fetch(request)
        if page.status == 204 or not page.body:
            raise EmptyBody(f"answered {page.status} with an empty body")
        return page
