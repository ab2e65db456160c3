"""Room for one watch more: asks the machine and the container whenever somebody wants to begin something."""

from collections.abc import Callable
from typing import Protocol

from longstop.process.cgroups import available_bytes
from longstop.supervision.admission import Refusal, admission


class Room(Protocol):
    """Whoever is asked before something new begins."""

    def refusal(self) -> Refusal | None:
        """Return why there is no room now; `None` when there is."""
        ...


class MeasuredRoom:
    """Measures at every question: memory that was free a moment ago says nothing."""

    def __init__(self, needed_bytes: int, measure: Callable[[], int] = available_bytes) -> None:
        self._needed_bytes = needed_bytes
        self._measure = measure

    def refusal(self) -> Refusal | None:
        return admission(self._measure(), self._needed_bytes)
