"""The hosts of one source, their canary, and the rest that the site has asked for."""

import pytest

from longstop.resilience.breaker import BreakerState, target_policy
from longstop.resilience.targets import Pass, Rest, Targets

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
CANARY_SECONDS = 2.5


def _targets(*broken: str, at: float = 0.0) -> Targets:
    targets = Targets(target_policy(), CANARY_SECONDS)
    for host in broken:
        for _ in range(5):
            targets.fail(_enter(targets, host, at), at)
    return targets


def _enter(targets: Targets, host: str, now: float) -> Pass:
    leave = targets.enter(host, now)
    assert leave is not None
    return leave


def test_a_broken_host_is_left_alone_and_its_neighbour_is_not() -> None:
    targets = _targets("a")

    assert targets.enter("a", 1) is None
    assert targets.enter("b", 1) is not None
    assert (targets.open_hosts(1), targets.remaining("a", 1), targets.rejected) == (("a",), 59, 1)


@pytest.mark.req("FR-003")
def test_one_canary_goes_out_at_a_time_and_the_next_one_after_its_interval() -> None:
    targets = _targets("a")

    too_early = targets.enter("a", 2.4)
    canary = _enter(targets, "a", 2.5)
    meanwhile = targets.enter("a", 30)
    targets.fail(canary, 31)
    next_one = _enter(targets, "a", 31)
    targets.fail(next_one, 31.1)
    too_early_again = targets.enter("a", 33.4)

    assert (too_early, meanwhile, too_early_again) == (None, None, None)
    assert canary.permit is None
    assert next_one.permit is None
    assert targets.enter("a", 33.5) is not None


def test_all_hosts_of_a_source_share_one_canary() -> None:
    targets = _targets("a", "b")

    _enter(targets, "a", 3)

    assert targets.enter("b", 3) is None


@pytest.mark.req("FR-003")
def test_a_canary_that_comes_back_lets_all_hosts_be_tried_and_counts_as_the_first_good_answer() -> None:
    targets = _targets("a", "b")

    woken = targets.succeed(_enter(targets, "a", 3), 3.1, 0.1)
    own = [targets.succeed(_enter(targets, "a", 4), 4, 0.1) for _ in range(4)]
    other = [targets.succeed(_enter(targets, "b", 4), 4, 0.1) for _ in range(5)]

    assert [(move.host, move.transition.to) for move in woken] == [("a", HALF_OPEN), ("b", HALF_OPEN)]
    assert [len(moves) for moves in own] == [0, 0, 0, 1]
    assert [len(moves) for moves in other] == [0, 0, 0, 0, 1]
    assert own[-1][0].transition.to is other[-1][0].transition.to is CLOSED


def test_a_canary_can_close_a_host_that_needs_one_good_answer() -> None:
    targets = Targets(target_policy(threshold=1, successes=1), CANARY_SECONDS)
    targets.fail(_enter(targets, "a", 0), 0)

    moves = targets.succeed(_enter(targets, "a", 3), 3, 0.1)

    assert [move.transition.to for move in moves] == [HALF_OPEN, CLOSED]


def test_a_canary_that_fails_or_crawls_changes_nothing() -> None:
    targets = _targets("a")

    failed = targets.fail(_enter(targets, "a", 3), 4)
    crawled = targets.succeed(_enter(targets, "a", 6), 15, 9.0)

    assert (failed, crawled) == ((), ())
    assert targets.remaining("a", 15) == 45


def test_a_canary_that_is_cancelled_makes_room_for_another() -> None:
    targets = _targets("a")

    targets.release(_enter(targets, "a", 3), 4)

    assert _enter(targets, "a", 5.5).permit is None


def test_an_old_canary_that_is_given_back_twice_does_not_make_room_for_a_third() -> None:
    targets = _targets("a")
    old = _enter(targets, "a", 3)
    targets.fail(old, 3)
    _enter(targets, "a", 6)

    targets.release(old, 9)

    assert targets.enter("a", 9) is None


@pytest.mark.req("FR-003")
def test_without_a_canary_a_host_is_tried_after_its_time_and_that_is_told() -> None:
    targets = _targets("a")

    leave = _enter(targets, "a", 60)

    assert leave.permit is not None
    assert [(move.host, move.transition.to) for move in leave.moves] == [("a", HALF_OPEN)]


def test_a_canary_that_comes_back_after_the_hosts_own_time_turns_nobody_away() -> None:
    targets = _targets("a")
    canary = _enter(targets, "a", 59)
    probes = [_enter(targets, "a", 60) for _ in range(5)]

    moves = targets.succeed(canary, 61, 2.0)

    assert moves == ()
    assert targets.rejected == 0
    assert all(targets.succeed(probe, 62, 2.0) == () for probe in probes[:4])
    assert targets.succeed(probes[4], 62, 2.0)[0].transition.to is CLOSED


def test_a_host_that_opens_again_by_a_slow_answer_waits_for_its_canary_too() -> None:
    targets = _targets("a")
    moves = targets.succeed(_enter(targets, "a", 60), 69, 9.0)

    assert [move.transition.to for move in moves] == [OPEN]
    assert targets.enter("a", 71) is None
    assert targets.enter("a", 71.5) is not None


def test_the_longest_rest_that_was_asked_for_counts() -> None:
    rest = Rest()

    before = rest.hold(0)
    rest.ask(30, now=0)
    rest.ask(5, now=10)

    assert before == 0
    assert [rest.hold(now) for now in (10, 29, 30)] == [20, 1, 0]
    assert rest.rejected == 2
