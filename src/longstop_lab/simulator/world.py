"""The world of cricket: scripted matches that advance with the clock, and who plays in them."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from longstop_lab.simulator.board import Board
from longstop_lab.simulator.game import Game
from longstop_lab.simulator.script import Script
from longstop_lab.simulator.timeline import Record, Timeline


class PlannedMatch(Struct, frozen=True, kw_only=True):
    """A match, and when it starts in this world."""

    game: Game
    script: Script
    #: World seconds from the world's own start; negative for a match that is in play already.
    starts_at: float
    #: Players whose names the site learns only so many world seconds after the match's start.
    late_names: frozenset[str] = frozenset()
    late_by_seconds: float = 0.0

    @property
    def key(self) -> str:
        return self.game.key


class World(Timeline[PlannedMatch, Board]):
    """All cricket matches of the simulator."""

    def __init__(self, plans: Sequence[PlannedMatch], *, started_at: datetime, speed: float, record: Record) -> None:
        super().__init__(plans, started_at=started_at, speed=speed, record=record)
        self._teams = {side.key: side.name for plan in plans for side in plan.game.sides}
        self._players = {key: (name, plan) for plan in plans for key, name in plan.game.names.items()}

    def _board(self, plan: PlannedMatch) -> Board:
        return Board(plan.game)

    def player_name(self, key: str) -> str | None:
        """Return a player's name, unless the site does not know it yet."""
        name, plan = self._players.get(key, (None, None))
        is_late = plan is not None and key in plan.late_names and self.seconds < plan.starts_at + plan.late_by_seconds
        return None if is_late else name

    def team_name(self, key: str) -> str | None:
        return self._teams.get(key)
