"""The cricket matches of a simulator: their kinds, when each starts, and how they advance with the clock."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from random import Random

from msgspec import Struct

from longstop.errors import UsageError
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.cricsheet import read_cricsheet
from longstop_lab.simulator.cricket.game import Game
from longstop_lab.simulator.cricket.limited_overs import play_odi, play_rainy_t20, play_t20
from longstop_lab.simulator.cricket.mistakes import with_mistakes
from longstop_lab.simulator.cricket.multi_day import play_test
from longstop_lab.simulator.cricket.script import LIVE_PACE, EndInnings, Script, narrate, steady_pace
from longstop_lab.simulator.keys import MAX_MATCHES
from longstop_lab.simulator.timeline import Record, Timeline


class PlannedMatch(Struct, frozen=True, kw_only=True):
    """A match and its start."""

    game: Game
    script: Script
    #: World seconds from the start of the simulator; negative for a match that is already in play.
    starts_at: float
    #: Players whose names the site shows only `late_by_seconds` after the start.
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
        """Return a player's name; `None` while the site does not show it yet."""
        name, plan = self._players.get(key, (None, None))
        is_late = plan is not None and key in plan.late_names and self.seconds < plan.starts_at + plan.late_by_seconds
        return None if is_late else name

    def team_name(self, key: str) -> str | None:
        return self._teams.get(key)


DEFAULT_KINDS = ("t20",)

_PLAYS: dict[str, Callable[[int, int], Game]] = {
    "t20": play_t20,
    "t20-rain": play_rainy_t20,
    "odi": play_odi,
    "test": play_test,
}
CRICKET_KINDS = tuple(_PLAYS)


def play(kind: str, seed: int, index: int) -> Game:
    """Return the complete cricket match number `index` of the seed; the same numbers give the same match."""
    return _PLAYS[kind](seed, index)


def script_for(game: Game, seed: int) -> Script:
    """Return what the site publishes of a match, including its mistakes."""
    dice = Random(f"script {seed} {game.key}")
    return with_mistakes(narrate(game, LIVE_PACE, dice), dice)


_LATE_PLAYERS = 4
_LATE_BY_SECONDS = 600.0


def plan_world(
    *,
    seed: int,
    matches: int,
    kinds: Sequence[str] = DEFAULT_KINDS,
    files: Sequence[Path] = (),
    ball_gap: float = 30.0,
) -> list[PlannedMatch]:
    """Return the replayed files, which start at once, and invented matches of each kind in turn, most in play."""
    if len(files) + matches > MAX_MATCHES:
        raise UsageError(f"the simulator supports at most {MAX_MATCHES} matches: request fewer")
    replayed = [_replay(path, index, ball_gap) for index, path in enumerate(files)]
    invented = [_invent(kinds[nth % len(kinds)], seed, len(files) + nth, nth, matches) for nth in range(matches)]
    return replayed + invented


def _replay(path: Path, index: int, ball_gap: float) -> PlannedMatch:
    game = read_cricsheet(path, index)
    dice = Random(f"replay {game.key}")
    return PlannedMatch(game=game, script=narrate(game, steady_pace(ball_gap), dice), starts_at=0.0)


def _invent(kind: str, seed: int, index: int, nth: int, matches: int) -> PlannedMatch:
    game = play(kind, seed, index)
    script = script_for(game, seed)
    has_late_names = nth % 3 == 0
    return PlannedMatch(
        game=game,
        script=script,
        starts_at=_start(script, nth, matches, Random(f"start {seed} {index}")),
        late_names=_last_players(game) if has_late_names else frozenset(),
        late_by_seconds=_LATE_BY_SECONDS if has_late_names else 0.0,
    )


def _start(script: Script, nth: int, matches: int, dice: Random) -> float:
    """Spread the starts: of ten matches, one ends soon, one is about to change innings, one has not started."""
    end = script[-1].at
    if nth % 10 == 9 or (nth == matches - 1 and matches >= 3):
        return dice.uniform(60, 300) if nth % 20 == 19 else dice.uniform(1200, 3000)
    if nth % 10 == 3:
        return dice.uniform(60, 500) - end
    if nth % 10 == 6:
        innings_end = next((step.at for step in script if isinstance(step, EndInnings)), end)
        return dice.uniform(30, 300) - innings_end
    # By steps, not by time: most of the time of a Test match is nights.
    return -script[int(dice.uniform(0.05, 0.9) * len(script))].at


def _last_players(game: Game) -> frozenset[str]:
    return frozenset(player.key for side in game.sides for player in side.players[-_LATE_PLAYERS:])
