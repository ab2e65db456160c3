"""Small games and worlds for the simulator's tests."""

from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random

from longstop.sports.cricket.model import Dismissal, Overs, Result, ResultKind, Runs
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Ball, Game, Innings, Out, Over, Player, Side, Target
from longstop_lab.simulator.cricket.script import Script, narrate, steady_pace
from longstop_lab.simulator.cricket.world import PlannedMatch, World
from longstop_lab.simulator.truth import Change, TruthLine, to_line

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)

ROVERS = Side(key="R", name="Rovers", players=tuple(Player(key=f"R{n}", name=f"Rover {n}") for n in range(11)))
HERONS = Side(key="H", name="Herons", players=tuple(Player(key=f"H{n}", name=f"Heron {n}") for n in range(11)))

CAUGHT = Out(kind=Dismissal.CAUGHT, player="R0")


def ball(*, outs: tuple[Out, ...] = (), boundary: int | None = None, bowler: str = "H9", **runs: int) -> Ball:
    """Return a ball bowled to Rover 0."""
    return Ball(batter="R0", non_striker="R1", bowler=bowler, runs=Runs(**runs), boundary=boundary, outs=outs)


def small_game() -> Game:
    """Return a match of two overs against one: with a wide, a four, a wicket and a chase that stops on the way."""
    first = Over(
        number=0,
        balls=(
            ball(batter=1),
            ball(wides=1),
            ball(),
            ball(batter=4, boundary=4),
            ball(legbyes=2),
            ball(outs=(CAUGHT,)),
            ball(batter=6, boundary=6),
        ),
    )
    second = Over(number=1, balls=tuple(ball(batter=1, bowler="H8") for _ in range(6)))
    chase = Over(number=0, balls=(_chasing(batter=4), _chasing(noballs=1, batter=4), _chasing(batter=1)))
    return Game(
        key="11AB",
        number=7,
        match_format="T20",
        sides=(ROVERS, HERONS),
        innings=(
            Innings(batting=ROVERS, bowling=HERONS, overs=(first, second)),
            Innings(batting=HERONS, bowling=ROVERS, overs=(chase,), target=Target(runs=21, overs=Overs(2, 0))),
        ),
        result=Result(outcome=ResultKind.NO_RESULT, text="No result"),
    )


def _chasing(**runs: int) -> Ball:
    return Ball(
        batter="H0", non_striker="H1", bowler="R9", runs=Runs(**runs), boundary=4 if runs["batter"] == 4 else None
    )


def small_script() -> Script:
    """Return the small game's script: a ball every ten seconds."""
    return narrate(small_game(), steady_pace(10), Random(1))


def board_at(script: Script, seconds: float, game: Game | None = None) -> tuple[Board, list[Change]]:
    """Return the board after all that is published until then, with the changes on the way."""
    board = Board(game or small_game())
    changes = [change for step in script if step.at <= seconds for change in board.apply(step)]
    return board, changes


def lines_of(changes: Iterable[Change], match: str = "11AB") -> list[TruthLine]:
    return [to_line(NOON, match, change) for change in changes]


def small_world(speed: float = 1.0) -> tuple[World, list[TruthLine]]:
    """Return a world with the small game, and the list its truth lines go to."""
    lines: list[TruthLine] = []
    plan = PlannedMatch(
        game=small_game(),
        script=small_script(),
        starts_at=0.0,
        late_names=frozenset({"R10"}),
        late_by_seconds=60.0,
    )
    return World([plan], started_at=NOON, speed=speed, record=lines.extend), lines
