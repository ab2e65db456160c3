"""How long to wait for a site."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.resilience.adaptive_timeouts import AdaptiveTimeouts, Timeouts

BASE = Timeouts()
SLOW = Timeouts(page=45, navigation=45, selector=10, fetch=15)


def _after(timeouts: AdaptiveTimeouts, *means: float) -> list[Timeouts]:
    """Return the time-outs after each sample of ten equal answers."""
    seen = []
    for mean in means:
        for _ in range(10):
            timeouts.observe(mean)
        seen.append(timeouts.now)
    return seen


@pytest.mark.req("FR-023")
def test_a_site_slower_than_two_seconds_is_given_half_as_much_again_and_a_slow_selector_ten() -> None:
    assert _after(AdaptiveTimeouts(BASE), 2.1) == [SLOW]


@pytest.mark.req("FR-023")
def test_the_timeouts_of_a_fast_site_shrink_by_a_fifth_for_each_sample_down_to_a_floor() -> None:
    seen = _after(AdaptiveTimeouts(BASE), *[0.4] * 5)

    assert [each.page for each in seen] == pytest.approx([24, 19.2, 15.36, 15, 15])
    assert [each.navigation for each in seen] == [each.page for each in seen]
    assert [each.fetch for each in seen] == pytest.approx([8, 6.4, 5.12, 5, 5])
    assert {each.selector for each in seen} == {5}


@pytest.mark.req("FR-023")
def test_only_ten_requests_together_change_anything() -> None:
    timeouts = AdaptiveTimeouts(BASE)

    changes = [timeouts.observe(3.0) for _ in range(10)]

    assert changes == [None] * 9 + [SLOW]


def test_the_mean_is_of_the_last_ten_alone() -> None:
    timeouts = AdaptiveTimeouts(BASE)

    seen = _after(timeouts, 30.0, 1.0)

    assert seen == [SLOW, BASE]
    assert timeouts.mean == 1.0


def test_one_time_out_among_ten_is_no_slow_site_and_two_are() -> None:
    timeouts = AdaptiveTimeouts(BASE)

    answers = [*[0.6] * 9, 10.0, *[0.6] * 8, 10.0, 10.0]
    changes = [timeouts.observe(seconds) for seconds in answers]

    assert [change for change in changes if change is not None] == [SLOW]
    assert timeouts.mean == pytest.approx(2.48)


def test_unchanged_timeouts_are_not_reported() -> None:
    timeouts = AdaptiveTimeouts(BASE)

    assert [timeouts.observe(1.0) for _ in range(50)] == [None] * 50


def test_from_slow_to_fast_begins_at_the_base() -> None:
    assert _after(AdaptiveTimeouts(BASE), 3.0, 0.1)[-1] == Timeouts(page=24, navigation=24, selector=5, fetch=8)


@pytest.mark.req("FR-023")
def test_a_site_that_swings_around_the_slow_limit_is_slow_until_it_is_clearly_not() -> None:
    assert _after(AdaptiveTimeouts(BASE), 1.99, 2.01, 1.99, 2.01, 1.6, 1.49) == [BASE, SLOW, SLOW, SLOW, SLOW, BASE]


@pytest.mark.req("FR-023")
def test_a_site_that_swings_around_the_fast_limit_is_fast_until_it_is_clearly_not() -> None:
    seen = _after(AdaptiveTimeouts(BASE), 0.51, 0.49, 0.51, 0.49, 0.7, 0.76)

    assert [each.page for each in seen] == pytest.approx([30, 24, 24, 19.2, 19.2, 30])


@given(st.sampled_from([0.5, 2.0]), st.lists(st.floats(-0.24, 0.24), min_size=1, max_size=60))
def test_noise_around_a_limit_never_turns_the_time_outs_back(limit: float, noise: list[float]) -> None:
    pages = [each.page for each in _after(AdaptiveTimeouts(BASE), *(limit + each for each in noise))]

    steps = [after - before for before, after in zip([30.0, *pages], pages, strict=False)]
    assert all(step <= 0 for step in steps) or all(step >= 0 for step in steps)


@given(st.lists(st.floats(0, 120), max_size=300), st.floats(0.1, 120))
def test_whatever_happens_the_time_outs_stay_within_their_bounds(answers: list[float], fetch: float) -> None:
    timeouts = AdaptiveTimeouts(Timeouts(fetch=fetch))

    for seconds in answers:
        timeouts.observe(seconds)

    now = timeouts.now
    assert 15 <= now.page == now.navigation <= 45
    assert now.selector in (5, 10)
    assert fetch / 2 <= now.fetch <= 1.5 * fetch
