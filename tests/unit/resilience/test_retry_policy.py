"""Whether to ask again, and after how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import (
    CircuitOpen,
    EmptyBody,
    EpochLost,
    FetchError,
    FetchTimeout,
    LayoutChanged,
    MalformedBody,
    PageNotFound,
    SourceChallenged,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.resilience.retry_policy import RetryPolicy, next_delay, policies

POLICIES = policies()
BROKEN = SourceUnreachable("the connection was reset")


def _delays(policy: RetryPolicy, jitter: float = 0.0) -> list[float]:
    """Return all waits of a request that keeps failing at once."""
    waits: list[float] = []
    while (wait := next_delay(policy, len(waits) + 1, sum(waits), BROKEN, jitter)) is not None:
        waits.append(wait)
    return waits


@pytest.mark.req("FR-002", "FR-017")
def test_the_network_policy_tries_again_five_times_with_doubled_waits() -> None:
    assert _delays(POLICIES.network) == [1, 2, 4, 8, 16]


def test_a_live_request_is_sent_three_times_and_a_capture_four() -> None:
    assert _delays(POLICIES.live) == [1, 2]
    assert _delays(POLICIES.capture) == [2, 4, 8]


def test_the_settings_shape_the_policies() -> None:
    made = policies(max_attempts=1, base_seconds=0.5, max_delay_seconds=1)

    assert [_delays(policy) for policy in (made.network, made.live, made.capture)] == [[0.5], [0.5], [1]]


def test_no_delay_is_longer_than_the_longest() -> None:
    assert _delays(policies(max_attempts=7, max_delay_seconds=5).network) == [1, 2, 4, 5, 5, 5, 5]
    assert RetryPolicy(attempts=10_000).delay(9_999) == 16


@pytest.mark.req("FR-002")
@given(tried=st.integers(1, 5), jitter=st.floats(0, 1, exclude_max=True))
def test_jitter_is_on_top_of_the_stated_delay_and_never_below(tried: int, jitter: float) -> None:
    wait = next_delay(POLICIES.network, tried, 0.0, BROKEN, jitter)

    stated = 2.0 ** (tried - 1)
    assert wait is not None
    assert stated <= wait <= 1.25 * stated


@pytest.mark.parametrize(
    ("elapsed", "wait"),
    [(0.0, 1.0), (43.9, 1.0), (44.0, None), (60.0, None)],  # an attempt at the very end could only be cut
)
def test_no_attempt_is_begun_beyond_the_total(elapsed: float, wait: float | None) -> None:
    assert next_delay(POLICIES.live, 1, elapsed, BROKEN, 0.0) == wait


@pytest.mark.req("CAP-8")
@pytest.mark.parametrize(
    ("error", "is_asked_again"),
    [
        (FetchTimeout("x"), True),
        (SourceUnreachable("x"), True),
        (SourceFailed("502"), True),
        (EmptyBody("x"), True),
        (MalformedBody("x"), True),
        (SourceRefused("403"), False),  # asked again by the next poll, not a second later
        (SourceRefused("429", retry_after_seconds=3), False),
        (SourceChallenged("x", retry_after_seconds=3), False),
        (PageNotFound("404"), False),
        (LayoutChanged("x"), False),
        (CircuitOpen("x", retry_after_seconds=3), False),
        (EpochLost("x"), False),
        (ZeroDivisionError(), False),
    ],
)
def test_only_what_may_pass_by_itself_is_asked_again_in_place(error: Exception, is_asked_again: bool) -> None:
    assert (next_delay(POLICIES.live, 1, 0.0, error, 0.0) is not None) is is_asked_again


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        (0.0, 1.0),
        (7.0, 7.0),
        (44.0, 44.0),
        (45.0, None),  # does not fit: no attempt is wasted on the way
        (864_000.0, None),
    ],
)
def test_retry_after_wins_over_the_delay_as_far_as_it_fits(asked: float, wait: float | None) -> None:
    error = SourceFailed("503", retry_after_seconds=asked)

    assert next_delay(POLICIES.live, 1, 0.0, error, 0.0) == wait


@given(asked=st.floats(allow_nan=False), jitter=st.floats(0, 1, exclude_max=True))
def test_whatever_a_site_asks_for_counts_within_bounds(asked: float, jitter: float) -> None:
    wait = next_delay(POLICIES.network, 1, 0.0, FetchError("x", retry_after_seconds=asked), jitter)

    assert wait is not None
    assert 1 <= wait <= 1.25 * 900
