"""The month's bytes through the proxy: who may still use some."""

from datetime import UTC, datetime

import pytest

from longstop.fetching.browser.byte_budget import Spending, may_spend, spent, step_reached, stopped_at
from longstop.model.match import Priority

NOVEMBER = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize(
    ("used", "allowed"),
    [
        (0, {Priority.LIVE, Priority.IMMINENT, Priority.COMPLETED}),
        (899, {Priority.LIVE, Priority.IMMINENT, Priority.COMPLETED}),
        (900, {Priority.LIVE, Priority.IMMINENT}),
        (950, {Priority.LIVE}),
        (999, {Priority.LIVE}),
        (1000, set()),
    ],
)
def test_matches_that_are_over_stop_first_and_live_ones_last(used: int, allowed: set[Priority]) -> None:
    spending = Spending("2026-11", used)

    assert {each for each in Priority if may_spend(spending, 1000, each, NOVEMBER)} == allowed


def test_a_new_month_begins_at_nothing() -> None:
    spending = Spending("2026-11", 1000)

    assert may_spend(spending, 1000, Priority.COMPLETED, DECEMBER)
    assert spent(spending, 5, DECEMBER) == Spending("2026-12", 5)
    assert spent(spending, 5, NOVEMBER) == Spending("2026-11", 1005)


def test_a_budget_of_nothing_bounds_nobody() -> None:
    spending = Spending("2026-11", 10**12)

    assert may_spend(spending, 0, Priority.COMPLETED, NOVEMBER)
    assert step_reached(Spending(), spending, 0) is None


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(0, 799, None), (799, 800, 0.8), (800, 801, None), (850, 960, 0.95), (0, 5000, 1.0), (1000, 2000, None)],
)
def test_each_step_is_told_once(before: int, after: int, expected: float | None) -> None:
    assert step_reached(Spending("2026-11", before), Spending("2026-11", after), 1000) == expected


def test_each_step_says_who_stops() -> None:
    assert stopped_at(0.8) == ()
    assert stopped_at(0.95) == (Priority.COMPLETED, Priority.IMMINENT)
    assert len(stopped_at(1.0)) == 3
