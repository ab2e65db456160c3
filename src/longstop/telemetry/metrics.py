"""Metrics: counts events by match and by site, and writes the page that Prometheus reads.

A match has series while it is polled. At most `MAX_MATCHES` matches have their own; the others share the label
`other`, so that no site can flood a metrics store with ids.
"""

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Histogram, Summary, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from longstop.clock import Moment
from longstop.fetching.browser.browser_policy_and_stats import BrowserStats
from longstop.model.data_finding import FindingKind
from longstop.model.match import Priority, priority_of
from longstop.model.polling_status import MonitoringRecord
from longstop.telemetry.events import Telemetry, matches, sources

MAX_MATCHES = 2_000
#: Error types of one match; plug-ins may raise any number of types.
MAX_ERROR_TYPES = 32
MAX_LABEL_CHARACTERS = 100
#: Shared label when there are too many; match ids contain an underscore, so none is equal to it.
OTHER = "other"

#: Labels that are exported from the start with 0, so that the first occurrence shows as an increase.
SCOPES = ("target", "match", "source")
RESTART_REASONS = ("stale", "errors", "lifetime", "cool_down", "asked", "recycled")
OPERATIONS = ("insert", "update", "void")

FRESHNESS_BOUNDS = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LATENCY_BOUNDS = (0.1, 0.5, 1.0, 2.0, 5.0)
DURATION_BOUNDS = (0.1, 0.25, 0.5, 1.0, 3.0, 10.0)
QUANTILES = (0.5, 0.95, 0.99)


class ScraperState(Struct, frozen=True, kw_only=True):
    """What only the schedulers and the process know, at one moment."""

    node: str
    records: Sequence[MonitoringRecord]
    #: Priorities of queued polls.
    waiting: Sequence[int]
    #: Kinds of all open findings.
    findings: Sequence[str]
    rss_bytes: int
    #: Maximum of the last ten seconds.
    loop_lag_seconds: float | None = None
    browsers: tuple[BrowserStats, ...] = ()
    #: Bytes through the proxy this month; `None` without a proxy.
    proxy_bytes: int | None = None


