"""Clocks. Pure code takes the time as an argument; only loops read a clock."""

import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Protocol, Self

from msgspec import Struct


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""

    def monotonic(self) -> float:
        """Return monotonic seconds, for intervals."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Moment(Struct, frozen=True):
    """One moment on two clocks: monotonic for intervals, wall-clock for display."""

    wall: datetime
    monotonic: float

    @classmethod
    def of(cls, clock: Clock) -> Self:
        return cls(clock.now(), clock.monotonic())

    def on_the_wall(self, monotonic: float) -> datetime:
        return self.wall + timedelta(seconds=monotonic - self.monotonic)

    def seconds_since(self, wall: datetime, monotonic: float | None) -> float:
        """Return the seconds since then, by the wall clock only when the monotonic time is unknown."""
        return (self.wall - wall).total_seconds() if monotonic is None else self.monotonic - monotonic


@cache
def this_boot() -> str | None:
    """Return the kernel's id of the current boot; `None` if there is none.

    Monotonic times are valid within one boot only, and our files outlive it.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def to_iso(moment: datetime) -> str:
    """Format a time as API, logs and store do: UTC, milliseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else to_iso(moment)


def from_iso(text: str) -> datetime:
    """Parse what `to_iso` returned."""
    return datetime.fromisoformat(text)
