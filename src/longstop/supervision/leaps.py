"""Leaps of the wall clock: nothing of ours is decided by it, but whoever reads our times should know."""

from longstop.clock import Clock, Moment
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ClockJumped

#: What is set right within a second or two is no leap: machines do that all the time.
LEAP_SECONDS = 5.0


def leap_between(before: Moment, now: Moment) -> float:
    """Return by how much the wall clock went further than time did; below zero when it was set back."""
    return (now.wall - before.wall).total_seconds() - (now.monotonic - before.monotonic)


class LeapWatch:
    """Compares the two clocks with each other, whenever it is asked to look."""

    def __init__(self, clock: Clock, bus: Bus) -> None:
        self._clock = clock
        self._bus = bus
        self._seen = Moment.of(clock)

    def look(self) -> None:
        before, self._seen = self._seen, Moment.of(self._clock)
        seconds = leap_between(before, self._seen)
        if abs(seconds) >= LEAP_SECONDS:
            self._bus.emit(ClockJumped(seconds=round(seconds, 1)))