class Metrics:
    """Counts events. Call `sample` once a second, and `page` to export."""

    def __init__(self) -> None:
        #: The matches that have series, each with the types of its errors.
        self._matches: dict[str, set[str]] = {}
        #: Ages of matches in play at the latest sample, sorted.
        self._ages: tuple[float, ...] = ()
        self._registry = CollectorRegistry()
        self._errors = self._counter("scraper_errors", "Failed polls.", "match_id", "error_type")
        self._updates = self._counter("scraper_updates", "Stored updates.", "match_id")
        self._latency = self._histogram(
            "scraper_update_latency_seconds",
            "Time from the response to the start of the commit.",
            LATENCY_BOUNDS,
            "match_id",
        )
        self._scrapes = self._counter("scraper_scrapes", "Listings and polls.", "domain", "status")
        self._durations = self._histogram(
            "scraper_scrape_duration_seconds",
            "Duration of successful polls, including storing.",
            DURATION_BOUNDS,
            "domain",
        )
        self._listings_failed = self._counter("longstop_listing_failed", "Failed listings.", "source")
        self._opened = self._counter("scraper_breakers_opened", "Circuits opened.", "scope")
        self._rejected = self._counter(
            "scraper_requests_rejected", "Requests rejected by circuits that have closed.", "scope"
        )
        self._retried = self._counter("scraper_requests_retried", "Retried requests.", "source")
        self._untrusted = self._counter("scraper_untrusted_answers", "Polls that were not believed.", "source")
        self._restarted = self._counter("scraper_watches_restarted", "Restarts of the polling of a match.", "reason")
        self._stored = self._counter("longstop_events_stored", "Stored event versions.", "op")
        self._freshness = self._histogram(
            "scraper_freshness_seconds", "Ages of matches in play, sampled once a second.", FRESHNESS_BOUNDS
        )
        # prometheus_client computes no quantiles: `page` adds those of the latest sample.
        self._staleness = Summary(
            "scraper_data_staleness_seconds", "Ages of matches in play; quantiles are current.", registry=None
        )
        for counter, labels in (
            (self._opened, SCOPES),
            (self._rejected, SCOPES),
            (self._restarted, RESTART_REASONS),
            (self._stored, OPERATIONS),
        ):
            for label in labels:
                counter.labels(label)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, registry=self._registry)

    def _histogram(self, name: str, about: str, bounds: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, about, labels, buckets=bounds, registry=self._registry)

    def take(self, event: Telemetry) -> None:
        match event:
            case matches.MatchClaimed():
                self._match(event.ref)
            case matches.UpdateStored():
                self._count_update(event)
            case matches.PollSucceeded():
                self._scrapes.labels(_domain(event.ref), "success").inc()
                self._durations.labels(_domain(event.ref)).observe(event.seconds)
            case matches.PollFailed():
                self._count_failure(event)
            case sources.ListingRead():
                self._scrapes.labels(_label(event.source), "success").inc()
            case sources.ListingFailed():
                self._scrapes.labels(_label(event.source), "failure").inc()
                self._listings_failed.labels(_label(event.source)).inc()
            case sources.CircuitOpened():
                self._opened.labels(_label(event.scope)).inc()
            case sources.CircuitClosed():
                self._rejected.labels(_label(event.scope)).inc(event.rejected)
            case sources.RequestRetried():
                self._retried.labels(_label(event.source)).inc()
            case matches.WatchRestarted():
                self._restarted.labels(_label(event.reason)).inc()

    def sample(self, records: Sequence[MonitoringRecord], now: Moment) -> None:
        """Record the age of each match in play, and drop the series of matches that are no longer polled."""
        self._ages = tuple(sorted(age for _, age in _in_play(records, now)))
        for age in self._ages:
            self._freshness.observe(age)
            self._staleness.observe(age)
        for name in self._matches.keys() - {_label(str(record.ref)) for record in records} - {OTHER}:
            self._updates.remove(name)
            self._latency.remove(name)
            for error_type in self._matches.pop(name):
                self._errors.remove(name, error_type)

    def page(self, state: ScraperState, now: Moment) -> bytes:
        """Return all metrics in the text format of Prometheus. May run in a thread while events are counted."""
        [summary], ages = self._staleness.collect(), self._ages
        for quantile in QUANTILES if ages else ():
            summary.add_sample(summary.name, {"quantile": str(quantile)}, ages[ceil(quantile * len(ages)) - 1])
        counted = map(_as_named, (*self._registry.collect(), summary))
        by_match = _ages_by_match(state.records, now, self._matches)
        return generate_latest(_Families([*counted, *_gauges(state, by_match), *browser_gauges(state.browsers)]))

    def _match(self, ref: str) -> str:
        """Return the label of a match, which has series from now on."""
        name = _label(ref)
        if name not in self._matches and len(self._matches) >= MAX_MATCHES:
            name = OTHER
        if name not in self._matches:
            self._matches[name] = set()
            self._updates.labels(name)
        return name

    def _count_update(self, event: matches.UpdateStored) -> None:
        name = self._match(event.ref)
        self._updates.labels(name).inc()
        if event.latency_ms is not None:
            self._latency.labels(name).observe(event.latency_ms / 1000)
        for operation, count in zip(OPERATIONS, (event.inserted, event.updated, event.voided), strict=True):
            self._stored.labels(operation).inc(count)

    def _count_failure(self, event: matches.PollFailed) -> None:
        self._scrapes.labels(_domain(event.ref), "failure").inc()
        if event.kind == "untrusted":
            self._untrusted.labels(_domain(event.ref)).inc()
        name, error_type = self._match(event.ref), _label(event.error_type)
        known = self._matches[name]
        if error_type not in known and len(known) >= MAX_ERROR_TYPES:
            error_type = OTHER
        known.add(error_type)
        self._errors.labels(name, error_type).inc()


