"""Which matches a world holds, and when each of them starts."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from longstop.errors import UsageError
from longstop_lab.simulator.cricsheet import read_cricsheet
from longstop_lab.simulator.game import Game
from longstop_lab.simulator.keys import MAX_MATCHES
from longstop_lab.simulator.kinds import DEFAULT_KINDS, play, script_for
from longstop_lab.simulator.script import EndInnings, Script, narrate, steady_pace
from longstop_lab.simulator.world import PlannedMatch

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
    """Return the replayed files, which start at once, and the invented matches, their kinds in turn, most in play."""
    if len(files) + matches > MAX_MATCHES:
        raise UsageError(f"the simulator has keys for {MAX_MATCHES} matches; ask for fewer")
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
    """Spread the matches: of ten, one ends soon, one is about to change innings, one has not begun."""
    end = script[-1].at
    if nth % 10 == 9 or (nth == matches - 1 and matches >= 3):
        return dice.uniform(60, 300) if nth % 20 == 19 else dice.uniform(1200, 3000)
    if nth % 10 == 3:
        return dice.uniform(60, 500) - end
    if nth % 10 == 6:
        innings_end = next((step.at for step in script if isinstance(step, EndInnings)), end)
        return dice.uniform(30, 300) - innings_end
    # By steps, not by time: of a Test match, most of the time is nights.
    return -script[int(dice.uniform(0.05, 0.9) * len(script))].at


def _last_players(game: Game) -> frozenset[str]:
    return frozenset(player.key for side in game.sides for player in side.players[-_LATE_PLAYERS:])
