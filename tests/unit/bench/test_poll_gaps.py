"""The longest gap between polls, and when a fault has recovered."""

from datetime import timedelta
from typing import Any

from bench.chaos.poll_gaps import Gaps
from bench.chaos.recovery import are_all_fresh, is_any_fresh
from longstop.clock import to_iso
from tests.builders import NOW


def entry(*, age: float | None = 1.0, status: str = "live", after: float | None = 1.0, sync: str = "in_sync") -> Any:
    polled = None if after is None else to_iso(NOW + timedelta(seconds=after))
    return {
        "match_id": f"crex_{age}",
        "status": status,
        "data_age_seconds": age,
        "last_poll_at": polled,
        "sync": sync,
    }


def test_the_longest_gap_is_the_greatest_age_of_a_match_in_play() -> None:
    gaps = Gaps()

    gaps.take([entry(age=1.5), entry(age=4.0, status="break")])
    gaps.take([entry(age=0.5), entry(age=90.0, status="completed"), entry(age=None)])

    assert (gaps.longest, gaps.match, gaps.samples) == (4.0, "crex_4.0", 2)


def test_no_match_in_play_is_no_gap_and_not_a_gap_of_zero() -> None:
    gaps = Gaps()

    gaps.take([entry(age=90.0, status="upcoming")])

    assert gaps.longest is None


def test_all_are_fresh_when_every_match_in_play_was_polled_since() -> None:
    assert are_all_fresh([entry(), entry(after=-5, status="completed")], NOW)
    assert not are_all_fresh([entry(), entry(after=-1)], NOW)
    assert not are_all_fresh([entry(), entry(after=None)], NOW)
    assert not are_all_fresh([entry(), entry(sync="recovering")], NOW)


def test_where_nothing_is_in_play_nothing_is_fresh() -> None:
    assert not are_all_fresh([entry(status="completed")], NOW)


def test_one_match_polled_since_is_a_sign_of_life() -> None:
    assert is_any_fresh([entry(after=-1), entry()], NOW)
    assert not is_any_fresh([entry(after=-1), entry(sync="recovering")], NOW)
