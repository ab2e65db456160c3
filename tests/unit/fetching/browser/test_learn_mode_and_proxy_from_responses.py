"""Which mode a source is read in, and which response sizes are suspicious."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import LADDER, Mode
from longstop.fetching.browser.learn_mode_and_proxy_from_responses import (
    BAR_SECONDS,
    KEPT,
    MAX_BAR_SECONDS,
    NEEDED,
    PROMOTE_AFTER,
    ModePolicy,
    ModeState,
    ResponseSizes,
    after_failure,
    after_refusal,
    after_success,
    initial_state,
    without_ids,
)
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.browsers import ModeChanged
from tests.memory import MemorySink


def many(state: ModeState, times: int, now: float = 0.0) -> ModeState:
    for _ in range(times):
        state = after_success(state, now)
    return state


def test_success_makes_it_cheaper_step_by_step() -> None:
    modes = [many(ModeState(), PROMOTE_AFTER * steps).mode for steps in range(5)]

    assert modes == [Mode.NAVIGATE, Mode.PASSIVE, Mode.PAGE, Mode.HTTP, Mode.HTTP]


def test_too_few_successes_change_nothing() -> None:
    assert many(ModeState(), PROMOTE_AFTER - 1).mode is Mode.NAVIGATE


def test_a_refusal_goes_one_step_back_and_bars_the_way_for_a_minute() -> None:
    refused = after_refusal(many(ModeState(), PROMOTE_AFTER * 3), 100.0)

    assert refused.mode is Mode.PAGE
    assert many(refused, 10, 100.0 + BAR_SECONDS - 1).mode is Mode.PAGE
    assert many(refused, PROMOTE_AFTER, 100.0 + BAR_SECONDS).mode is Mode.HTTP


def test_each_further_refusal_bars_twice_as_long_up_to_a_quarter_of_an_hour() -> None:
    state, now, bars = many(ModeState(), PROMOTE_AFTER * 3), 0.0, []

    for _ in range(6):
        state = after_refusal(state, now)
        bars.append(state.bar_seconds[Mode.HTTP])
        now += bars[-1]
        state = many(state, PROMOTE_AFTER, now)

    assert bars == [60, 120, 240, 480, 900, 900]


def test_a_success_in_the_way_itself_forgives_it() -> None:
    state = after_refusal(many(ModeState(), PROMOTE_AFTER * 3), 0.0)
    state = many(state, PROMOTE_AFTER + 1, BAR_SECONDS)

    assert after_refusal(state, BAR_SECONDS).bar_seconds[Mode.HTTP] == BAR_SECONDS


def test_one_failure_is_ignored_and_two_in_a_row_demote() -> None:
    state = many(ModeState(), PROMOTE_AFTER)

    once = after_failure(state, 0.0)

    assert once.mode is Mode.PASSIVE
    assert after_failure(once, 0.0).mode is Mode.NAVIGATE
    assert after_failure(after_success(once, 0.0), 0.0).mode is Mode.PASSIVE


def test_a_refusal_of_a_navigation_stays_there() -> None:
    assert after_refusal(ModeState(), 0.0).mode is Mode.NAVIGATE


def test_ways_that_are_not_allowed_are_left_out() -> None:
    state = initial_state((Mode.HTTP,))

    assert state.allowed == (Mode.NAVIGATE, Mode.HTTP)
    assert many(state, PROMOTE_AFTER).mode is Mode.HTTP


_STEPS = st.lists(
    st.tuples(st.sampled_from([after_success, after_refusal, after_failure]), st.floats(0, 100)), max_size=60
)


@given(modes=st.sets(st.sampled_from(LADDER)), steps=_STEPS)
def test_whatever_happens_the_way_is_allowed_not_barred_when_entered_and_changes_by_one_step(
    modes: set[Mode], steps: list[tuple[object, float]]
) -> None:
    state, now = initial_state(tuple(modes)), 0.0
    for step, seconds in steps:
        now += seconds
        before, state = state, step(state, now)  # type: ignore[operator]

        places = [before.allowed.index(before.mode), state.allowed.index(state.mode)]
        assert abs(places[1] - places[0]) <= 1
        if places[1] > places[0]:
            assert step is after_success
            assert state.barred_until.get(state.mode, 0) <= now
        assert all(0 < bar <= MAX_BAR_SECONDS for bar in state.bar_seconds.values())
        assert state.barred_until.get(Mode.NAVIGATE) is None


@given(modes=st.sets(st.sampled_from(LADDER)), steps=_STEPS)
def test_a_site_that_is_well_again_is_soon_read_in_the_cheapest_way(
    modes: set[Mode], steps: list[tuple[object, float]]
) -> None:
    state, now = initial_state(tuple(modes)), 0.0
    for step, seconds in steps:
        now += seconds
        state = step(state, now)  # type: ignore[operator]

    healed = many(state, PROMOTE_AFTER * len(LADDER), now + MAX_BAR_SECONDS)

    assert healed.mode is state.allowed[-1]


@pytest.mark.parametrize("step", [after_success, after_refusal, after_failure])
def test_a_state_is_never_changed_in_place(step: object) -> None:
    state = many(ModeState(), PROMOTE_AFTER)
    before = (state.mode, state.successes, dict(state.barred_until))

    step(state, 5.0)  # type: ignore[operator]

    assert (state.mode, state.successes, dict(state.barred_until)) == before


EVENT = "https://site.example/api/v1/event/{}"


def usual(size: int = 50_000, answers: int = NEEDED) -> ResponseSizes:
    """Return sizes that know what is usual."""
    sizes = ResponseSizes()
    for number in range(answers):
        assert not sizes.is_odd(EVENT.format(number), size)
    return sizes


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize(("size", "expected"), [(4_999, True), (5_000, False), (500_000, False), (500_001, True)])
def test_ten_times_smaller_or_larger_than_usual_is_odd(size: int, expected: bool) -> None:
    assert usual().is_odd(EVENT.format("99"), size) is expected


def test_with_too_few_answers_nothing_is_odd() -> None:
    assert not usual(answers=NEEDED - 1).is_odd(EVENT.format("99"), 10)


def test_where_small_answers_are_usual_none_is_odd() -> None:
    assert not usual(size=1_999).is_odd(EVENT.format("99"), 10)


def test_another_address_has_its_own_usual() -> None:
    assert not usual().is_odd("https://site.example/api/v1/event/1/incidents", 10)


def test_only_the_first_odd_answer_in_a_row_counts_and_what_lasts_becomes_usual() -> None:
    sizes = usual()

    odd = [sizes.is_odd(EVENT.format("1"), 100) for _ in range(KEPT)]
    back = sizes.is_odd(EVENT.format("1"), 50_000)

    assert odd == [True, *[False] * (KEPT - 1)]
    assert not back


def test_after_a_usual_answer_the_next_odd_one_counts_again() -> None:
    sizes = usual()

    assert [sizes.is_odd(EVENT.format("1"), size) for size in (100, 50_000, 100)] == [True, False, True]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://site.example/api/v1/event/11352/lineups?x=1", "site.example/api/v1/event/*/lineups"),
        ("https://site.example/api/v3/getSV3?key=11HD", "site.example/api/v3/getSV3"),
        ("https://site.example/match/11HD/live", "site.example/match/*/live"),
        ("https://site.example", "site.example"),
    ],
)
def test_ids_are_left_out_of_an_address(url: str, expected: str) -> None:
    assert without_ids(url) == expected


def mode_after_a_suspect_answer(policy: ModePolicy) -> Mode:
    policy.distrust(0.0)
    return policy.mode


def test_a_suspect_answer_makes_the_next_ones_come_in_a_more_expensive_mode() -> None:
    sink = MemorySink()
    policy = ModePolicy("sofascore", LADDER, None, Bus([sink]))
    for _ in range(3 * PROMOTE_AFTER):
        policy.succeeded(FetchRequest(source="sofascore", url="https://api.test/a"), "", 10, 0.0)
    assert policy.mode is Mode.HTTP

    assert mode_after_a_suspect_answer(policy) is Mode.PAGE

    [*_, change] = [event for event in sink.events if isinstance(event, ModeChanged)]
    assert (change.before, change.after, change.reason) == ("http", "page", "suspect")
