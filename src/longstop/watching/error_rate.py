"""How many errors one match had within the last minute, and of which types. Pure."""

from collections import deque

from msgspec import Struct

MINUTE = 60.0
#: More than these a minute need no exact count.
MAX_COUNTED = 200


class Crowd(Struct, frozen=True, kw_only=True):
    """More errors within a minute than allowed."""

    errors: int
    types: dict[str, int]


class ErrorWindow:
    """A sliding minute; it tells once when the threshold is passed, and again only after it was calm."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._seen: deque[tuple[float, str]] = deque(maxlen=MAX_COUNTED)
        self._is_told = False

    def add(self, now: float, types: dict[str, int]) -> Crowd | None:
        """Count the errors of one look; return what to tell when they have become too many."""
        self._seen.extend((now, name) for name, times in types.items() for _ in range(times))
        while self._seen and now - self._seen[0][0] >= MINUTE:
            self._seen.popleft()
        is_crowded = len(self._seen) > self._threshold
        is_news, self._is_told = is_crowded and not self._is_told, is_crowded
        return Crowd(errors=len(self._seen), types=self._counts()) if is_news else None

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for _, name in self._seen:
            counts[name] = counts.get(name, 0) + 1
        return dict(sorted(counts.items()))