class _Families(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def _as_named(family: Metric) -> Metric:
    """Return a family as it is documented: without the times of creation, and with bounds such as `1`, not `1.0`."""
    family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
    for sample in family.samples:
        if "le" in sample.labels:
            sample.labels["le"] = sample.labels["le"].removesuffix(".0")
    return family


def _label(text: str) -> str:
    """Return a valid label of bounded length; the exposition escapes it."""
    if text.isascii() and len(text) <= MAX_LABEL_CHARACTERS:
        return text
    return text[:MAX_LABEL_CHARACTERS].encode(errors="replace").decode()


def _domain(ref: str) -> str:
    return _label(ref.partition("_")[0])


def _in_play(records: Sequence[MonitoringRecord], now: Moment) -> list[tuple[str, float]]:
    return [
        (_label(str(record.ref)), age)
        for record in records
        if priority_of(record.status, record.start_at, now.wall) is Priority.LIVE
        and (age := record.age_at(now)) is not None
    ]


def _ages_by_match(records: Sequence[MonitoringRecord], now: Moment, known: Collection[str]) -> dict[str, float]:
    """Return the ages by match; matches without their own series share the highest age."""
    ages: dict[str, float] = {}
    for name, age in _in_play(records, now):
        shown = name if name in known else OTHER
        ages[shown] = max(age, ages.get(shown, 0.0))
    return ages


def _gauges(state: ScraperState, ages: Mapping[str, float]) -> Iterator[Metric]:
    yield GaugeMetricFamily("active_scrapers_count", "Scrapers running in this process.", value=1)
    node, about = _label(state.node), "Maximum delay of the event loop within ten seconds."
    yield _gauge("scraper_loop_lag_seconds", about, "node", {node: state.loop_lag_seconds})
    yield _gauge("scraper_memory_bytes", "Resident memory of the scraper process.", "node", {node: state.rss_bytes})
    yield _gauge("scraper_queue_depth", "Polls waiting for a slot.", "priority", _by_priority(state.waiting))
    yield _gauge("data_staleness_seconds", "Age of the data of a match in play.", "match_id", ages)
    found = Tally(state.findings)
    open_findings = {kind.value: found[kind.value] for kind in FindingKind}
    yield _gauge("longstop_open_findings", "Open gaps and mismatches of polled matches.", "kind", open_findings)
    used, about = state.proxy_bytes, "Bytes through the proxy this month."
    yield GaugeMetricFamily("longstop_proxy_bytes_month", about, value=used)


def _by_priority(waiting: Sequence[int]) -> dict[str, int]:
    names = [*(priority.name.lower() for priority in Priority), "upcoming"]
    counts = Tally(names[min(priority, len(Priority))] for priority in waiting)
    return {name: counts[name] for name in names}


def browser_gauges(browsers: Sequence[BrowserStats]) -> Iterator[Metric]:
    """Yield gauges by source, for all generations of its browser together."""
    sources, usages = [each.source for each in browsers], [each.usage for each in browsers]

    def total(name: str, about: str, values: Iterable[int | None]) -> Metric:
        return _gauge(name, about, "source", _sums(zip(sources, values, strict=True)))

    about = "RSS of the process tree (counts shared pages repeatedly)."
    yield total("longstop_browser_rss_bytes", about, (usage.rss_bytes if usage else None for usage in usages))
    about = "PSS of the process tree (counts shared pages once)."
    yield total("longstop_browser_pss_bytes", about, (usage.pss_bytes if usage else None for usage in usages))
    about = "Processes of the tree, including the driver."
    yield total("longstop_browser_processes", about, (usage.processes if usage else None for usage in usages))
    yield total("longstop_browser_contexts", "Open contexts.", (each.contexts for each in browsers))
    yield total("longstop_browser_pages", "Open pages.", (each.pages for each in browsers))
    shares = {each.source: each.pss_per_page for each in browsers}
    yield _gauge("longstop_browser_page_pss_bytes", "PSS for each open page of the newest browser.", "source", shares)


def _sums(values: Iterable[tuple[str, int | None]]) -> dict[str, int | None]:
    """Add up by source; a sum with an unknown part is unknown."""
    sums: dict[str, int | None] = {}
    for source, value in values:
        before = sums.get(source, 0)
        sums[source] = None if before is None or value is None else before + value
    return sums


def _gauge(name: str, about: str, label: str, values: Mapping[str, float | None]) -> Metric:
    """Return a gauge. Unknown values are omitted, never 0."""
    family = GaugeMetricFamily(name, about, labels=[label])
    for key, value in values.items():
        if value is not None:
            family.add_metric([key], value)
    return family
