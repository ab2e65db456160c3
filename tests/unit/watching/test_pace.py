"""How errors slow a match down, and when it may hurry again."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longstop.watching.pace import GOOD_BETWEEN_ACCIDENTS, Pace

CALM = 300.0
BASE = 2.5
#: A look: seconds since the one before, and the errors it met.
Looks = list[tuple[float, int]]

GAPS = st.sampled_from([0.5, 2.0, 2.5, 5.0, 10.0, 20.0, 60.0, 301.0])
LOOKS = st.lists(st.tuples(GAPS, st.sampled_from([0, 0, 0, 1, 1, 3, 12])), max_size=120)


def _paces(looks: Looks, pace: Pace | None = None, now: float = 0.0) -> list[tuple[float, Pace]]:
    """Return the pace after each look, with its moment."""
    seen, pace = [], pace or Pace()
    for gap, errors in looks:
        now += gap
        pace = pace.after(now, errors=errors, calm_after=CALM)
        seen.append((now, pace))
    return seen


def _last(looks: Looks) -> Pace:
    return _paces(looks)[-1][1]


def _obeying(seconds: float, every: int, base: float = BASE) -> list[float]:
    """Return the factors seen by one who keeps to them while every so-many-th look fails."""
    pace, now, factors = Pace(), 0.0, list[float]()
    while now < seconds:
        pace = pace.after(now, errors=int(len(factors) % every == 0), calm_after=CALM)
        factors.append(pace.factor)
        now += base if pace.factor == 1.0 else BASE * pace.factor
    return factors


@pytest.mark.req("FR-022", "US5")
@pytest.mark.parametrize(
    ("errors", "factor"), [(4, 1.0), (5, 2.0), (9, 2.0), (10, 4.0), (19, 4.0), (20, 8.0), (500, 8.0)]
)
def test_five_ten_and_twenty_errors_slow_a_match_however_they_are_spread_over_looks(errors: int, factor: float) -> None:
    one_by_one = _last([(0.1, 1)] * errors)
    two_looks = _last([(BASE, errors // 2), (BASE, errors - errors // 2)])
    at_once = _last([(BASE, errors)])

    assert [pace.factor for pace in (one_by_one, two_looks, at_once)] == [factor] * 3


@pytest.mark.req("FR-022")
def test_four_errors_a_minute_are_nothing_and_five_are_a_bad_spell() -> None:
    assert _last([(15.0, 1)] * 100).factor == 1.0
    assert _last([(14.9, 1)] * 5).factor == 2.0


@pytest.mark.req("FR-022")
def test_a_spell_is_over_after_five_quiet_minutes_and_not_before() -> None:
    spell = [(BASE, 5)]

    assert _last([*spell, (299.9, 0)]).factor == 2.0
    assert _last([*spell, (300.0, 0)]).factor == 1.0


def test_after_a_spell_the_count_begins_anew() -> None:
    over = [(BASE, 25), (CALM, 0)]

    assert _last([*over, (BASE, 4)]).factor == 1.0
    assert _last([*over, (BASE, 5)]).factor == 2.0


def test_in_a_spell_an_accident_neither_slows_further_nor_keeps_it() -> None:
    looks = [(BASE, 5), *[(30.0, 0)] * 9, (30.0, 1)]  # the error comes as the five minutes are over

    *_, (_, at_the_error), (_, after_it) = _paces([*looks, (5.0, 0)])

    assert (at_the_error.errors, at_the_error.factor) == (5, 2.0)
    assert after_it.factor == 1.0


@given(LOOKS)
@example([(BASE, 5), *[(30.0, 0)] * 9, (30.0, 1)])  # after four minutes and a half of good looks
def test_an_error_never_makes_a_match_faster(looks: Looks) -> None:
    factors = [1.0, *(pace.factor for _, pace in _paces(looks))]

    assert all(
        after >= before for (_, errors), before, after in zip(looks, factors, factors[1:], strict=False) if errors
    )


@given(LOOKS)
def test_a_spell_ends_only_after_five_minutes_in_which_errors_were_rare(looks: Looks) -> None:
    seen = _paces(looks)

    for end in range(1, len(seen)):
        ended_at, pace = seen[end]
        if pace.factor == 1.0 and seen[end - 1][1].factor > 1.0:
            within = [at for at in range(end) if ended_at - seen[at][0] < CALM and looks[at][1]]
            assert all(_good_before(looks, at) >= GOOD_BETWEEN_ACCIDENTS for at in within)


def _good_before(looks: Looks, at: int) -> int:
    return next((back for back in range(at) if looks[at - 1 - back][1]), at)


@pytest.mark.req("FR-022")
@given(st.lists(st.tuples(st.floats(0.1, 3600), st.integers(1, 9)), max_size=100))
def test_while_everything_fails_a_match_stays_slow_however_seldom_it_is_looked_at(looks: Looks) -> None:
    paces = _paces([(BASE, 5), *looks])

    factors = [pace.factor for _, pace in paces]
    assert factors == sorted(factors)
    assert factors[0] > 1.0


@given(st.lists(st.sampled_from([0, 0, 0, 1, 20]), max_size=40), st.sampled_from([2.0, 2.5, 5.0, 20.0]))
def test_isolated_errors_never_slow(extra: list[int], step: float) -> None:
    looks = [look for more in extra for look in [(step, 1)] + [(step, 0)] * (GOOD_BETWEEN_ACCIDENTS + more)]

    assert all(pace.factor == 1.0 for _, pace in _paces(looks))


@pytest.mark.parametrize("base", [2.0, 2.5])
@pytest.mark.parametrize("every", range(1, 16))
def test_errors_at_an_even_rate_slow_a_match_once_and_for_all_or_never(every: int, base: float) -> None:
    factors = _obeying(2 * 3600, every, base)

    assert factors == sorted(factors)


@given(LOOKS)
def test_after_five_minutes_of_good_looks_any_match_is_as_fast_as_ever(looks: Looks) -> None:
    _, pace = _paces([*looks, (BASE, 5), *[(10.0, 0)] * 30])[-1]

    assert pace.factor == 1.0


def test_a_pace_remembers_little_however_long_the_trouble() -> None:
    pace = _last([(BASE, 3)] * 10_000)

    assert len(pace.recent) <= 20
