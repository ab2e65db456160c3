"""One source's listing: when to request it.

There is one request at a time, and fewer while they fail. Matches do not wait long for it.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime

from longstop.clock import Clock, Moment
from longstop.errors import CircuitOpen, PageNotFound, ResourcesExhausted, SourceError, SourceRefused, without_frames
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.source_queries_and_answers import Listing
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import PollPostponed
from longstop.telemetry.events.sources import ListingFailed
from longstop.watching.poll_intervals_and_frozen_pages import EARLY, Cadence, ErrorBackoff

#: How long matches wait for the listing, and how often they are polled without one: in multiples of the usual interval.
UNLISTED_FACTOR = 4.0
#: All matches depend on the listing. Once it succeeds after errors, its interval grows by at most this factor.
SLOWEST_GOOD_LISTING = 2.0
#: A finished match that was not listed for this long is forgotten. If it returns, the store knows that it is archived.
FORGOTTEN_AFTER_SECONDS = 24 * 3600.0


def finished_after(finished: Mapping[str, float], listed: Collection[str], now: float, most: int) -> dict[str, float]:
    """Return the finished matches, by when each was last listed: the newest ones of the last day."""
    listed_at = {key: now if key in listed else at for key, at in finished.items()}
    newest = sorted(listed_at.items(), key=lambda each: each[1], reverse=True)[:most]
    return {key: at for key, at in newest if now - at < FORGOTTEN_AFTER_SECONDS}


class Listings:
    """Requests the listings of one source, one at a time."""

    def __init__(self, source: str, *, client: SourceClient, bus: Bus, clock: Clock, cadence: Cadence) -> None:
        self._source = source
        self._client = client
        self._bus, self._clock, self._cadence = bus, clock, cadence
        self._request: asyncio.Task[Listing] | None = None
        #: When the last listing was requested: an age counts from the request, not from the answer.
        self.asked = self._began = Moment.of(clock)
        self._read: Moment | None = None
        #: After a failure, no request before this time.
        self._again_at = 0.0
        self._backoff = ErrorBackoff()
        #: Whether the site refused the last request: then the matches are not polled either.
        self.is_refused = False
        #: Whether the last request failed, so that all matches are due at the next listing.
        self.is_awaited = True

    @property
    def read_at(self) -> datetime | None:
        return self._read.wall if self._read else None

    @property
    def unread_seconds(self) -> float:
        """Return the seconds since the last listing; before the first, since the start."""
        return self._clock.monotonic() - (self._read or self._began).monotonic

    async def next(self) -> Listing | None:
        """Return a listing; `None` after a failure, and when it takes too long for the matches to wait."""
        if self._clock.monotonic() < self._again_at:
            return None
        try:
            listing = await self._read_next()
        except SourceError as error:
            self.is_awaited, self.is_refused = True, isinstance(error, SourceRefused)
            self._note_failure(error)
            without_frames(error)
            return None
        if listing is not None:
            self._read = self.asked
        return listing

    def settle(self) -> None:
        """Note that the last listing was processed."""
        self.is_awaited = self.is_refused = False
        self._backoff = self._backoff.after(self._clock.monotonic(), errors=0, calm_after=self._cadence.calm_after)

    def distance(self, usual: float) -> float:
        """Return the seconds to the next listing, which errors extend."""
        if self._backoff.factor <= 1:
            return usual
        return max(usual, self._cadence.live * min(self._backoff.factor, SLOWEST_GOOD_LISTING))

    def retry_now(self) -> None:
        """Request the next listing without waiting after errors."""
        self._again_at = 0.0

    def cancel(self) -> None:
        if self._request is not None:
            self._request.cancel()
            self._request = None

    async def _read_next(self) -> Listing | None:
        if self._request is None:
            self.asked = Moment.of(self._clock)
            self._request = asyncio.create_task(self._client.listing(), name=f"listing of {self._source}")
        request = self._request
        done, _ = await asyncio.wait({request}, timeout=self._cadence.live * UNLISTED_FACTOR)
        if not done:
            return None
        self._request = None
        return None if request.cancelled() else request.result()

    def _note_failure(self, error: SourceError) -> None:
        """Report a failed listing, and set the time of the next request; the matches do not wait for it."""
        if isinstance(error, ResourcesExhausted):
            self._bus.emit(PollPostponed(resource=error.resource, subject=f"the listing of {self._source}"))
        if isinstance(error, CircuitOpen):
            return
        event = ListingFailed(
            source=self._source, error_type=type(error).__name__, error_message=str(error), page=error.page
        )
        self._bus.emit(event)
        if error.is_canary:
            return
        now = self._clock.monotonic()
        self._backoff = self._backoff.after(now, errors=1 + error.retries, calm_after=self._cadence.calm_after)
        slowed = self._cadence.live * self._backoff.factor
        # Slightly less than the interval, or a tick that comes a moment early would be skipped.
        distance = self._cadence.not_found if isinstance(error, PageNotFound) else slowed - EARLY * self._cadence.live
        self._again_at = now + distance
