"""Time as an argument: who needs a moment is handed one, and only the loops ask a clock."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol, Self

from msgspec import Struct


class Clock(Protocol):
    """Where the moments come from."""

    def now(self) -> datetime:
        """Return the wall clock's moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for intervals."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Moment(Struct, frozen=True):
    """One moment on two clocks: intervals go by the one that never jumps, what people read by the other."""

    wall: datetime
    monotonic: float

    @classmethod
    def of(cls, clock: Clock) -> Self:
        return cls(clock.now(), clock.monotonic())

    def on_the_wall(self, monotonic: float) -> datetime:
        """Return what the wall clock shows, or showed, at a monotonic moment."""
        return self.wall + timedelta(seconds=monotonic - self.monotonic)

    def seconds_since(self, wall: datetime, monotonic: float | None) -> float:
        """Return how long ago something was: by the wall only where the other clock's time of it is not known."""
        return (self.wall - wall).total_seconds() if monotonic is None else self.monotonic - monotonic


def to_iso(moment: datetime) -> str:
    """Write a moment the way the API, the logs and the store write it: UTC, milliseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> datetime:
    """Read what `to_iso` wrote."""
    return datetime.fromisoformat(text)
