"""Scripted matches of any sport that advance with the clock at any speed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, Self, TypeVar

from longstop_lab.simulator.truth import Change, TruthLine, to_line

#: What moves by itself (odds, a match's clock) moves this often, in world seconds.
_TICK_SECONDS = 5


class Timed(Protocol):
    """A step of a script."""

    @property
    def at(self) -> float: ...


class Plan(Protocol):
    """A match, and when it starts in this world."""

    @property
    def key(self) -> str: ...
    @property
    def script(self) -> Sequence[Timed]: ...
    @property
    def starts_at(self) -> float: ...


class Shown(Protocol):
    """The public view of one match."""

    def apply(self, step: Any, /) -> list[Change]: ...


PlanT = TypeVar("PlanT", bound=Plan)
BoardT = TypeVar("BoardT", bound=Shown)
Record = Callable[[Iterable[TruthLine]], None]


class Timeline(ABC, Generic[PlanT, BoardT]):
    """All matches of one sport; they change only in `advance`."""

    def __init__(self, plans: Sequence[PlanT], *, started_at: datetime, speed: float, record: Record) -> None:
        self.seconds = 0.0
        self.is_frozen = False
        self.boards = {plan.key: self._board(plan) for plan in plans}
        self._plans = {plan.key: plan for plan in plans}
        self._started_at = started_at
        self._speed = speed
        self._record = record
        # (when, match, number of the step): the next step of every match.
        self._due = [(plan.starts_at + plan.script[0].at, plan.key, 0) for plan in plans]
        heapify(self._due)

    @abstractmethod
    def _board(self, plan: PlanT) -> BoardT:
        """Return the empty board of a match."""

    @property
    def tick(self) -> int:
        return int(self.seconds // _TICK_SECONDS)

    @property
    def now(self) -> datetime:
        """The wall clock's moment up to which everything is published."""
        return self._wall(self.seconds)

    def advance(self, now: datetime) -> None:
        """Publish everything that is due at this moment."""
        if self.is_frozen:
            return
        self.advance_to((now - self._started_at).total_seconds() * self._speed)

    def advance_to(self, seconds: float) -> None:
        """Publish everything that is due at this world second; time never runs back."""
        self.seconds = max(self.seconds, seconds)
        while self._due and self._due[0][0] <= self.seconds:
            self._record(self._publish_next())

    def freeze(self, now: datetime) -> None:
        """Stop time for good; what is published stays as it is."""
        self.advance(now)
        self.is_frozen = True

    def twin(self) -> Self:
        """Return the same world at its start; it writes no truth log."""
        return self._restarted(list(self._plans.values()))

    def empty(self) -> Self:
        """Return a world without matches, for a site that shows none."""
        return self._restarted([])

    def _restarted(self, plans: Sequence[PlanT]) -> Self:
        return type(self)(plans, started_at=self._started_at, speed=self._speed, record=forget)

    def start_at(self, key: str) -> datetime:
        """Return when a match starts on the wall clock."""
        return self._wall(self._plans[key].starts_at)

    def moment(self, key: str, seconds: float) -> datetime:
        """Return the wall-clock time of this many world seconds after a match's start."""
        return self._wall(self._plans[key].starts_at + seconds)

    def elapsed(self, key: str) -> float:
        """Return how many world seconds ago a match started; negative before."""
        return self.seconds - self._plans[key].starts_at

    def _publish_next(self) -> list[TruthLine]:
        """Publish the next step; of a match in play when the world begins, all that lies before that."""
        due, key, nth = heappop(self._due)
        plan = self._plans[key]
        board, script = self.boards[key], plan.script
        changes = board.apply(script[nth])
        nth += 1
        while nth < len(script) and plan.starts_at + script[nth].at <= 0:
            changes += board.apply(script[nth])
            nth += 1
        if nth < len(script):
            heappush(self._due, (plan.starts_at + script[nth].at, key, nth))
        # What happened before the world began is first seen when it begins.
        at = self._wall(max(0.0, due))
        return [to_line(at, key, change) for change in changes]

    def _wall(self, world_seconds: float) -> datetime:
        return self._started_at + timedelta(seconds=world_seconds / self._speed)


def forget(_lines: Iterable[TruthLine]) -> None:
    """Write no truth log."""
