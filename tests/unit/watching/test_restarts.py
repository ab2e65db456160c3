"""When the watch of a match is begun anew."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.watching.cadence import Life, RestartPolicy, RestartReason, restart_reason

POLICY = RestartPolicy()
HOUR = 3600.0


def _reason(now: float, policy: RestartPolicy = POLICY, **changes: Any) -> RestartReason | None:
    fields: dict[str, Any] = {
        "began": 0.0,
        "good_at": now,
        "failures": 0,
        "is_in_play": True,
        "is_quiet": False,
    }
    return restart_reason(Life(**{**fields, **changes}), now, policy)


@pytest.mark.req("FR-001")
@pytest.mark.parametrize(("silent", "reason"), [(300.0, None), (300.1, RestartReason.STALE)])
def test_a_match_in_play_is_stale_after_five_minutes_without_progress(
    silent: float, reason: RestartReason | None
) -> None:
    assert _reason(1000.0, good_at=1000.0 - silent) is reason


def test_a_match_that_is_not_in_play_is_never_stale() -> None:
    assert _reason(5 * HOUR, good_at=0.0, is_in_play=False) is None


def test_a_watch_that_has_just_begun_is_given_its_time() -> None:
    assert _reason(1000.0, began=900.0, good_at=0.0) is None
    assert _reason(1201.0, began=900.0, good_at=0.0) is RestartReason.STALE


@pytest.mark.req("FR-001")
@pytest.mark.parametrize("is_in_play", [True, False])
def test_the_eleventh_error_in_a_row_begins_a_watch_anew(is_in_play: bool) -> None:
    assert _reason(10.0, failures=10, is_in_play=is_in_play) is None
    assert _reason(10.0, failures=11, is_in_play=is_in_play) is RestartReason.ERRORS


@pytest.mark.req("FR-010", "EC7")
@pytest.mark.parametrize(
    ("hours", "is_quiet", "reason"),
    [
        (6.0, True, None),
        (6.01, True, RestartReason.LIFETIME),
        (6.01, False, None),  # it waits for a quiet moment
        (6.6, False, None),
        (6.61, False, RestartReason.LIFETIME),  # but not for ever
    ],
)
def test_a_watch_lives_for_six_hours_and_ends_in_a_quiet_moment(
    hours: float, is_quiet: bool, reason: RestartReason | None
) -> None:
    assert _reason(hours * HOUR, is_quiet=is_quiet) is reason


def test_the_lifetime_counts_from_the_beginning_of_this_watch() -> None:
    assert _reason(10 * HOUR, began=5 * HOUR, is_quiet=True) is None


def test_an_operator_may_choose_other_lengths() -> None:
    policy = RestartPolicy(lifetime_seconds=20.0, stale_seconds=5.0)

    assert _reason(10.0, policy, good_at=4.0) is RestartReason.STALE
    assert _reason(21.0, policy, is_quiet=True) is RestartReason.LIFETIME


def test_what_is_stuck_is_told_as_stuck_and_not_as_old() -> None:
    assert _reason(7 * HOUR, good_at=0.0, failures=11, is_quiet=True) is RestartReason.STALE


@given(st.floats(0, 6 * HOUR), st.floats(0, 300), st.integers(0, 10), st.booleans(), st.booleans())
def test_a_healthy_watch_is_left_alone(
    now: float, silent: float, failures: int, is_in_play: bool, is_quiet: bool
) -> None:
    good_at = max(0.0, now - silent)

    reason = _reason(now, good_at=good_at, failures=failures, is_in_play=is_in_play, is_quiet=is_quiet)

    assert reason is None
