"""Requests in order of arrival, read from the simulator's request log: peaks, means and bans."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from longstop.errors import UsageError
from longstop_lab.deployment import Deployment
from longstop_lab.simulator.request_log import RequestNote

#: A request that arrives this soon after a Retry-After was already in flight.
IN_FLIGHT_SECONDS = 0.25


class Timeline:
    """Reads the simulator's request log from a moment on."""

    def __init__(self, deployment: Deployment) -> None:
        self.notes: list[RequestNote] = []
        self._deployment = deployment
        self._last = 0

    async def begin(self) -> None:
        """Skip everything up to now."""
        await self.follow()
        self.notes.clear()

    async def follow(self) -> None:
        """Read what is new."""
        while found := await self._next():
            if self._last and found[0].number != self._last + 1:
                raise UsageError("the simulator has forgotten requests that were not read yet: follow it more often")
            self.notes += found
            self._last = found[-1].number

    async def _next(self) -> list[RequestNote]:
        answer = await self._deployment.simulator.get(f"/_sim/requests?after={self._last}")
        return msgspec.convert(answer.body["requests"], list[RequestNote])


def moments(notes: Iterable[RequestNote], since: datetime, until: datetime) -> list[float]:
    """Return when the requests of a span came, in seconds from its beginning."""
    return sorted((note.at - since).total_seconds() for note in notes if since <= note.at <= until)


def peak(times: Sequence[float], window: float) -> int:
    """Return the most requests in any window of this length, wherever it begins; times are sorted."""
    return max((bisect_left(times, time + window) - nth for nth, time in enumerate(times)), default=0)


class Bans(Struct, frozen=True, kw_only=True):
    """Requests during the bans of a site."""

    count: int
    #: Requests that were on their way when the ban began.
    in_flight: int
    #: Requests that were sent in spite of it.
    during: int


def bans(notes: Iterable[RequestNote]) -> Bans:
    """Return the number of bans (Retry-After), and of requests that came during them.

    A ban begins when an answer with `Retry-After` goes out and is lifted when its seconds are over; one that begins
    before another is lifted prolongs it. A ban is of the whole site, whichever page spoke it out.
    """
    notes = sorted(notes, key=lambda note: note.at)
    spans = _spans(notes)
    grace = timedelta(seconds=IN_FLIGHT_SECONDS)
    inside = [(note.at, begin) for note in notes for begin, end in spans if begin < note.at < end]
    in_flight = sum(at <= begin + grace for at, begin in inside)
    return Bans(count=len(spans), in_flight=in_flight, during=len(inside) - in_flight)


def _spans(notes: Iterable[RequestNote]) -> list[tuple[datetime, datetime]]:
    spans: list[tuple[datetime, datetime]] = []
    for begin, seconds in sorted(_spoken(notes)):
        end = begin + timedelta(seconds=seconds)
        if spans and begin < spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], end)
        else:
            spans.append((begin, end))
    return spans


def _spoken(notes: Iterable[RequestNote]) -> Iterable[tuple[datetime, int]]:
    for note in notes:
        if note.retry_after_seconds is not None:
            yield note.at + timedelta(seconds=note.delay_seconds), note.retry_after_seconds
