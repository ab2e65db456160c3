"""The guards around a fetcher: each a small wrapper with one concern, put in order in one visible list."""

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from longstop.errors import FetchTimeout, belonging_to
from longstop.fetching.addresses import allowed_target
from longstop.fetching.base import Fetcher, FetchRequest, Page

Guard = Callable[[Fetcher], Fetcher]


class FetchPolicy(Struct, frozen=True, kw_only=True):
    """What one source may cost, and where it may lead."""

    #: The only hosts that may be asked, as `host` or `host:port`.
    hosts: tuple[str, ...]
    allow_private_addresses: bool = False
    #: From the question to the last byte, redirects included.
    deadline_seconds: float = 10.0
    #: Counted after decompression.
    max_body_bytes: int = 5 * 1024 * 1024
    max_redirects: int = 3
    #: Requests under way at one moment; others wait, within their deadline.
    max_connections: int = 32


def guarded(fetcher: Fetcher, policy: FetchPolicy) -> Fetcher:
    """Return the fetcher behind its guards. The order is the design: what stands first sees all that follows."""
    guards: tuple[Guard, ...] = (
        NamedErrors,
        partial(Deadline, seconds=policy.deadline_seconds),
        partial(ListedHosts, policy=policy),
    )
    for guard in reversed(guards):
        fetcher = guard(fetcher)
    return fetcher


class _Around:
    """What all guards share: they hold a fetcher and close it."""

    def __init__(self, inner: Fetcher) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()


class NamedErrors(_Around):
    """Says on every error which source and which request it belongs to."""

    async def fetch(self, request: FetchRequest) -> Page:
        with belonging_to(request.source, str(request)):
            return await self._inner.fetch(request)


class Deadline(_Around):
    """Ends a fetch that takes too long in total, however steadily it drips."""

    def __init__(self, inner: Fetcher, *, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    async def fetch(self, request: FetchRequest) -> Page:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._inner.fetch(request)
        except TimeoutError as error:
            raise FetchTimeout(f"no whole answer within {self._seconds:g} s") from error


class ListedHosts(_Around):
    """Refuses a request to a host outside the source's list before anything is looked up or sent."""

    def __init__(self, inner: Fetcher, *, policy: FetchPolicy) -> None:
        super().__init__(inner)
        self._policy = policy

    async def fetch(self, request: FetchRequest) -> Page:
        allowed_target(request.url, self._policy.hosts, self._policy.allow_private_addresses)
        return await self._inner.fetch(request)
