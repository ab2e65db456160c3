"""The fault schedule: the same for the same seed, and every kind occurs."""

from bench.chaos.fault_schedule import KINDS, schedule


def test_the_seed_and_the_length_fix_the_schedule() -> None:
    assert schedule(7, 60) == schedule(7, 60)
    assert schedule(7, 60) != schedule(8, 60)


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    short, long = schedule(7, 30), schedule(7, 60)

    assert long[: len(short)] == short
    assert len(long) > len(short)


def test_acts_stand_in_the_order_of_time_and_within_the_length() -> None:
    times = [action.at for action in schedule(3, 45)]

    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 45


def test_a_minute_holds_every_kind_of_fault_and_kills_of_both_processes() -> None:
    for seed in range(20):
        actions = schedule(seed, 60)

        assert {action.fault.kind for action in actions if action.fault} == set(KINDS)
        assert {action.kill for action in actions if action.kill} == {"scraper", "api"}
