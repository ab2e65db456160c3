"""Where a figure goes: flat, leaking and saw-toothed series, and how honest the interval is."""

from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from bench.soak_trend import Course, Trend, trend

EVERY = 2.0
HOUR = 3600.0


def moments(hours: float) -> list[float]:
    return [nth * EVERY for nth in range(round(hours * HOUR / EVERY))]


def noise(seed: int, alike: float) -> Iterator[float]:
    """Yield noise of size 1 whose neighbours are alike."""
    dice = Random(f"noise {seed}")
    value = dice.gauss(0, 1)
    while True:
        yield value
        value = alike * value + (1 - alike**2) ** 0.5 * dice.gauss(0, 1)


def series(hours: float, *, level: float = 500.0, per_hour: float = 0.0, seed: int = 1, alike: float = 0.0) -> Trend:
    times = moments(hours)
    shakes = islice(noise(seed, alike), len(times))
    return trend(times, [level + per_hour * at / HOUR + 5 * shake for at, shake in zip(times, shakes, strict=True)])


def teeth(hours: float, *, period: float, height: float, per_hour: float = 0.0) -> Trend:
    times = moments(hours)
    return trend(times, [500 + height * (at % period) / period + per_hour * at / HOUR for at in times])


def test_a_figure_that_never_moves_is_flat_beyond_doubt() -> None:
    found = trend(moments(0.1), [12.0] * len(moments(0.1)))

    assert found == Trend(level=12.0, slope=0.0, low=0.0, high=0.0)
    assert found.course is Course.FLAT


def test_a_noisy_figure_that_stays_where_it_is_is_flat() -> None:
    assert series(1).course is Course.FLAT


def test_a_leak_of_a_fifth_in_an_hour_is_seen_and_its_rate_lies_in_the_interval() -> None:
    found = series(1, per_hour=100.0)

    assert found.course is Course.GROWS
    assert found.low < 100 < found.high


def test_a_figure_that_shrinks_is_said_to_fall() -> None:
    assert series(1, per_hour=-100.0).course is Course.FALLS


def test_a_leak_below_the_tenth_is_flat() -> None:
    assert series(2, per_hour=20.0).course is Course.FLAT


def test_a_run_too_short_for_its_noise_leaves_it_open() -> None:
    assert series(0.05, alike=0.9).course is Course.OPEN


@pytest.mark.parametrize("period", [60.0, 170.0, 600.0])
def test_a_saw_tooth_is_no_growth(period: float) -> None:
    found = teeth(1, period=period, height=100.0)

    assert found.low <= 0 <= found.high
    assert found.course in (Course.FLAT, Course.OPEN)


def test_half_a_tooth_does_not_look_like_a_leak_that_is_sure_of_itself() -> None:
    whole, half = teeth(1, period=170.0, height=100.0), teeth(0.1, period=250.0, height=100.0)

    assert half.high - half.low > 5 * (whole.high - whole.low)


def test_a_leak_below_a_saw_tooth_is_seen() -> None:
    assert teeth(1, period=170.0, height=100.0, per_hour=200.0).course is Course.GROWS


def test_spikes_are_no_growth() -> None:
    times = moments(1)

    found = trend(times, [800.0 if 3000 < at < 3020 else 500.0 for at in times])

    assert (found.low, found.high) == (0, 0)


def test_one_more_for_every_ten_minutes_is_growth_even_from_nothing() -> None:
    times = moments(1)

    assert trend(times, [float(at // 600) for at in times]).course is Course.GROWS


def share_that_holds_the_truth(hours: float, alike: float) -> float:
    intervals = [series(hours, seed=seed, alike=alike) for seed in range(200)]
    return sum(each.low <= 0 <= each.high for each in intervals) / len(intervals)


@pytest.mark.parametrize("alike", [0.0, 0.9, 0.98])
def test_the_interval_holds_the_truth_as_often_as_it_says_however_alike_neighbours_are(alike: float) -> None:
    assert share_that_holds_the_truth(0.25, alike) >= 0.91


def test_few_samples_make_a_wide_interval() -> None:
    assert share_that_holds_the_truth(6 * EVERY / HOUR, 0.0) >= 0.92
