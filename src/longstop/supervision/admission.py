"""Whether there is memory for one watch more, and which watches go first when there is none. Pure."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

#: The words that a client reads.
SENTENCE = "Insufficient memory resources"
RETRY_SECONDS = 60.0
#: A watch that nothing has moved for so long is ended when somebody else needs the memory.
IDLE_SECONDS = 1800.0

Key = TypeVar("Key")


class Refusal(Struct, frozen=True, kw_only=True):
    """Why nothing new is begun, and when to ask again."""

    available_bytes: int
    needed_bytes: int
    retry_after_seconds: float = RETRY_SECONDS

    def __str__(self) -> str:
        return f"{SENTENCE}: {self.available_bytes >> 20} MB are free, {self.needed_bytes >> 20} MB are needed"


def admission(available_bytes: int, needed_bytes: int) -> Refusal | None:
    """Return why a new watch is refused; `None` when there is room for it."""
    if available_bytes >= needed_bytes:
        return None
    return Refusal(available_bytes=available_bytes, needed_bytes=needed_bytes)


def idle_ones(active_at: Mapping[Key, float], now: float) -> list[Key]:
    """Return the watches that end first, the longest idle one before the others; moments are monotonic."""
    idle = [key for key, at in active_at.items() if now - at >= IDLE_SECONDS]
    return sorted(idle, key=lambda key: active_at[key])
