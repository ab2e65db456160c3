from datetime import timedelta

from longstop_lab.simulator.plan import plan_world
from longstop_lab.simulator.truth import TruthLine
from longstop_lab.simulator.world import World
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


def test_a_line_carries_the_moment_it_was_due_not_the_moment_somebody_looked() -> None:
    world, lines = small_world()

    world.advance(NOON + timedelta(seconds=24))

    assert [line.at for line in lines] == [NOON + timedelta(seconds=10), NOON + timedelta(seconds=20)]


def test_a_frozen_world_stands_still() -> None:
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


def test_the_start_is_told_on_the_wall_clock() -> None:
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
