"""The restart policy, without a single process."""

import pytest

from longstop.supervision.backoff import RestartPolicy, time_to_stop
from longstop.supervision.exits import Exit


def waits(policy: RestartPolicy, *lives: float) -> list[float]:
    deaths, result = 0, []
    for lived in lives:
        deaths = policy.deaths_in_a_row(deaths, lived)
        result.append(policy.wait_after(deaths))
    return result


def test_a_child_that_always_dies_young_waits_ever_longer_up_to_a_minute() -> None:
    assert waits(RestartPolicy(), *[0.1] * 10) == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.req("NFR-005")
def test_a_settled_child_is_started_again_at_once() -> None:
    assert waits(RestartPolicy(), 3600, 30, 90) == [0, 0, 0]


def test_one_long_life_forgives_all_early_deaths() -> None:
    assert waits(RestartPolicy(), 1, 1, 1, 30, 1, 1) == [0, 1, 2, 0, 1, 2]


def test_a_life_just_short_of_settled_counts_as_young() -> None:
    assert waits(RestartPolicy(), 29.999, 29.999) == [0, 1]


def test_weeks_of_dying_overflow_nothing() -> None:
    assert RestartPolicy().wait_after(1_000_000) == 60


def test_a_child_whose_settings_are_wrong_waits_for_a_person_from_the_first_time_on() -> None:
    policy = RestartPolicy()

    assert [policy.wait_after(deaths, Exit.SETTINGS) for deaths in (1, 2, 9)] == [60, 60, 60]


def test_a_child_that_finds_the_directory_held_waits_from_the_first_time_on_but_never_long() -> None:
    policy = RestartPolicy()

    assert [policy.wait_after(deaths, Exit.LOCKED) for deaths in (1, 2, 3, 4, 5, 99)] == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("code", [Exit.DONE, Exit.RESTART, Exit.MEMORY, Exit.STORAGE, -9, 3])
def test_every_other_end_waits_by_the_number_of_deaths_alone(code: int) -> None:
    assert [RestartPolicy().wait_after(deaths, code) for deaths in (1, 2, 3)] == [0, 1, 2]


@pytest.mark.req("FR-005")
def test_two_stubborn_children_are_gone_within_thirty_seconds_in_all() -> None:
    first = time_to_stop(30, 1, 30)
    second = time_to_stop(30 - first, 0, 30)

    assert (first, second) == (27, 3)
    assert first + second == 30


def test_a_child_gets_no_time_less_than_none() -> None:
    assert time_to_stop(-1, 1, 30) == 0


def test_a_quick_first_child_leaves_its_time_to_the_next() -> None:
    assert time_to_stop(29, 0, 30) == 29
