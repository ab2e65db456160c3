"""A reading in the text format of Prometheus. It is pure: the same reading gives the same text."""

from collections.abc import Iterable, Iterator
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

from longstop.fetching.browser.gauges import browser_gauges
from longstop.storage.base import FindingKind
from longstop.telemetry.metrics import Reading, Spread

QUANTILES = (0.5, 0.95, 0.99)


def expose(reading: Reading) -> bytes:
    """Return the text for one scrape, from a registry of its own."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(reading))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def collect(self) -> Iterator[Metric]:
        yield from _of_the_process(self._reading)
        yield from _of_matches(self._reading)
        yield from _of_freshness(self._reading)
        yield from _of_sites(self._reading)
        yield from _of_the_care(self._reading)
        yield from _of_the_store(self._reading)
        yield from browser_gauges(self._reading.browsers, self._reading.proxy_bytes)


def _of_the_process(reading: Reading) -> Iterator[Metric]:
    yield _gauge("active_scrapers_count", "Scrapers that run in this process.", (), [((), 1)])
    memory = [((reading.node,), reading.rss_bytes)]
    yield _gauge("scraper_memory_bytes", "Resident memory of the scraper process.", ("node",), memory)
    lag = [] if reading.loop_lag_seconds is None else [((reading.node,), reading.loop_lag_seconds)]
    yield _gauge("scraper_loop_lag_seconds", "How late the event loop was at worst within ten seconds.", ("node",), lag)
    depth = [((priority,), count) for priority, count in reading.waiting.items()]
    yield _gauge("scraper_queue_depth", "Looks that wait for a slot.", ("priority",), depth)


def _of_matches(reading: Reading) -> Iterator[Metric]:
    errors = [
        ((match.match_id, error_type), count) for match in reading.matches for error_type, count in match.errors.items()
    ]
    yield _counter("scraper_errors", "Looks that failed.", ("match_id", "error_type"), errors)
    updates = [((match.match_id,), match.updates) for match in reading.matches]
    yield _counter("scraper_updates", "Updates that were stored.", ("match_id",), updates)
    yield _histogram(
        "scraper_update_latency_seconds",
        "From the page's arrival to the start of the commit.",
        ("match_id",),
        (((match.match_id,), match.latency) for match in reading.matches if match.latency.count),
    )
    staleness = [((match_id,), age) for match_id, age in reading.staleness.items()]
    yield _gauge("data_staleness_seconds", "Age of a match in play.", ("match_id",), staleness)


def _of_freshness(reading: Reading) -> Iterator[Metric]:
    freshness = [((), reading.freshness)]
    yield _histogram("scraper_freshness_seconds", "Ages of matches in play, each once a second.", (), freshness)
    summary = SummaryMetricFamily("scraper_data_staleness_seconds", "Ages of matches in play; quantiles are of now.")
    for quantile in QUANTILES if reading.ages else ():
        age = reading.ages[ceil(quantile * len(reading.ages)) - 1]
        summary.add_sample(summary.name, {"quantile": str(quantile)}, age)
    summary.add_metric([], reading.freshness.count, reading.freshness.total)
    yield summary


def _of_sites(reading: Reading) -> Iterator[Metric]:
    yield _counter("scraper_scrapes", "Listings and looks.", ("domain", "status"), reading.scrapes.items())
    yield _histogram(
        "scraper_scrape_duration_seconds",
        "How long good looks took, storing included.",
        ("domain",),
        (((domain,), spread) for domain, spread in reading.durations.items()),
    )
    failed = [((source,), count) for source, count in reading.listings_failed.items()]
    yield _counter("longstop_listing_failed", "Listings that brought nothing.", ("source",), failed)


def _of_the_care(reading: Reading) -> Iterator[Metric]:
    """Yield what was done about trouble."""
    opened = [((scope,), count) for scope, count in reading.breakers_opened.items()]
    yield _counter("scraper_breakers_opened", "Breakers that opened.", ("scope",), opened)
    rejected = [((scope,), count) for scope, count in reading.requests_rejected.items()]
    yield _counter("scraper_requests_rejected", "Turned away by breakers that have closed.", ("scope",), rejected)
    retried = [((source,), count) for source, count in reading.requests_retried.items()]
    yield _counter("scraper_requests_retried", "Requests that were sent again.", ("source",), retried)
    restarted = [((reason,), count) for reason, count in reading.watches_restarted.items()]
    yield _counter("scraper_watches_restarted", "Watches that were begun anew.", ("reason",), restarted)


def _of_the_store(reading: Reading) -> Iterator[Metric]:
    stored = [((op,), count) for op, count in reading.events_stored.items()]
    yield _counter("longstop_events_stored", "Event versions that were stored.", ("op",), stored)
    found = [((kind.value,), reading.open_findings.get(kind.value, 0)) for kind in FindingKind]
    yield _gauge("longstop_open_findings", "Open gaps and mismatches of watched matches.", ("kind",), found)


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
    name: str, about: str, labels: tuple[str, ...], spreads: Iterable[tuple[tuple[str, ...], Spread]]
) -> Metric:
    family = HistogramMetricFamily(name, about, labels=labels)
    for key, spread in spreads:
        family.add_metric(key, spread.not_above(), spread.total)
    return family
