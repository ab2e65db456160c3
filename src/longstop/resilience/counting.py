"""When failures are too many: so many in a row, or too large a share of all. Nothing here grows with the traffic."""

from collections import deque
from typing import Protocol

from msgspec import Struct

#: A share is counted in this many slices of its window, so that a busy site costs no more memory than a quiet one.
SLICES = 20


class Count(Protocol):
    """What a rule remembers of what happened."""

    def succeed(self, now: float) -> None: ...

    def fail(self, now: float) -> str | None:
        """Count a failure; return why that is one too many, or `None`."""
        ...


class Consecutive(Struct, frozen=True, kw_only=True):
    """So many failures with no success between them."""

    threshold: int
    #: How far the first and the last of them may lie apart; `None` for any distance.
    within_seconds: float | None = None

    def count(self) -> Count:
        return _Streak(self)


class Share(Struct, frozen=True, kw_only=True):
    """Too large a share of all attempts within a window that moves along."""

    window_seconds: float
    #: Fewer than these say nothing.
    min_attempts: int
    share: float

    def count(self) -> Count:
        return _Slices(self)


class _Streak:
    def __init__(self, rule: Consecutive) -> None:
        self._rule = rule
        self._failed_at: deque[float] = deque(maxlen=rule.threshold)

    def succeed(self, now: float) -> None:
        self._failed_at.clear()

    def fail(self, now: float) -> str | None:
        self._failed_at.append(now)
        threshold, within = self._rule.threshold, self._rule.within_seconds
        if len(self._failed_at) < threshold or (within is not None and now - self._failed_at[0] > within):
            return None
        return f"{threshold} failures in a row"


class _Slice:
    def __init__(self, number: int) -> None:
        self.number = number
        self.attempts = 0
        self.failures = 0


class _Slices:
    def __init__(self, rule: Share) -> None:
        self._rule = rule
        self._slices: deque[_Slice] = deque(maxlen=SLICES)

    def succeed(self, now: float) -> None:
        self._slice(now).attempts += 1

    def fail(self, now: float) -> str | None:
        newest = self._slice(now)
        newest.attempts += 1
        newest.failures += 1
        counted = [each for each in self._slices if each.number > newest.number - SLICES]
        attempts = sum(each.attempts for each in counted)
        failures = sum(each.failures for each in counted)
        if attempts < self._rule.min_attempts or failures < self._rule.share * attempts:
            return None
        return f"{failures} of {attempts} attempts failed within {self._rule.window_seconds:g} s"

    def _slice(self, now: float) -> _Slice:
        number = int(now * SLICES // self._rule.window_seconds)
        if not self._slices or self._slices[-1].number != number:
            self._slices.append(_Slice(number))
        return self._slices[-1]
