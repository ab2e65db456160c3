from collections.abc import Sequence
from datetime import timedelta
from time import process_time

import pytest

from longstop.errors import UsageError
from longstop_lab.simulator.keys import MAX_MATCHES
from longstop_lab.simulator.kinds import CRICKET_KINDS
from longstop_lab.simulator.plan import plan_world
from longstop_lab.simulator.truth import TruthLine
from longstop_lab.simulator.world import World
from tests.unit.lab.simulator.games import NOON


def build(matches: int, kinds: Sequence[str]) -> World:
    """Return a world as it begins, with all that lies before it published."""
    lines: list[TruthLine] = []
    world = World(plan_world(seed=5, matches=matches, kinds=kinds), started_at=NOON, speed=60, record=lines.extend)
    world.advance(NOON)
    return world


def test_kinds_come_in_turn() -> None:
    plans = plan_world(seed=1, matches=8, kinds=CRICKET_KINDS)

    assert [plan.game.match_format for plan in plans] == ["T20", "T20", "ODI", "TEST"] * 2


def test_without_a_wish_all_are_t20() -> None:
    assert {plan.game.match_format for plan in plan_world(seed=1, matches=5)} == {"T20"}


def test_more_matches_than_keys_are_refused() -> None:
    with pytest.raises(UsageError, match="ask for fewer"):
        plan_world(seed=1, matches=MAX_MATCHES + 1)


def test_most_matches_are_in_play_when_the_world_begins_tests_too() -> None:
    world = build(40, ("test",))
    boards = list(world.boards.values())

    assert sum(bool(board.begun) for board in boards) >= 30
    assert sum(bool(board.begun) and not board.is_break for board in boards) >= 20
    assert sum(len(board.balls_posted) > 1000 for board in boards) >= 10


def test_a_match_that_is_about_to_change_innings_does_so() -> None:
    world = build(8, ("test",))
    board = list(world.boards.values())[6]
    begun = board.begun

    world.advance(NOON + timedelta(minutes=1))

    assert (begun, board.begun) == (1, 2)


@pytest.mark.parametrize(("matches", "kinds", "seconds"), [(200, ("t20",), 5.0), (20, CRICKET_KINDS, 10.0)])
def test_a_world_begins_quickly(matches: int, kinds: tuple[str, ...], seconds: float) -> None:
    """A thousand T20 matches must be there within a few seconds; a busy machine is given five times as long."""
    build(2, kinds)
    before = process_time()

    build(matches, kinds)

    assert process_time() - before < seconds
