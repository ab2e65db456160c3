"""When a browser has served enough."""

import pytest
from msgspec import structs

from longstop.fetching.browser.base import Usage
from longstop.fetching.browser.recycling import (
    Latencies,
    RecyclePolicy,
    Wear,
    patience_seconds,
    reason_to_recycle,
)

POLICY = RecyclePolicy(max_pages=10, max_age_seconds=100, max_memory_bytes=1000, max_processes=5, max_drift=3)
USAGE = Usage(processes=5, rss_bytes=3000, pss_bytes=1000, cpu_seconds=1)
FRESH = Wear(pages=9, age_seconds=99, usage=USAGE, first_latency=0.2, last_latency=0.6)


@pytest.mark.parametrize(
    ("wear", "reason"),
    [
        (FRESH, None),
        (structs.replace(FRESH, pages=10), "pages"),
        (structs.replace(FRESH, age_seconds=100), "age"),
        (structs.replace(FRESH, usage=structs.replace(USAGE, pss_bytes=1001)), "memory"),
        (structs.replace(FRESH, usage=structs.replace(USAGE, processes=6)), "processes"),
        (structs.replace(FRESH, last_latency=0.61), "latency"),
        (structs.replace(FRESH, first_latency=0.001, last_latency=0.4), None),
        (structs.replace(FRESH, usage=structs.replace(USAGE, pss_bytes=None)), "memory"),
        (structs.replace(FRESH, timeouts=3), "timeouts"),
        (structs.replace(FRESH, timeouts=2), None),
        (structs.replace(FRESH, last_latency=None), None),
        (structs.replace(FRESH, usage=None), None),
        (structs.replace(FRESH, usage=structs.replace(USAGE, rss_bytes=None, pss_bytes=None)), None),
    ],
)
def test_each_bound_is_a_reason_and_within_all_there_is_none(wear: Wear, reason: str | None) -> None:
    assert reason_to_recycle(POLICY, wear) == reason


def test_latencies_are_means_of_the_first_and_of_the_last_once_there_are_enough() -> None:
    latencies = Latencies(sample=2)
    seen = []

    for seconds in (1.0, 3.0, 5.0, 7.0, 9.0):
        latencies.add(seconds)
        seen.append((latencies.first, latencies.last))

    assert seen == [(None, None), (2.0, None), (2.0, None), (2.0, 6.0), (2.0, 8.0)]


def test_a_reason_that_comes_back_is_given_ever_more_time_up_to_two_minutes() -> None:
    assert [patience_seconds("memory", repeats) for repeats in range(5)] == [0, 30, 60, 120, 120]


def test_age_and_pages_are_no_sign_that_the_bounds_are_too_narrow() -> None:
    assert [patience_seconds(reason, 9) for reason in ("age", "pages", "asked")] == [0, 0, 0]
