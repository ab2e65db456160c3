"""The cost of each match, and the memory for one more."""

import threading

import pytest

from longstop.fetching.browser.browser_policy_and_stats import BrowserStats
from longstop.model.scraper_report import MatchCost, ProcessResources, Usage
from longstop.supervision.memory_for_new_matches import MemoryCheck, idle_watches
from longstop.supervision.resource_use_and_match_costs import ResourceMeter, match_costs

#: Of its own 90 bytes and 3 %; with its browsers 10 %.
USED = ProcessResources(pids=(1,), cpu_percent=10.0, own_pss_bytes=90, own_cpu_percent=3.0)


def browser(*addresses: str, pss: int | None = 400, source: str = "crex") -> BrowserStats:
    return BrowserStats(
        source=source,
        age_seconds=60,
        pages_served=3,
        addresses=addresses,
        contexts=1,
        usage=Usage(processes=4, rss_bytes=pss, pss_bytes=pss),
    )


def test_the_last_figures_stay_while_the_process_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    measurements = threading.Semaphore(0)

    def out_of_descriptors(_pid: int) -> None:
        measurements.release()

    monkeypatch.setattr("longstop.supervision.resource_use_and_match_costs.find_process", out_of_descriptors)
    meter = ResourceMeter(lambda: 0.0)
    meter.newest = USED

    stop = meter.start(0.001)
    has_measured_twice = measurements.acquire(timeout=5) and measurements.acquire(timeout=5)
    stop.set()

    assert has_measured_twice
    assert meter.newest is USED


@pytest.mark.req("US4.1")
def test_a_match_read_by_http_has_its_part_of_the_scraper() -> None:
    costs = match_costs({1: "crex", 2: "crex", 3: "crex"}, [], USED)

    assert costs == {number: MatchCost(pss_bytes=30, cpu_percent=1.0) for number in (1, 2, 3)}


@pytest.mark.req("US4.1")
def test_the_matches_of_a_source_share_its_browser_too() -> None:
    matches = {1: "crex", 2: "crex", 3: "espn"}

    costs = match_costs(matches, [browser("http://site/1", "http://site/2")], USED)

    assert [costs[number].pss_bytes for number in (1, 2, 3)] == [230, 230, 30]
    assert [costs[number].cpu_percent for number in (1, 2, 3)] == [4.5, 4.5, 1.0]


@pytest.mark.parametrize(
    "census",
    [
        [browser()],
        [browser("http://site/1"), browser("http://site/2")],
        [browser("http://site/1", "about:blank", "http://site/2"), browser("http://other/", source="espn")],
    ],
)
def test_the_parts_add_up_to_the_whole(census: list[BrowserStats]) -> None:
    matches = {1: "crex", 2: "crex", 3: "espn"}

    costs = match_costs(matches, census, USED)

    held = sum(cost.pss_bytes or 0 for cost in costs.values())
    assert held == pytest.approx(90 + 400 * len(census), abs=2)
    assert sum(cost.cpu_percent or 0.0 for cost in costs.values()) == pytest.approx(10.0, abs=0.02)


@pytest.mark.req("FLD-10")
def test_what_is_not_known_is_none_and_only_for_those_concerned() -> None:
    matches = {1: "crex", 2: "espn"}

    blind = match_costs(matches, [], ProcessResources(pids=(1,)))
    unmeasured = match_costs(matches, [browser(pss=None)], USED)

    assert set(blind.values()) == {MatchCost()}
    assert (unmeasured[1].pss_bytes, unmeasured[2].pss_bytes) == (None, 45)
    assert match_costs(matches, [], None) == {}


NEEDED = 500 << 20


@pytest.mark.req("EC6")
def test_under_500_megabytes_nothing_new_begins() -> None:
    shortage = MemoryCheck(NEEDED, lambda: NEEDED - 1).shortage()

    assert shortage is not None
    assert str(shortage) == "Insufficient memory resources: 499 MB are free, 500 MB are needed"
    assert shortage.retry_after_seconds == 60


def test_500_megabytes_are_enough() -> None:
    assert MemoryCheck(NEEDED, lambda: NEEDED).shortage() is None


@pytest.mark.req("EC6")
def test_watches_idle_for_half_an_hour_end_first_the_longest_idle_one_before_the_others() -> None:
    active_at = {"younger": 300.0, "oldest": 0.0, "busy": 2000.0, "just short": 300.5}

    assert idle_watches(active_at, now=2100.0) == ["oldest", "younger"]


def test_memory_is_measured_at_every_check() -> None:
    sizes = iter([NEEDED, NEEDED - 1, NEEDED])
    check = MemoryCheck(NEEDED, measure=lambda: next(sizes))

    answers = [check.shortage() is None for _ in range(3)]

    assert answers == [True, False, True]
