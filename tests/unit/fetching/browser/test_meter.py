"""The meter of the proxy: counted, told, and kept over restarts."""

from pathlib import Path

import pytest

from longstop.fetching.browser.events import BudgetReached
from longstop.fetching.browser.meter import WRITE_EVERY_BYTES, ProxyMeter
from longstop.model.match import Priority
from longstop.telemetry.bus import Bus
from tests.memory import MemorySink
from tests.readers import ManualClock


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
def test_four_fifths_and_each_stop_are_told_once(tmp_path: Path) -> None:
    sink = MemorySink()
    counted = meter(tmp_path / "bytes.json", sink)

    for _ in range(110):
        counted.count(100_000)

    told = [event for event in sink.events if isinstance(event, BudgetReached)]
    assert [event.percent for event in told] == [80, 90, 95, 100]
    assert [len(event.stopped) for event in told] == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["", "{ broken", '{"month": 3}', "[]"])
def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "bytes.json").write_text(text)

    assert meter(tmp_path / "bytes.json").used_bytes == 0


def test_a_directory_that_is_gone_does_not_end_the_counting(tmp_path: Path) -> None:
    counted = meter(tmp_path / "gone" / "bytes.json")

    counted.count(2 * WRITE_EVERY_BYTES)

    assert counted.used_bytes == 2 * WRITE_EVERY_BYTES
