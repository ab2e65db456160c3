"""What is counted, with bounds, and the text that Prometheus reads: parsed by the official client and by promtool."""

import shutil
import subprocess
import time

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from longstop.fetching.browser.browser_policy_and_stats import BrowserStats
from longstop.model.match import MatchStatus
from longstop.model.scraper_report import Usage
from longstop.telemetry import metrics as metrics_module
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchClaimed, PollFailed, PollSucceeded, UpdateStored, WatchRestarted
from longstop.telemetry.events.processes import ProcessStopped
from longstop.telemetry.events.sources import CircuitClosed, CircuitOpened, ListingFailed, ListingRead, RequestRetried
from longstop.telemetry.metrics import MAX_ERROR_TYPES, OTHER, Metrics, ScraperState, browser_gauges
from longstop.watching.poll_intervals_and_frozen_pages import RestartReason
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
    "scraper_untrusted_answers": {"source"},
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
    return metrics.page(watched, MOMENT)


def a_browser() -> BrowserStats:
    return BrowserStats(
        source="crex",
        age_seconds=60.0,
        pages_served=3,
        addresses=("https://crex.example/secret", "https://crex.example/"),
        contexts=1,
        usage=Usage(processes=5, rss_bytes=900, pss_bytes=400),
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
def test_the_summary_has_the_quantiles_of_the_latest_ages() -> None:
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


USAGE = Usage(processes=6, rss_bytes=900, pss_bytes=400)
BROWSER = BrowserStats(
    source="crex",
    age_seconds=1,
    pages_served=9,
    addresses=("http://a", "http://b"),
    contexts=1,
    usage=USAGE,
)


def browser_values(*census: BrowserStats) -> dict[str, float]:
    """Return the values of one source by gauge."""
    families = list(browser_gauges(census))
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_every_browser_of_a_source_is_added_up() -> None:
    assert browser_values(BROWSER, structs.replace(BROWSER, contexts=3)) == {
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
    assert read(Metrics(), proxy_bytes=7)["longstop_proxy_bytes_month", ""] == 7


def metrics_after(*events: Telemetry) -> Metrics:
    metrics = Metrics()
    for event in events:
        metrics.take(event)
    return metrics


def read(metrics: Metrics, **watched: object) -> dict[tuple[str, str], float]:
    """Return the values of a page by name and labels."""
    taken = {"node": "node-1", "records": [], "waiting": [], "findings": [], "rss_bytes": 1} | watched
    return samples(metrics.page(ScraperState(**taken), MOMENT))  # type: ignore[arg-type]


def family(values: dict[tuple[str, str], float], name: str) -> dict[str, float]:
    """Return the values of one family by label values."""
    return {
        ",".join(each.partition("=")[2] for each in labels.split(",")): value
        for (found, labels), value in values.items()
        if found == name
    }


def claimed(ref: str) -> MatchClaimed:
    return MatchClaimed(match_id=1, ref=ref, epoch=1)


def stored(ref: str = "crex_M1", latency_ms: int | None = 200) -> UpdateStored:
    return UpdateStored(match_id=1, ref=ref, inserted=3, updated=1, voided=0, seq=4, latency_ms=latency_ms)


def failed(ref: str = "crex_M1", error_type: str = "FetchTimeout") -> PollFailed:
    return PollFailed(match_id=1, ref=ref, error_type=error_type, error_message="too slow")


def test_updates_are_counted_by_match_with_what_they_stored() -> None:
    values = read(metrics_after(stored(), stored(), stored("crex_M2")))

    assert family(values, "scraper_updates_total") == {"crex_M1": 2, "crex_M2": 1}
    assert family(values, "longstop_events_stored_total") == {"insert": 9, "update": 3, "void": 0}


def test_what_was_done_about_trouble_is_counted_and_begins_at_zero() -> None:
    opened = CircuitOpened(scope="match", subject="crex_M1", reason="refused", seconds=300.0)
    restarted = WatchRestarted(match_id=1, ref="crex_M1", reason="cool_down", age_seconds=9.0, epoch=2)

    before = read(Metrics())
    after = read(
        metrics_after(
            opened,
            opened,
            CircuitClosed(scope="target", subject="crex.example", rejected=4),
            CircuitClosed(scope="target", subject="crex.example", rejected=3),
            a_retry(),
            restarted,
        )
    )

    none = {"target": 0, "match": 0, "source": 0}
    assert family(before, "scraper_breakers_opened_total") == none
    assert family(before, "scraper_requests_rejected_total") == none
    assert family(after, "scraper_breakers_opened_total") == none | {"match": 2}
    assert family(after, "scraper_requests_rejected_total") == none | {"target": 7}
    assert family(before, "scraper_requests_retried_total") == {}
    assert family(after, "scraper_requests_retried_total") == {"crex": 1}
    assert family(after, "scraper_watches_restarted_total") == dict.fromkeys(RestartReason, 0) | {"cool_down": 1}


def test_a_latency_counts_below_every_bound_that_it_does_not_exceed() -> None:
    values = read(metrics_after(stored(latency_ms=100), stored(latency_ms=101), stored(latency_ms=9000)))

    buckets = {
        labels.partition(",")[0].removeprefix("le="): value
        for (name, labels), value in values.items()
        if name == "scraper_update_latency_seconds_bucket"
    }
    assert buckets == {"0.1": 1, "0.5": 2, "1": 2, "2": 2, "5": 2, "+Inf": 3}
    assert round(values["scraper_update_latency_seconds_sum", "match_id=crex_M1"], 3) == 9.201


def test_an_update_without_a_new_payload_has_no_latency_rather_than_zero() -> None:
    values = read(metrics_after(stored(latency_ms=None)))

    assert family(values, "scraper_updates_total") == {"crex_M1": 1}
    assert not family(values, "scraper_update_latency_seconds_count")


def test_failures_are_counted_by_type_and_polls_by_site() -> None:
    values = read(
        metrics_after(
            failed(),
            failed(),
            failed(error_type="LayoutChanged"),
            PollSucceeded(match_id=1, ref="crex_M1", seconds=0.3),
            ListingRead(source="crex", matches=1, changed=1, unreadable=0),
            ListingFailed(source="crex", error_type="FetchTimeout", error_message="too slow"),
            ListingFailed(source="other", error_type="FetchTimeout", error_message="too slow"),
        )
    )

    assert family(values, "scraper_errors_total") == {"FetchTimeout,crex_M1": 2, "LayoutChanged,crex_M1": 1}
    assert family(values, "scraper_scrapes_total") == {"crex,failure": 4, "crex,success": 2, "other,failure": 1}
    assert family(values, "longstop_listing_failed_total") == {"crex": 1, "other": 1}
    assert family(values, "scraper_scrape_duration_seconds_count") == {"crex": 1}


def test_what_is_no_matter_of_metrics_is_ignored() -> None:
    assert read(metrics_after(ProcessStopped(process="api", pid=7, reported_by="api"))) == read(Metrics())


def test_only_matches_in_play_have_an_age() -> None:
    records = [
        a_record(1, polled=2.5),
        a_record(2, polled=4, status=MatchStatus.BREAK),
        a_record(3, polled=400, status=MatchStatus.COMPLETED),
        a_record(4, polled=900, status=MatchStatus.UPCOMING),
        a_record(5, polled=None),
        a_record(6, polled=-3),
    ]
    metrics = metrics_after(*(claimed(f"crex_M{number}") for number in range(1, 7)))

    ages = family(read(metrics, records=records), "data_staleness_seconds")

    assert ages == {"crex_M1": 2.5, "crex_M2": 4, "crex_M6": 0}


def test_each_sample_adds_the_age_of_every_match_in_play() -> None:
    metrics = Metrics()

    for _ in range(3):
        metrics.sample([a_record(1, polled=2), a_record(2, polled=20)], MOMENT)

    values = read(metrics)
    buckets = family(values, "scraper_freshness_seconds_bucket")
    assert buckets == {"1": 0, "2.5": 3, "5": 3, "10": 3, "30": 6, "60": 6, "+Inf": 6}
    assert values["scraper_freshness_seconds_sum", ""] == 66
    assert family(values, "scraper_data_staleness_seconds") == {"0.5": 2, "0.95": 20, "0.99": 20}


def test_the_series_of_a_match_end_with_its_polling() -> None:
    metrics = metrics_after(stored("crex_M1"), failed("crex_M2"), stored("crex_M2"))

    metrics.sample([a_record(1)], MOMENT)

    assert {labels for _, labels in read(metrics) if "match_id" in labels and "crex_M1" not in labels} == set()


def test_ten_thousand_matches_make_no_more_series_than_the_bound() -> None:
    metrics = metrics_after(*(failed(f"crex_M{number}") for number in range(10_000)))
    records = [a_record(number, polled=number / 100) for number in range(10_000)]

    values = read(metrics, records=records)

    assert len(family(values, "scraper_updates_total")) == 2_001
    assert values["scraper_errors_total", f"error_type=FetchTimeout,match_id={OTHER}"] == 8_000
    ages = family(values, "data_staleness_seconds")
    assert len(ages) == 2_001
    assert ages[OTHER] == 99.99


def test_a_place_that_became_free_is_given_to_the_next_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "MAX_MATCHES", 2)
    metrics = metrics_after(claimed("crex_M1"), claimed("crex_M2"))

    metrics.sample([a_record(2)], MOMENT)
    metrics.take(stored("crex_M3"))

    assert family(read(metrics), "scraper_updates_total") == {"crex_M2": 0, "crex_M3": 1}


def test_a_match_has_a_bounded_number_of_error_types() -> None:
    errors = family(
        read(metrics_after(*(failed(error_type=f"Strange{number}") for number in range(100)))), "scraper_errors_total"
    )

    assert len(errors) == MAX_ERROR_TYPES + 1
    assert sum(errors.values()) == 100


def test_long_and_malformed_names_are_cut_and_cleaned() -> None:
    values = read(metrics_after(failed(error_type="x" * 5000 + "\ud800"), failed(error_type="\ud800")))

    assert set(family(values, "scraper_errors_total")) == {"x" * 100 + ",crex_M1", "?,crex_M1"}


def test_queued_polls_and_findings_are_counted_by_kind() -> None:
    values = read(Metrics(), waiting=[0, 0, 2, 3], findings=["gap", "gap", "mismatch"])

    assert family(values, "scraper_queue_depth") == {"live": 2, "imminent": 0, "completed": 1, "upcoming": 1}
    assert family(values, "longstop_open_findings") == {"gap": 2, "mismatch": 1, "rebuilt": 0}
