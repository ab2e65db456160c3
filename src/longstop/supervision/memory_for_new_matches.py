"""Whether there is memory for one more match, and which idle watches to stop if not."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct

from longstop.process.cgroup_limits_and_kill import available_bytes

#: The text that a client reads.
INSUFFICIENT_MEMORY = "Insufficient memory resources"
RETRY_SECONDS = 60.0
#: A watch without any change for this long is stopped when another match needs the memory.
IDLE_SECONDS = 1800.0
Key = TypeVar("Key")


class InsufficientMemory(Struct, frozen=True, kw_only=True):
    """Why no new match is watched, and when to try again."""

    available_bytes: int
    needed_bytes: int
    retry_after_seconds: float = RETRY_SECONDS

    def __str__(self) -> str:
        free, needed = self.available_bytes >> 20, self.needed_bytes >> 20
        return f"{INSUFFICIENT_MEMORY}: {free} MB are free, {needed} MB are needed"


class MemoryCheck:
    """Checks before each new match that machine and container have enough memory for it."""

    def __init__(self, needed_bytes: int, measure: Callable[[], int] = available_bytes) -> None:
        self._needed_bytes = needed_bytes
        self._measure = measure

    def shortage(self) -> InsufficientMemory | None:
        """Return why there is not enough memory now; `None` if there is."""
        available = self._measure()
        if available >= self._needed_bytes:
            return None
        return InsufficientMemory(available_bytes=available, needed_bytes=self._needed_bytes)


def idle_watches(active_at: Mapping[Key, float], now: float) -> list[Key]:
    """Return the watches to stop when memory is short, longest idle first; times are monotonic."""
    idle = [key for key, at in active_at.items() if now - at >= IDLE_SECONDS]
    return sorted(idle, key=lambda key: active_at[key])
