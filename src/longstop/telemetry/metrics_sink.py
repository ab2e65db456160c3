"""The metrics sink: counts events by match and by site.

A match has series while it is polled. At most `MAX_MATCHES` matches have their own; the others share the label
`other`, so that no site can flood a metrics store with ids.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct

from longstop.clock import Moment
from longstop.fetching.browser.base import BrowserStats
from longstop.model.match import MonitoringRecord, Priority, priority_of
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchClaimed, PollFailed, PollSucceeded, UpdateStored, WatchRestarted
from longstop.telemetry.events.sources import CircuitClosed, CircuitOpened, ListingFailed, ListingRead, RequestRetried

MAX_MATCHES = 2_000
#: Error types of one match; plug-ins may raise any number of types.
MAX_ERROR_TYPES = 32
MAX_LABEL_CHARACTERS = 100
#: Shared label when there are too many; match ids contain an underscore, so none is equal to it.
OTHER = "other"

#: Labels that are exported from the start with 0, so that the first occurrence shows as an increase.
SCOPES = ("target", "match", "source")
RESTART_REASONS = ("stale", "errors", "lifetime", "cool_down", "asked", "recycled")

FRESHNESS_BOUNDS = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LATENCY_BOUNDS = (0.1, 0.5, 1.0, 2.0, 5.0)
DURATION_BOUNDS = (0.1, 0.25, 0.5, 1.0, 3.0, 10.0)


class Distribution(Struct, frozen=True):
    """Counts of values by upper bound; the last count is that of values above all bounds."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, int]]:
        """Return cumulative counts by bound, as Prometheus wants them."""
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class MatchReading(Struct, frozen=True, kw_only=True):
    """The counters of one match."""

    match_id: str
    updates: int
    latency: Distribution
    errors: Mapping[str, int]


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


class MetricsReading(Struct, frozen=True, kw_only=True):
    """All values to export, at one moment."""

    node: str
    rss_bytes: int
    loop_lag_seconds: float | None = None
    matches: tuple[MatchReading, ...]
    #: Seconds since the last accepted poll, for matches in play.
    staleness: Mapping[str, float]
    #: Ages of matches in play, sampled over the whole run, …
    freshness: Distribution
    #: … and those of the latest sample, sorted.
    ages: tuple[float, ...]
    waiting: Mapping[str, int]
    open_findings: Mapping[str, int]
    scrapes: Mapping[tuple[str, str], int]
    durations: Mapping[str, Distribution]
    events_stored: Mapping[str, int]
    listings_failed: Mapping[str, int]
    #: By scope of the breaker.
    breakers_opened: Mapping[str, int]
    requests_rejected: Mapping[str, int]
    requests_retried: Mapping[str, int]
    watches_restarted: Mapping[str, int]
    browsers: tuple[BrowserStats, ...] = ()
    proxy_bytes: int | None = None


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def distribution(self) -> Distribution:
        return Distribution(self._bounds, tuple(self._counts), self._total)


class _MatchSeries:
    def __init__(self) -> None:
        self.updates = 0
        self.latency = _Histogram(LATENCY_BOUNDS)
        self.errors: Counter[str] = Counter()


