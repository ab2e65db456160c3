"""When a browser counts as hung, and when it has served long enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from longstop.fetching.browser.browser_generations import SourceBrowserPolicy
from longstop.fetching.browser.browser_policy_and_stats import BrowserStats
from longstop.fetching.browser.recycle_and_hang_policy import (
    LATENCY_SAMPLE,
    HangPolicy,
    Latencies,
    RecyclePolicy,
    reason_to_recycle,
)
from longstop.model.scraper_report import Usage
from longstop.settings import Browser

POLICY = RecyclePolicy(max_pages=10, max_age_seconds=100, max_memory_bytes=1000, max_processes=5, max_drift=3)
USAGE = Usage(processes=5, rss_bytes=3000, pss_bytes=1000)
FRESH = BrowserStats(
    source="crex",
    age_seconds=99,
    pages_served=9,
    addresses=(),
    contexts=0,
    usage=USAGE,
    first_latency=0.2,
    last_latency=0.6,
)


@pytest.mark.parametrize(
    ("wear", "reason"),
    [
        (FRESH, None),
        (structs.replace(FRESH, pages_served=10), "pages"),
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
def test_each_bound_is_a_reason_and_within_all_there_is_none(wear: BrowserStats, reason: str | None) -> None:
    assert reason_to_recycle(POLICY, wear) == reason


def test_latencies_are_means_of_the_first_and_of_the_last_once_there_are_enough() -> None:
    latencies = Latencies()
    seen = []

    for seconds in (1.0, 3.0, 5.0, 7.0, 9.0):
        for _ in range(LATENCY_SAMPLE // 2):
            latencies.add(seconds)
        seen.append((latencies.first, latencies.last))

    assert seen == [(None, None), (2.0, None), (2.0, None), (2.0, 6.0), (2.0, 8.0)]


def seconds_until_hung(policy: HangPolicy) -> float:
    """Return how long after its last response a browser that has stopped counts as hung, at the latest."""
    silent = policy.check_seconds + policy.probe_seconds
    while not policy.is_hung(silent):
        silent += policy.recheck_seconds + policy.probe_seconds
    return silent


@pytest.mark.req("FR-004")
def test_by_default_a_hung_browser_is_given_up_within_thirty_seconds_of_its_last_answer() -> None:
    policy = SourceBrowserPolicy().hanging

    # Two seconds are left for a machine that has other things to do.
    assert seconds_until_hung(policy) <= 28
    assert policy.hung_seconds == Browser().timeouts.hung == 30


@pytest.mark.req("FR-004")
@given(hung=st.floats(10, 300))
def test_whatever_is_set_the_verdict_is_neither_late_nor_hasty(hung: float) -> None:
    policy = HangPolicy(hung_seconds=hung)

    late = seconds_until_hung(policy)

    assert late <= max(hung, policy.check_seconds + policy.probe_seconds)
    assert late > hung - policy.recheck_seconds - policy.probe_seconds


def test_one_answer_that_is_late_is_no_verdict() -> None:
    policy = HangPolicy()

    assert not policy.is_hung(policy.check_seconds + policy.probe_seconds)
