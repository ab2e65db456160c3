"""The restart policy, without a single process."""

import pytest

from longstop.supervision.backoff import RestartPolicy


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
