from collections.abc import Sequence
from datetime import timedelta
from time import process_time

import pytest

from longstop.errors import UsageError
from longstop_lab.simulator.cricket.world import CRICKET_KINDS, World, plan_world
from longstop_lab.simulator.keys import MAX_MATCHES
from longstop_lab.simulator.truth import TruthLine
from tests.unit.lab.simulator.games import NOON, small_world


def world_of(matches: int, seed: int = 5) -> tuple[World, list[TruthLine]]:
    lines: list[TruthLine] = []
    world = World(plan_world(seed=seed, matches=matches), started_at=NOON, speed=10, record=lines.extend)
    world.advance(NOON)
    return world, lines


def test_nothing_is_published_before_its_time() -> None:
    world, lines = small_world()

    world.advance(NOON + timedelta(seconds=9.9))
    before = len(lines)
    world.advance(NOON + timedelta(seconds=10))

    assert (before, len(lines)) == (0, 1)


def test_a_fast_world_publishes_sooner_on_the_wall_clock() -> None:
    world, lines = small_world(speed=20)

    world.advance(NOON + timedelta(seconds=0.5))

    assert [line.at for line in lines] == [NOON + timedelta(seconds=0.5)]


def test_a_line_carries_the_moment_it_was_due_not_the_moment_of_a_request() -> None:
    world, lines = small_world()

    world.advance(NOON + timedelta(seconds=24))

    assert [line.at for line in lines] == [NOON + timedelta(seconds=10), NOON + timedelta(seconds=20)]


def test_a_frozen_world_does_not_advance() -> None:
    world, lines = small_world()
    world.freeze(NOON + timedelta(seconds=24))

    world.advance(NOON + timedelta(seconds=500))

    assert (len(lines), world.seconds) == (2, 24)


def test_a_clock_that_runs_backwards_takes_nothing_back() -> None:
    world, _ = small_world()
    world.advance(NOON + timedelta(seconds=24))

    world.advance(NOON)

    assert world.seconds == 24


def test_the_same_seed_gives_the_same_world() -> None:
    (_, one), (_, two), (_, other) = world_of(5), world_of(5), world_of(5, seed=6)

    assert one == two
    assert one != other


def test_a_world_has_matches_in_play_not_begun_and_near_their_end() -> None:
    world, _ = world_of(20)
    boards = world.boards.values()
    begun = [board for board in boards if board.begun]

    assert 1 <= len(boards) - len(begun) <= 2
    assert not any(board.result for board in boards)

    world.advance(NOON + timedelta(seconds=60))

    assert any(board.result for board in boards)
    assert all(world.start_at(key) > NOON for key, board in world.boards.items() if board not in begun)


def test_the_start_is_published_in_wall_clock_time() -> None:
    world, _ = world_of(3)
    upcoming = next(key for key, board in world.boards.items() if not board.begun)
    wall_seconds = (world.start_at(upcoming) - NOON).total_seconds()

    world.advance(NOON + timedelta(seconds=wall_seconds - 0.1))
    before = world.boards[upcoming].begun
    world.advance(NOON + timedelta(seconds=wall_seconds + 9))

    assert (before, world.boards[upcoming].begun) == (0, 1)


def test_what_happened_before_the_world_began_is_published_when_it_begins() -> None:
    _, lines = world_of(5)

    assert lines
    assert {line.at for line in lines} == {NOON}


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
    with pytest.raises(UsageError, match="request fewer"):
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
