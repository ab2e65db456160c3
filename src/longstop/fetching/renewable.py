"""A fetcher that can be made afresh while others use it: new requests go by the new one, old ones end by the old."""

from collections import Counter
from collections.abc import Callable

from longstop.fetching.base import Fetcher, FetchRequest, Page


class RenewableFetcher:
    """Holds a fetcher, and replaces it when asked to."""

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
        """Go on with a new fetcher; the old one is closed once nobody uses it."""
        old, self._current = self._current, self._make()
        await self._close_if_old(old)

    async def aclose(self) -> None:
        for fetcher in {self._current, *self._busy}:
            await fetcher.aclose()

    async def _close_if_old(self, fetcher: Fetcher) -> None:
        if fetcher is not self._current and not self._busy[fetcher]:
            del self._busy[fetcher]
            await fetcher.aclose()
