"""The world: scripted matches that advance with the clock, at any speed."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from msgspec import Struct

from longstop.simulator.board import Board
from longstop.simulator.game import Game
from longstop.simulator.script import Script
from longstop.simulator.truth import TruthLine, to_line

#: The odds move this often, in world seconds.
_TICK_SECONDS = 5


class PlannedMatch(Struct, frozen=True, kw_only=True):
    """A match, and when it starts in this world."""

    game: Game
    script: Script
    #: World seconds from the world's own start; negative for a match that is in play already.
    starts_at: float
    #: Players whose names the site learns only so many world seconds after the match's start.
    late_names: frozenset[str] = frozenset()
    late_by_seconds: float = 0.0


class World:
    """All matches of the site. Time comes in by `advance`; between two calls nothing changes."""

    def __init__(
        self,
        plans: Sequence[PlannedMatch],
        *,
        started_at: datetime,
        speed: float,
        record: Callable[[Iterable[TruthLine]], None],
    ) -> None:
        self.seconds = 0.0
        self.is_frozen = False
        self.boards = {plan.game.key: Board(plan.game) for plan in plans}
        self._plans = {plan.game.key: plan for plan in plans}
        self._started_at = started_at
        self._speed = speed
        self._record = record
        self._teams = {side.key: side.name for plan in plans for side in plan.game.sides}
        self._players = {key: (name, plan) for plan in plans for key, name in plan.game.names.items()}
        # (when, match, number of the step): the next step of every match.
        self._due = [(plan.starts_at + plan.script[0].at, plan.game.key, 0) for plan in plans]
        heapify(self._due)

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

    def twin(self) -> "World":
        """Return the same world at its very beginning; nobody records what it publishes."""
        plans = list(self._plans.values())
        return World(plans, started_at=self._started_at, speed=self._speed, record=lambda _lines: None)

    def start_at(self, key: str) -> datetime:
        """Return when a match starts on the wall clock."""
        return self._wall(self._plans[key].starts_at)

    def moment(self, key: str, seconds: float) -> datetime:
        """Return the wall clock's moment for so many world seconds after a match's start."""
        return self._wall(self._plans[key].starts_at + seconds)

    def player_name(self, key: str) -> str | None:
        """Return a player's name, unless the site does not know it yet."""
        name, plan = self._players.get(key, (None, None))
        is_late = plan is not None and key in plan.late_names and self.seconds < plan.starts_at + plan.late_by_seconds
        return None if is_late else name

    def team_name(self, key: str) -> str | None:
        return self._teams.get(key)

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
