"""Time as an argument: who needs a moment is handed one, and only the loops ask a clock."""

import time
from datetime import UTC, datetime
from typing import Protocol


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


def to_iso(moment: datetime) -> str:
    """Write a moment the way the API, the logs and the store write it: UTC, milliseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> datetime:
    """Read what `to_iso` wrote."""
    return datetime.fromisoformat(text)
