"""The text format of Prometheus. Pure: the same reading gives the same text.

Ages need a summary with quantiles, which prometheus_client does not compute, and series of a match end with it: the
families are therefore built for each page.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from longstop.fetching.browser.base import BrowserStats
from longstop.storage.base import FindingKind
from longstop.telemetry.metrics_sink import Distribution, MetricsReading

QUANTILES = (0.5, 0.95, 0.99)


def expose(reading: MetricsReading) -> bytes:
    """Return the page for one reading."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(reading))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, reading: MetricsReading) -> None:
        self._reading = reading

    def collect(self) -> Iterator[Metric]:
        yield from _process_metrics(self._reading)
        yield from _match_metrics(self._reading)
        yield from _age_metrics(self._reading)
        yield from _site_metrics(self._reading)
        yield from _resilience_metrics(self._reading)
        yield from _store_metrics(self._reading)
        yield from browser_metrics(self._reading.browsers, self._reading.proxy_bytes)


def _process_metrics(reading: MetricsReading) -> Iterator[Metric]:
    yield _gauge("active_scrapers_count", "Scrapers running in this process.", (), [((), 1)])
    memory = [((reading.node,), reading.rss_bytes)]
    yield _gauge("scraper_memory_bytes", "Resident memory of the scraper process.", ("node",), memory)
    lag = [] if reading.loop_lag_seconds is None else [((reading.node,), reading.loop_lag_seconds)]
    yield _gauge("scraper_loop_lag_seconds", "Maximum delay of the event loop within ten seconds.", ("node",), lag)
    depth = [((priority,), count) for priority, count in reading.waiting.items()]
    yield _gauge("scraper_queue_depth", "Polls waiting for a slot.", ("priority",), depth)


def _match_metrics(reading: MetricsReading) -> Iterator[Metric]:
    errors = [
        ((match.match_id, error_type), count) for match in reading.matches for error_type, count in match.errors.items()
    ]
    yield _counter("scraper_errors", "Failed polls.", ("match_id", "error_type"), errors)
    updates = [((match.match_id,), match.updates) for match in reading.matches]
    yield _counter("scraper_updates", "Stored updates.", ("match_id",), updates)
    yield _histogram(
        "scraper_update_latency_seconds",
        "Time from the response to the start of the commit.",
        ("match_id",),
        (((match.match_id,), match.latency) for match in reading.matches if match.latency.count),
    )
    staleness = [((match_id,), age) for match_id, age in reading.staleness.items()]
    yield _gauge("data_staleness_seconds", "Age of the data of a match in play.", ("match_id",), staleness)


def _age_metrics(reading: MetricsReading) -> Iterator[Metric]:
    freshness = [((), reading.freshness)]
    yield _histogram("scraper_freshness_seconds", "Ages of matches in play, sampled once a second.", (), freshness)
    summary = SummaryMetricFamily("scraper_data_staleness_seconds", "Ages of matches in play; quantiles are current.")
    for quantile in QUANTILES if reading.ages else ():
        age = reading.ages[ceil(quantile * len(reading.ages)) - 1]
        summary.add_sample(summary.name, {"quantile": str(quantile)}, age)
    summary.add_metric([], reading.freshness.count, reading.freshness.total)
    yield summary


def _site_metrics(reading: MetricsReading) -> Iterator[Metric]:
    yield _counter("scraper_scrapes", "Listings and polls.", ("domain", "status"), reading.scrapes.items())
    yield _histogram(
        "scraper_scrape_duration_seconds",
        "Duration of successful polls, including storing.",
        ("domain",),
        (((domain,), each) for domain, each in reading.durations.items()),
    )
    failed = [((source,), count) for source, count in reading.listings_failed.items()]
    yield _counter("longstop_listing_failed", "Failed listings.", ("source",), failed)


def _resilience_metrics(reading: MetricsReading) -> Iterator[Metric]:
    opened = [((scope,), count) for scope, count in reading.breakers_opened.items()]
    yield _counter("scraper_breakers_opened", "Circuits opened.", ("scope",), opened)
    rejected = [((scope,), count) for scope, count in reading.requests_rejected.items()]
    yield _counter("scraper_requests_rejected", "Requests rejected by circuits that have closed.", ("scope",), rejected)
    retried = [((source,), count) for source, count in reading.requests_retried.items()]
    yield _counter("scraper_requests_retried", "Retried requests.", ("source",), retried)
    restarted = [((reason,), count) for reason, count in reading.watches_restarted.items()]
    yield _counter("scraper_watches_restarted", "Restarts of the polling of a match.", ("reason",), restarted)


def _store_metrics(reading: MetricsReading) -> Iterator[Metric]:
    stored = [((op,), count) for op, count in reading.events_stored.items()]
    yield _counter("longstop_events_stored", "Stored event versions.", ("op",), stored)
    found = [((kind.value,), reading.open_findings.get(kind.value, 0)) for kind in FindingKind]
    yield _gauge("longstop_open_findings", "Open gaps and mismatches of polled matches.", ("kind",), found)


def browser_metrics(census: Iterable[BrowserStats], proxy_bytes: int | None = None) -> Iterator[Metric]:
    """Yield gauges by source, for all generations of its browser together. Unknown values are omitted, never 0."""
    browsers = tuple(census)
    usages = [(each.source, each.usage) for each in browsers]
    rss = _sums((source, usage.rss_bytes if usage else None) for source, usage in usages)
    yield _by_source("longstop_browser_rss_bytes", "RSS of the process tree (counts shared pages repeatedly).", rss)
    pss = _sums((source, usage.pss_bytes if usage else None) for source, usage in usages)
    yield _by_source("longstop_browser_pss_bytes", "PSS of the process tree (counts shared pages once).", pss)
    shares = {each.source: each.pss_per_page for each in browsers}
    yield _by_source("longstop_browser_page_pss_bytes", "PSS for each open page of the newest browser.", shares)
    processes = _sums((source, usage.processes if usage else None) for source, usage in usages)
    yield _by_source("longstop_browser_processes", "Processes of the tree, including the driver.", processes)
    contexts = _sums((each.source, each.contexts) for each in browsers)
    yield _by_source("longstop_browser_contexts", "Open contexts.", contexts)
    yield _by_source("longstop_browser_pages", "Open pages.", _sums((each.source, each.pages) for each in browsers))
    used = [] if proxy_bytes is None else [((), proxy_bytes)]
    yield _gauge("longstop_proxy_bytes_month", "Bytes through the proxy this month.", (), used)


def _sums(values: Iterable[tuple[str, int | None]]) -> dict[str, int | None]:
    """Add up by source; a sum with an unknown part is unknown."""
    sums: dict[str, int | None] = {}
    for source, value in values:
        before = sums.get(source, 0)
        sums[source] = None if before is None or value is None else before + value
    return sums


def _by_source(name: str, about: str, values: Mapping[str, int | None]) -> Metric:
    known = [((source,), value) for source, value in values.items() if value is not None]
    return _gauge(name, about, ("source",), known)


def _counter(name: str, about: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
    family = CounterMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _gauge(name: str, about: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _histogram(
    name: str, about: str, labels: tuple[str, ...], distributions: Iterable[tuple[tuple[str, ...], Distribution]]
) -> Metric:
    family = HistogramMetricFamily(name, about, labels=labels)
    for key, each in distributions:
        family.add_metric(key, each.buckets(), each.total)
    return family
