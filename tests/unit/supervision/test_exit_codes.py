"""Exit codes, and delays before a restart."""

import errno

import pytest

from longstop.errors import (
    DataDirectoryInUse,
    LongstopError,
    ResourcesExhausted,
    RestartNeeded,
    SettingsError,
    StorageError,
    StoreTooNew,
    UsageError,
)
from longstop.exhaustion import MachineResource
from longstop.supervision.exit_codes import Exit, describe_exit, exit_of
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervisor import time_to_stop


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), 78),
        (UsageError("x"), 64),
        (DataDirectoryInUse("x"), 75),  # though it is a StorageError too
        (StoreTooNew("x"), 74),
        (StorageError("x"), 74),
        (RestartNeeded("x"), 80),
        (LongstopError("x"), 1),
        (MemoryError(), 82),
        (OSError(errno.ENOMEM, "x"), 82),
        (OSError(errno.EMFILE, "x"), 71),
        (OSError(errno.EAGAIN, "x"), 71),
        (OSError(errno.ENOSPC, "x"), 74),
        (OSError(errno.EPERM, "x"), 1),
        (OSError("without a number"), 1),
        (OSError(errno.EROFS, "x"), 74),
        (RuntimeError("can't start new thread"), 71),
        (RuntimeError("x"), 1),
        (ResourcesExhausted(MachineResource.DESCRIPTORS), 71),  # though it is a StorageError too
        (ResourcesExhausted(MachineResource.MEMORY), 82),
    ],
)
def test_an_error_ends_a_process_with_its_own_number(error: Exception, code: int) -> None:
    assert exit_of(error) == code


@pytest.mark.parametrize("code", Exit)
def test_every_number_has_words_of_its_own(code: Exit) -> None:
    others = {describe_exit(other) for other in Exit if other is not code}

    assert describe_exit(code) not in others


def test_a_signal_is_called_by_its_name() -> None:
    assert describe_exit(-9) == "it was killed by SIGKILL"
    assert describe_exit(-40) == "it was killed by signal 40"


def test_an_unknown_exit_code_is_reported_as_a_number() -> None:
    assert describe_exit(3) == "it ended with exit code 3"


def waits(policy: RestartBackoff, *lives: float) -> list[float]:
    deaths, result = 0, []
    for lived in lives:
        deaths = policy.count_failures(deaths, lived)
        result.append(policy.delay_after(deaths))
    return result


def test_a_child_that_always_dies_young_waits_ever_longer_up_to_a_minute() -> None:
    assert waits(RestartBackoff(), *[0.1] * 10) == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.req("NFR-005")
def test_a_settled_child_is_started_again_at_once() -> None:
    assert waits(RestartBackoff(), 3600, 30, 90) == [0, 0, 0]


def test_one_long_life_forgives_all_early_deaths() -> None:
    assert waits(RestartBackoff(), 1, 1, 1, 30, 1, 1) == [0, 1, 2, 0, 1, 2]


def test_a_life_just_short_of_settled_counts_as_young() -> None:
    assert waits(RestartBackoff(), 29.999, 29.999) == [0, 1]


def test_weeks_of_dying_overflow_nothing() -> None:
    assert RestartBackoff().delay_after(1_000_000) == 60


def test_a_child_with_wrong_settings_waits_for_an_operator_from_the_first_time_on() -> None:
    policy = RestartBackoff()

    assert [policy.delay_after(deaths, Exit.SETTINGS) for deaths in (1, 2, 9)] == [60, 60, 60]


def test_a_child_that_finds_the_directory_locked_waits_from_the_first_time_but_never_long() -> None:
    policy = RestartBackoff()

    assert [policy.delay_after(deaths, Exit.LOCKED) for deaths in (1, 2, 3, 4, 5, 99)] == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("code", [Exit.DONE, Exit.RESTART, Exit.MEMORY, Exit.STORAGE, -9, 3])
def test_every_other_end_waits_by_the_number_of_deaths_alone(code: int) -> None:
    assert [RestartBackoff().delay_after(deaths, code) for deaths in (1, 2, 3)] == [0, 1, 2]


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
