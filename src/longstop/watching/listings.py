"""One source's listing: when it is requested, and which matches it shows.

It is requested once at a time, and less often while it fails. No match waits long for it.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from msgspec import Struct

from longstop.clock import Clock, Moment
from longstop.errors import CircuitOpen, PageNotFound, ResourcesExhausted, SourceError, SourceRefused
from longstop.matches.client import SourceClient
from longstop.model.observation import Listing, ListingEntry
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import PollPostponed
from longstop.telemetry.events.sources import ListingFailed
from longstop.watching.cadence import EARLY, Cadence, Pace

#: How long the matches wait for a listing that is under way, and how often each is polled by itself without one: in
#: multiples of the usual interval.
UNLISTED_FACTOR = 4.0
#: All matches depend on the listing: while it is read well after a bad spell, its interval grows by this factor at
#: most.
SLOWEST_GOOD_LISTING = 2.0
#: A finished match that was not listed for this long is forgotten. If it comes back, the store still knows that it is
#: archived.
FORGOTTEN_AFTER_SECONDS = 24 * 3600.0


# --- who is listed: pure --------------------------------------------------------------------------------------------


class Plan(Struct, frozen=True, kw_only=True):
    """A listing, sorted out. A match it does not show is not finished: it is polled by itself."""

    new: tuple[ListingEntry, ...]
    changed: tuple[ListingEntry, ...]
    unchanged: tuple[ListingEntry, ...]
    missing: tuple[str, ...]


def sort_out(
    listing: Listing, *, watched: Collection[str], ignored: Collection[str], is_news: Callable[[ListingEntry], bool]
) -> Plan:
    """Return what to do about each match of a listing and each match that is watched."""
    boards = [board for board in listing.boards if board.source_id not in ignored]
    known = [board for board in boards if board.source_id in watched]
    news = [is_news(board) for board in known]
    return Plan(
        new=tuple(board for board in boards if board.source_id not in watched),
        changed=tuple(board for board, is_changed in zip(known, news, strict=True) if is_changed),
        unchanged=tuple(board for board, is_changed in zip(known, news, strict=True) if not is_changed),
        missing=tuple(sorted(set(watched) - {board.source_id for board in boards})),
    )


class Finished:
    """Matches that are finished for us, while a site may still list them: remembered until a day after that.

    Moments are monotonic.
    """

    def __init__(self) -> None:
        self._listed_at: dict[str, float] = {}

    def __contains__(self, source_id: object) -> bool:
        return source_id in self._listed_at

    def add(self, source_id: str, now: float) -> None:
        self._listed_at[source_id] = now

    def discard(self, source_id: str) -> None:
        self._listed_at.pop(source_id, None)

    def hear(self, listed: Iterable[str], now: float) -> None:
        """Note who is listed, and forget those who have not been listed for a day."""
        heard = {source_id: now for source_id in listed if source_id in self._listed_at}
        kept = {key: at for key, at in self._listed_at.items() if now - at < FORGOTTEN_AFTER_SECONDS}
        self._listed_at = kept | heard


# --- asking for it --------------------------------------------------------------------------------------------------


class Listings:
    """Brings the listings of one source, one after the other."""

    def __init__(self, source: str, *, client: SourceClient, bus: Bus, clock: Clock, cadence: Cadence) -> None:
        self._source = source
        self._client = client
        self._bus, self._clock, self._cadence = bus, clock, cadence
        self._asking: asyncio.Task[Listing] | None = None
        #: When the last one was asked for: an age counts from the question, however late the answer is.
        self.asked = self._began = Moment.of(clock)
        self._read: Moment | None = None
        #: Not asked for before this moment, since it failed.
        self._again_at = 0.0
        self._pace = Pace()
        #: Whether the last one was refused: then the matches are left alone too.
        self.is_refused = False
        #: Whether the last one was not read, so that everybody is waiting for the next.
        self.is_awaited = True

    @property
    def read_at(self) -> datetime | None:
        """Return when a listing was last read."""
        return self._read.wall if self._read else None

    @property
    def unread_seconds(self) -> float:
        """Return how long ago that was; before the first time, for how long it has been waited for."""
        return self._clock.monotonic() - (self._read or self._began).monotonic

    async def next(self) -> Listing | None:
        """Return a listing; `None` while there is none, or it takes so long that the matches must not wait."""
        if self._clock.monotonic() < self._again_at:
            return None
        try:
            listing = await self._ask()
        except SourceError as error:
            self.is_awaited, self.is_refused = True, isinstance(error, SourceRefused)
            self._take_note(error)
            return None
        if listing is not None:
            self._read = self.asked
        return listing

    def settle(self) -> None:
        """Take note that the last one was read and sorted out: nobody is waiting any more."""
        self.is_awaited = self.is_refused = False
        self._pace = self._pace.after(self._clock.monotonic(), errors=0, calm_after=self._cadence.calm_after)

    def distance(self, usual: float) -> float:
        """Return the seconds to the next one, which is usually so far away; after a bad spell it is further."""
        if self._pace.factor <= 1:
            return usual
        return max(usual, self._cadence.live * min(self._pace.factor, SLOWEST_GOOD_LISTING))

    def drop(self) -> None:
        """Let go of the one that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask(self) -> Listing | None:
        if self._asking is None:
            self.asked = Moment.of(self._clock)
            self._asking = asyncio.create_task(self._client.listing(), name=f"listing of {self._source}")
        asking = self._asking
        done, _ = await asyncio.wait({asking}, timeout=self._cadence.live * UNLISTED_FACTOR)
        if not done:
            return None
        self._asking = None
        return None if asking.cancelled() else asking.result()

    def _take_note(self, error: SourceError) -> None:
        """Say that a listing was not read, and settle when to ask again; the matches do not wait for that."""
        if isinstance(error, ResourcesExhausted):
            self._bus.emit(PollPostponed(resource=error.resource, subject=f"the listing of {self._source}"))
        if isinstance(error, CircuitOpen):
            return
        self._bus.emit(
            ListingFailed(
                source=self._source, error_type=type(error).__name__, error_message=str(error), page=error.page
            )
        )
        if error.is_canary:
            return
        now = self._clock.monotonic()
        self._pace = self._pace.after(now, errors=1 + error.retries, calm_after=self._cadence.calm_after)
        slowed = self._cadence.live * self._pace.factor
        # A turn that comes a moment early is not to be lost for a whole one.
        distance = self._cadence.not_found if isinstance(error, PageNotFound) else slowed - EARLY * self._cadence.live
        self._again_at = now + distance