class Metrics:
    """Counts events. Call `sample` once a second, and `read` to export."""

    def __init__(self, max_matches: int = MAX_MATCHES) -> None:
        self._max_matches = max_matches
        self._matches: dict[str, _MatchSeries] = {}
        self._scrapes: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, _Histogram] = {}
        self._events_stored: Counter[str] = Counter(insert=0, update=0, void=0)
        self._listings_failed: Counter[str] = Counter()
        self._breakers_opened = Counter(dict.fromkeys(SCOPES, 0))
        self._requests_rejected = Counter(dict.fromkeys(SCOPES, 0))
        self._requests_retried: Counter[str] = Counter()
        self._watches_restarted = Counter(dict.fromkeys(RESTART_REASONS, 0))
        self._freshness = _Histogram(FRESHNESS_BOUNDS)
        self._ages: tuple[float, ...] = ()

    def take(self, event: Telemetry) -> None:
        match event:
            case MatchClaimed():
                self._series(event.ref)
            case UpdateStored():
                self._count_update(event)
            case PollSucceeded():
                self._count_success(event)
            case PollFailed():
                self._count_failure(event)
            case ListingRead():
                self._scrapes[_label(event.source), "success"] += 1
            case ListingFailed():
                self._scrapes[_label(event.source), "failure"] += 1
                self._listings_failed[_label(event.source)] += 1
            case _:
                self._count_measure(event)

    def sample(self, records: Sequence[MonitoringRecord], now: Moment) -> None:
        """Record the age of each match in play, and drop the series of matches that are no longer polled."""
        self._ages = tuple(sorted(age for _, age in _in_play(records, now)))
        for age in self._ages:
            self._freshness.add(age)
        watched = {_label(str(record.ref)) for record in records} | {OTHER}
        self._matches = {name: series for name, series in self._matches.items() if name in watched}

    def read(self, state: ScraperState, now: Moment) -> MetricsReading:
        """Return an immutable copy of all values."""
        return MetricsReading(
            node=_label(state.node),
            rss_bytes=state.rss_bytes,
            loop_lag_seconds=state.loop_lag_seconds,
            matches=tuple(_match_reading(name, series) for name, series in self._matches.items()),
            staleness=_staleness(state.records, now, self._matches.keys()),
            freshness=self._freshness.distribution(),
            ages=self._ages,
            waiting=_by_priority(state.waiting),
            open_findings=Counter(state.findings),
            scrapes=dict(self._scrapes),
            durations={domain: each.distribution() for domain, each in self._durations.items()},
            events_stored=dict(self._events_stored),
            listings_failed=dict(self._listings_failed),
            breakers_opened=dict(self._breakers_opened),
            requests_rejected=dict(self._requests_rejected),
            requests_retried=dict(self._requests_retried),
            watches_restarted=dict(self._watches_restarted),
            browsers=state.browsers,
            proxy_bytes=state.proxy_bytes,
        )

    def _series(self, ref: str) -> _MatchSeries:
        name = _label(ref)
        if name not in self._matches and len(self._matches) >= self._max_matches:
            name = OTHER
        return self._matches.setdefault(name, _MatchSeries())

    def _count_update(self, event: UpdateStored) -> None:
        series = self._series(event.ref)
        series.updates += 1
        if event.latency_ms is not None:
            series.latency.add(event.latency_ms / 1000)
        self._events_stored.update(insert=event.inserted, update=event.updated, void=event.voided)

    def _count_success(self, event: PollSucceeded) -> None:
        domain = _domain(event.ref)
        self._scrapes[domain, "success"] += 1
        self._durations.setdefault(domain, _Histogram(DURATION_BOUNDS)).add(event.seconds)

    def _count_measure(self, event: Telemetry) -> None:
        """Count breakers, retries and restarts."""
        match event:
            case CircuitOpened():
                self._breakers_opened[_label(event.scope)] += 1
            case CircuitClosed():
                self._requests_rejected[_label(event.scope)] += event.rejected
            case RequestRetried():
                self._requests_retried[_label(event.source)] += 1
            case WatchRestarted():
                self._watches_restarted[_label(event.reason)] += 1
            case _:
                pass

    def _count_failure(self, event: PollFailed) -> None:
        self._scrapes[_domain(event.ref), "failure"] += 1
        errors, kind = self._series(event.ref).errors, _label(event.error_type)
        errors[kind if kind in errors or len(errors) < MAX_ERROR_TYPES else OTHER] += 1


def _label(text: str) -> str:
    """Return a valid label of bounded length; the exposition escapes it."""
    if text.isascii() and len(text) <= MAX_LABEL_CHARACTERS:
        return text
    return text[:MAX_LABEL_CHARACTERS].encode(errors="replace").decode()


def _domain(ref: str) -> str:
    return _label(ref.partition("_")[0])


def _match_reading(name: str, series: _MatchSeries) -> MatchReading:
    return MatchReading(
        match_id=name, updates=series.updates, latency=series.latency.distribution(), errors=dict(series.errors)
    )


def _in_play(records: Sequence[MonitoringRecord], now: Moment) -> list[tuple[str, float]]:
    return [
        (_label(str(record.ref)), age)
        for record in records
        if priority_of(record.status, record.start_at, now.wall) is Priority.LIVE
        and (age := record.age_at(now)) is not None
    ]


def _staleness(records: Sequence[MonitoringRecord], now: Moment, known: Collection[str]) -> dict[str, float]:
    """Return the ages by match; matches without their own series share the highest age."""
    ages: dict[str, float] = {}
    for name, age in _in_play(records, now):
        shown = name if name in known else OTHER
        ages[shown] = max(age, ages.get(shown, 0.0))
    return ages


def _by_priority(waiting: Sequence[int]) -> dict[str, int]:
    counts = {priority.name.lower(): 0 for priority in Priority} | {"upcoming": 0}
    names = list(counts)
    for priority in waiting:
        counts[names[min(priority, len(Priority))]] += 1
    return counts
