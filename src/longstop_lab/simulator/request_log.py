"""The request log of a simulated site."""

from collections import Counter, deque
from collections.abc import Mapping
from datetime import datetime
from itertools import islice

from msgspec import Struct

from longstop_lab.simulator.faults import Choice
from longstop_lab.simulator.http import Request

#: Only the newest notes are kept; the counts cover all requests.
KEPT = 100_000
#: Notes in one response.
PAGE = 10_000


class RequestNote(Struct, frozen=True, kw_only=True, gc=False):
    """One request to the site, as it arrived."""

    #: Counts from 1 without gaps, so that a reader notices dropped notes.
    number: int
    at: datetime
    path: str
    match: str | None
    #: The fault that changed the response; `None` for a correct one, even if it was late.
    fault: str | None
    #: The delay of the response.
    delay_seconds: float
    #: The Retry-After of the response.
    retry_after_seconds: int | None


class RequestLog:
    """Counts all requests by path and keeps notes of the newest."""

    def __init__(self, kept: int = KEPT) -> None:
        self._counts: Counter[str] = Counter()
        self._notes: deque[RequestNote] = deque(maxlen=kept)
        self._last = 0

    @property
    def counts(self) -> Mapping[str, int]:
        return self._counts

    def note(self, request: Request, choice: Choice, now: datetime) -> None:
        self._counts[request.path] += 1
        self._last += 1
        fault = choice.fault
        self._notes.append(
            RequestNote(
                number=self._last,
                at=now,
                path=request.path,
                match=request.match_key,
                fault=fault.kind.value if fault else None,
                delay_seconds=round(choice.delay_seconds, 3),
                retry_after_seconds=fault.retry_after_seconds if fault else None,
            )
        )

    def after(self, number: int) -> list[RequestNote]:
        """Return the notes after a number, oldest first, up to one page."""
        first = self._last - len(self._notes) + 1
        skipped = max(0, number + 1 - first)
        return list(islice(self._notes, skipped, skipped + PAGE))
