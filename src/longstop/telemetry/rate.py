"""The rate sink: how many failures the last minute saw, for the health page."""

from collections import deque

from longstop.clock import Clock
from longstop.telemetry.events import ListingFailed, PollFailed, TaskFailed, Telemetry

WINDOW_SECONDS = 60.0
#: More than this a minute is a catastrophe already; what lies beyond needs no counting.
MAX_COUNTED = 10_000


class ErrorRate:
    """Counts failures within a sliding minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: deque[float] = deque(maxlen=MAX_COUNTED)

    def take(self, event: Telemetry) -> None:
        if isinstance(event, PollFailed | ListingFailed | TaskFailed):
            self._moments.append(self._clock.monotonic())

    def last_minute(self) -> int:
        """Return the number of failures within the last 60 seconds."""
        since = self._clock.monotonic() - WINDOW_SECONDS
        while self._moments and self._moments[0] < since:
            self._moments.popleft()
        return len(self._moments)
