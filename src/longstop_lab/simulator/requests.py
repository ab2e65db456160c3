"""The site's own book of requests: when each came, and what became of it."""

from collections import Counter, deque
from collections.abc import Mapping
from datetime import datetime
from itertools import islice

from msgspec import Struct

from longstop_lab.simulator.faults import Choice
from longstop_lab.simulator.http import Request

#: The newest notes are kept; the counts go on.
KEPT = 100_000
#: Notes in one answer.
PAGE = 10_000


class RequestNote(Struct, frozen=True, kw_only=True, gc=False):
    """One request to the site, as it arrived."""

    #: From 1, without a hole: who follows the book sees whether notes were dropped before he came.
    number: int
    at: datetime
    path: str
    match: str | None
    #: The fault that spoilt the answer; `None` for a good one, be it late.
    fault: str | None
    #: How much later than the request the answer went out.
    delay_seconds: float
    #: For how long the answer asked to be left alone.
    retry_after_seconds: int | None


class RequestBook:
    """Counts all requests by path, and keeps notes of the newest."""

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
        """Return the notes that follow a number, oldest first, as many as one answer holds."""
        first = self._last - len(self._notes) + 1
        skipped = max(0, number + 1 - first)
        return list(islice(self._notes, skipped, skipped + PAGE))
