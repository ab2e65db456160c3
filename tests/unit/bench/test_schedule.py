"""What goes wrong when: the same for the same seed, and everything gets its turn."""

from bench.chaos.schedule import schedule
from longstop_lab.simulator.faults import FaultKind


def test_the_seed_and_the_length_fix_the_schedule() -> None:
    assert schedule(7, 60) == schedule(7, 60)
    assert schedule(7, 60) != schedule(8, 60)


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    short, long = schedule(7, 30), schedule(7, 60)

    assert long[: len(short)] == short
    assert len(long) > len(short)


def test_acts_stand_in_the_order_of_time_and_within_the_length() -> None:
    times = [act.at for act in schedule(3, 45)]

    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 45


def test_a_minute_holds_every_kind_of_fault_and_kills_of_both_processes() -> None:
    for seed in range(20):
        acts = schedule(seed, 60)

        assert {act.fault.kind for act in acts if act.fault} == set(FaultKind)
        assert {act.kill for act in acts if act.kill} == {"scraper", "api"}
