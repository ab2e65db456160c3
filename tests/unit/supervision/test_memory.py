"""The rule about memory: told once, asked once, killed once; and the container counts, not the machine."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.settings import Settings
from longstop.supervision.memory import MEGABYTE, Act, MemoryLimits, MemoryWatch, effective

LIMITS = MemoryLimits(soft_bytes=1000, hard_bytes=1500)
TELL, END, RENEW, KILL = Act.TELL, Act.TELL_END, Act.RENEW, Act.KILL


def acts(*sizes: int, pid: int = 1) -> list[Act | None]:
    watch, result = MemoryWatch(limits=LIMITS, pid=pid), []
    for size in sizes:
        watch, act = watch.look(pid, size)
        result.append(act)
    return result


@pytest.mark.req("FR-006")
def test_the_limits_are_those_of_the_specification() -> None:
    memory = Settings().scraper.resources.memory

    assert (memory.soft_limit_mb, memory.hard_limit_mb, memory.min_available_mb) == (1536, 2048, 500)


@pytest.mark.req("FR-006", "US2.1")
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((799, 799), [None, None]),
        ((799, 800), [None, TELL]),  # 80 % of soft
        ((800, 799, 800, 701, 999), [TELL, None, None, None, None]),  # once, however it sways
        ((800, 699), [TELL, END]),
        ((800, 699, 800), [TELL, END, TELL]),
        ((800, 1000), [TELL, RENEW]),
        ((10, 1000), [None, RENEW]),  # a leap
        ((1000, 1000, 1499), [RENEW, None, None]),  # asked once
        ((1000, 10), [RENEW, None]),  # and not taken back
        ((1000, 1500), [RENEW, KILL]),
        ((10, 1500), [None, KILL]),
        ((1500, 1500, 10), [KILL, None, None]),  # killed once
    ],
)
def test_each_size_means_one_thing(sizes: tuple[int, ...], expected: list[Act | None]) -> None:
    assert acts(*sizes) == expected


def test_the_next_process_begins_calm_and_whoever_was_told_hears_that_it_is_over() -> None:
    watch, _ = MemoryWatch(limits=LIMITS).look(1, 1000)

    watch, act = watch.look(2, 100)
    _, later = watch.look(2, 1000)

    assert (act, later) == (END, RENEW)


def test_a_next_process_that_is_too_large_at_once_is_acted_on_at_once() -> None:
    watch, _ = MemoryWatch(limits=LIMITS).look(1, 1500)

    _, act = watch.look(2, 1600)

    assert act is KILL


@given(st.lists(st.integers(min_value=0, max_value=2000), max_size=60))
def test_one_process_is_told_asked_and_killed_in_turn_and_never_twice(sizes: list[int]) -> None:
    told = [act for act in acts(*sizes) if act is not None]

    assert told.count(RENEW) <= 1
    assert told.count(KILL) <= 1
    assert KILL not in told or told[-1] is KILL
    assert (KILL in told) == any(size >= 1500 for size in sizes)
    for one, other in pairwise(told):
        assert one is not other


@pytest.mark.parametrize(("size", "act"), [(1600, KILL), (1100, RENEW)])
def test_what_was_decided_and_not_done_is_decided_again_at_the_next_look(size: int, act: Act) -> None:
    watch, first = MemoryWatch(limits=LIMITS).look(1, size)
    _, unchanged = watch.look(1, size)

    _, again = watch.undone(1).look(1, size)

    assert (first, unchanged, again) == (act, None, act)


def test_what_was_not_done_about_a_former_life_says_nothing_about_this_one() -> None:
    watch, _ = MemoryWatch(limits=LIMITS).look(2, 1600)

    assert watch.undone(1) == watch


def test_without_a_container_the_operators_limits_count() -> None:
    assert effective(LIMITS, None) == LIMITS


def test_a_small_container_lowers_both_limits_below_its_own() -> None:
    wanted = MemoryLimits(soft_bytes=1536 * MEGABYTE, hard_bytes=2048 * MEGABYTE)

    limits = effective(wanted, 1000 * MEGABYTE)

    assert limits == MemoryLimits(soft_bytes=700 * MEGABYTE, hard_bytes=850 * MEGABYTE)


def test_a_large_container_changes_nothing() -> None:
    assert effective(LIMITS, 1_000_000) == LIMITS
