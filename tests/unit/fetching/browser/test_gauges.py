"""Browsers as gauges: added up by source, and never 0 for what nobody knows."""

from msgspec import structs
from prometheus_client.core import Metric

from longstop.fetching.browser.base import BrowserCensus, Usage
from longstop.fetching.browser.gauges import browser_gauges

USAGE = Usage(processes=6, rss_bytes=900, pss_bytes=400, cpu_seconds=1)
CENSUS = BrowserCensus(
    source="crex",
    generation=1,
    pid=5,
    age_seconds=1,
    users=0,
    pages_served=9,
    addresses=("http://a", "http://b"),
    contexts=1,
    usage=USAGE,
)


def values(*census: BrowserCensus) -> dict[str, float]:
    """Return the values of one source by gauge."""
    families: list[Metric] = list(browser_gauges(census))
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_every_browser_of_a_source_is_added_up() -> None:
    assert values(CENSUS, structs.replace(CENSUS, generation=2, contexts=3)) == {
        "longstop_browser_rss_bytes": 1800,
        "longstop_browser_pss_bytes": 800,
        "longstop_browser_page_pss_bytes": 200,
        "longstop_browser_processes": 12,
        "longstop_browser_contexts": 4,
        "longstop_browser_pages": 4,
    }


def test_what_is_not_known_is_left_out() -> None:
    unknown = structs.replace(CENSUS, usage=None)
    half = structs.replace(CENSUS, usage=structs.replace(USAGE, pss_bytes=None))

    assert set(values(CENSUS, unknown)) == {"longstop_browser_contexts", "longstop_browser_pages"}
    assert "longstop_browser_pss_bytes" not in values(half)
    assert values(half)["longstop_browser_rss_bytes"] == 900


def test_a_browser_without_a_page_has_no_share() -> None:
    assert structs.replace(CENSUS, addresses=()).pss_per_page is None


def test_bytes_through_the_proxy_are_shown_where_they_are_counted() -> None:
    used = list(browser_gauges((), proxy_bytes=7))[-1]

    assert [sample.value for sample in used.samples] == [7]
