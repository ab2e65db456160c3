"""The text that Prometheus reads: parsed by the official client, and by promtool if installed."""

import shutil
import subprocess
import time

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from longstop.fetching.browser.base import BrowserStats, Usage
from longstop.telemetry.events.matches import PollFailed, PollSucceeded, UpdateStored, WatchRestarted
from longstop.telemetry.events.sources import CircuitClosed, CircuitOpened, RequestRetried
from longstop.telemetry.exposition import browser_metrics, expose
from longstop.telemetry.metrics_sink import Metrics, ScraperState
from tests.readers import MOMENT, a_record

#: As the seeds have them; most of what was added since begins with `longstop_`.
PROMISED = {
    "active_scrapers_count": set(),
    "data_staleness_seconds": {"match_id"},
    "scraper_data_staleness_seconds": set(),
    "scraper_errors": {"match_id", "error_type"},
    "scraper_freshness_seconds": set(),
    "scraper_loop_lag_seconds": {"node"},
    "scraper_memory_bytes": {"node"},
    "scraper_queue_depth": {"priority"},
    "scraper_scrape_duration_seconds": {"domain"},
    "scraper_scrapes": {"domain", "status"},
    "scraper_update_latency_seconds": {"match_id"},
    "scraper_updates": {"match_id"},
    "scraper_breakers_opened": {"scope"},
    "scraper_requests_rejected": {"scope"},
    "scraper_requests_retried": {"source"},
    "scraper_watches_restarted": {"reason"},
    "longstop_events_stored": {"op"},
    "longstop_listing_failed": {"source"},
    "longstop_open_findings": {"kind"},
    "longstop_browser_contexts": {"source"},
    "longstop_browser_page_pss_bytes": {"source"},
    "longstop_browser_pages": {"source"},
    "longstop_browser_processes": {"source"},
    "longstop_browser_pss_bytes": {"source"},
    "longstop_browser_rss_bytes": {"source"},
    "longstop_proxy_bytes_month": set(),
}


def a_text(matches: int = 3, error_type: str = "FetchTimeout") -> bytes:
    metrics = Metrics()
    for number in range(matches):
        ref = f"crex_M{number}"
        metrics.take(UpdateStored(match_id=1, ref=ref, inserted=1, updated=0, voided=0, seq=1, latency_ms=120))
        metrics.take(PollFailed(match_id=1, ref=ref, error_type=error_type, error_message="secret?token=1"))
        metrics.take(PollSucceeded(match_id=1, ref=ref, seconds=0.2))
    metrics.take(CircuitOpened(scope="target", subject="crex.example", reason="secret", seconds=60.0))
    metrics.take(CircuitClosed(scope="target", subject="crex.example", rejected=7))
    metrics.take(WatchRestarted(match_id=1, ref="crex_M0", reason="stale", age_seconds=9.0, epoch=2))
    metrics.take(a_retry())
    records = [a_record(number, polled=number + 1) for number in range(matches)]
    metrics.sample(records, MOMENT)
    watched = ScraperState(
        node="node-1",
        records=records,
        waiting=[0],
        findings=["gap"],
        rss_bytes=64_000_000,
        loop_lag_seconds=0.02,
        browsers=(a_browser(),),
        proxy_bytes=12_000,
    )
    return expose(metrics.read(watched, MOMENT))


def a_browser() -> BrowserStats:
    return BrowserStats(
        source="crex",
        generation=1,
        pid=7,
        age_seconds=60.0,
        users=0,
        pages_served=3,
        addresses=("https://crex.example/secret", "https://crex.example/"),
        contexts=1,
        usage=Usage(processes=5, rss_bytes=900, pss_bytes=400, cpu_seconds=1.0),
    )


def a_retry() -> RequestRetried:
    url = "GET https://crex.example/live?token=secret"
    return RequestRetried(
        source="crex", request=url, attempt=2, error_type="FetchTimeout", error_message="secret", wait_seconds=1.0
    )


