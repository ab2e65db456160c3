"""The month's bytes through the proxy: which matches may use more, and the count on disk."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from longstop.fetching.browser.proxy_budget import (
    WRITE_EVERY_BYTES,
    ProxyMeter,
    Spending,
    may_spend,
    spent,
    step_reached,
)
from longstop.model.match import Priority
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.browsers import BudgetReached
from tests.memory import MemorySink
from tests.readers import ManualClock

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


def test_a_budget_of_zero_is_no_limit() -> None:
    spending = Spending("2026-11", 10**12)

    assert may_spend(spending, 0, Priority.COMPLETED, NOVEMBER)
    assert step_reached(Spending(), spending, 0) is None


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(0, 799, None), (799, 800, 0.8), (800, 801, None), (850, 960, 0.95), (0, 5000, 1.0), (1000, 2000, None)],
)
def test_each_step_is_reported_once(before: int, after: int, expected: float | None) -> None:
    assert step_reached(Spending("2026-11", before), Spending("2026-11", after), 1000) == expected


def meter(path: Path, sink: MemorySink | None = None, budget_bytes: int = 10_000_000) -> ProxyMeter:
    return ProxyMeter(path, budget_bytes=budget_bytes, clock=ManualClock(), bus=Bus([sink] if sink else []))


@pytest.mark.req("CAP-4")
def test_the_count_outlives_the_process(tmp_path: Path) -> None:
    first = meter(tmp_path / "bytes.json")
    first.count(9_600_000)

    again = meter(tmp_path / "bytes.json")

    assert again.used_bytes == 9_600_000
    assert not again.may_spend(Priority.IMMINENT)
    assert again.may_spend(Priority.LIVE)


def test_little_by_little_is_written_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    counted = meter(tmp_path / "bytes.json", budget_bytes=0)
    counted.count(1)
    for _ in range(10):
        counted.count(WRITE_EVERY_BYTES // 20)

    assert meter(tmp_path / "bytes.json").used_bytes == 1
    counted.flush()
    assert meter(tmp_path / "bytes.json").used_bytes == 1 + WRITE_EVERY_BYTES // 2


@pytest.mark.req("CAP-4")
def test_four_fifths_and_each_stop_are_reported_once(tmp_path: Path) -> None:
    sink = MemorySink()
    counted = meter(tmp_path / "bytes.json", sink)

    for _ in range(110):
        counted.count(100_000)

    reported = [event for event in sink.events if isinstance(event, BudgetReached)]
    assert [event.percent for event in reported] == [80, 90, 95, 100]
    assert [len(event.stopped) for event in reported] == [0, 1, 2, 3]
    assert reported[2].stopped == ("completed", "imminent")


@pytest.mark.parametrize("text", ["", "{ broken", '{"month": 3}', "[]"])
def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "bytes.json").write_text(text)

    assert meter(tmp_path / "bytes.json").used_bytes == 0


def test_a_directory_that_is_gone_does_not_end_the_counting(tmp_path: Path) -> None:
    counted = meter(tmp_path / "gone" / "bytes.json")

    counted.count(2 * WRITE_EVERY_BYTES)

    assert counted.used_bytes == 2 * WRITE_EVERY_BYTES