def samples(text: bytes) -> dict[tuple[str, str], float]:
    """Return the values by name and labels, as the official client reads them."""
    return {
        (sample.name, ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.req("FR-015")
def test_every_promised_metric_is_there_with_its_labels() -> None:
    families = {family.name: family for family in text_string_to_metric_families(a_text().decode())}

    assert families.keys() == PROMISED.keys()
    for name, labels in PROMISED.items():
        values = {label for sample in families[name].samples for label in sample.labels} - {"le", "quantile"}
        assert values == (labels if families[name].samples else set()), name
        assert families[name].documentation


@pytest.mark.req("FR-015")
def test_values_arrive_as_they_were_counted() -> None:
    values = samples(a_text())

    assert values["active_scrapers_count", ""] == 1
    assert values["scraper_memory_bytes", "node=node-1"] == 64_000_000
    assert values["scraper_errors_total", "error_type=FetchTimeout,match_id=crex_M1"] == 1
    assert values["scraper_updates_total", "match_id=crex_M2"] == 1
    assert values["scraper_update_latency_seconds_bucket", "le=0.5,match_id=crex_M1"] == 1
    assert values["scraper_update_latency_seconds_sum", "match_id=crex_M1"] == 0.12
    assert values["data_staleness_seconds", "match_id=crex_M2"] == 3
    assert values["scraper_freshness_seconds_bucket", "le=2.5"] == 2
    assert values["scraper_freshness_seconds_count", ""] == 3
    assert values["scraper_queue_depth", "priority=live"] == 1
    assert values["scraper_loop_lag_seconds", "node=node-1"] == 0.02
    assert values["scraper_scrapes_total", "domain=crex,status=failure"] == 3
    assert values["scraper_breakers_opened_total", "scope=target"] == 1
    assert values["scraper_breakers_opened_total", "scope=source"] == 0
    assert values["scraper_requests_rejected_total", "scope=target"] == 7
    assert values["scraper_requests_retried_total", "source=crex"] == 1
    assert values["scraper_watches_restarted_total", "reason=stale"] == 1
    assert values["scraper_watches_restarted_total", "reason=lifetime"] == 0
    assert values["longstop_open_findings", "kind=gap"] == 1
    assert values["longstop_open_findings", "kind=mismatch"] == 0
    assert values["longstop_events_stored_total", "op=insert"] == 3
    assert values["longstop_browser_page_pss_bytes", "source=crex"] == 200
    assert values["longstop_proxy_bytes_month", ""] == 12_000


@pytest.mark.req("FR-015")
def test_the_summary_tells_the_quantiles_of_the_latest_ages() -> None:
    values = samples(a_text(matches=100))

    assert values["scraper_data_staleness_seconds", "quantile=0.5"] == 50
    assert values["scraper_data_staleness_seconds", "quantile=0.95"] == 95
    assert values["scraper_data_staleness_seconds", "quantile=0.99"] == 99
    assert values["scraper_data_staleness_seconds_count", ""] == 100
    assert values["scraper_data_staleness_seconds_sum", ""] == 5050


def test_with_nothing_in_play_no_quantile_is_made_up() -> None:
    values = samples(a_text(matches=0))

    assert not [name for name, labels in values if "quantile" in labels]
    assert values["scraper_data_staleness_seconds_count", ""] == 0


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\\b", 'x"} 1\nevil{a="', "é\u202e"])
def test_a_strange_name_stays_inside_its_label(name: str) -> None:
    values = samples(a_text(matches=1, error_type=name))

    assert values["scraper_errors_total", f"error_type={name},match_id=crex_M0"] == 1
    assert not [each for each, _ in values if each == "evil"]


def test_messages_of_errors_are_not_exported() -> None:
    assert b"secret" not in a_text()


def test_the_most_matches_there_can_be_are_written_quickly() -> None:
    began = time.process_time()

    text = a_text(matches=2_000)

    assert text.count(b"\n") > 20_000
    assert time.process_time() - began < 4


@pytest.mark.req("FR-015")
def test_promtool_minds_nothing_but_the_one_name_that_was_asked_for() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here: it comes with the Debian package prometheus")

    checked = subprocess.run(
        [promtool, "check", "metrics"], input=a_text(), capture_output=True, timeout=30, check=False
    )

    assert checked.stderr.decode().splitlines() == [
        'active_scrapers_count non-histogram and non-summary metrics should not have "_count" suffix'
    ]


USAGE = Usage(processes=6, rss_bytes=900, pss_bytes=400, cpu_seconds=1)
BROWSER = BrowserStats(
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


def browser_values(*census: BrowserStats) -> dict[str, float]:
    """Return the values of one source by gauge."""
    families = list(browser_metrics(census))
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_every_browser_of_a_source_is_added_up() -> None:
    assert browser_values(BROWSER, structs.replace(BROWSER, generation=2, contexts=3)) == {
        "longstop_browser_rss_bytes": 1800,
        "longstop_browser_pss_bytes": 800,
        "longstop_browser_page_pss_bytes": 200,
        "longstop_browser_processes": 12,
        "longstop_browser_contexts": 4,
        "longstop_browser_pages": 4,
    }


def test_what_is_not_known_is_left_out() -> None:
    unknown = structs.replace(BROWSER, usage=None)
    half = structs.replace(BROWSER, usage=structs.replace(USAGE, pss_bytes=None))

    assert set(browser_values(BROWSER, unknown)) == {"longstop_browser_contexts", "longstop_browser_pages"}
    assert "longstop_browser_pss_bytes" not in browser_values(half)
    assert browser_values(half)["longstop_browser_rss_bytes"] == 900


def test_a_browser_without_a_page_has_no_share() -> None:
    assert structs.replace(BROWSER, addresses=()).pss_per_page is None


def test_bytes_through_the_proxy_are_shown_where_they_are_counted() -> None:
    used = list(browser_metrics((), proxy_bytes=7))[-1]

    assert [sample.value for sample in used.samples] == [7]
