"""The metrics sink: counts what it hears, by match and by site, and gives a reading that can be written out.

Series of a match live as long as the match is watched, and there are at most `MAX_MATCHES` of them: the others share
one named `other`, so that no site can fill a metrics store with ids.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct

from longstop.clock import Moment
from longstop.fetching.browser.base import BrowserCensus
from longstop.model.match import MonitoringRecord, Priority, priority_of
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchClaimed, PollFailed, PollSucceeded, UpdateStored, WatchRestarted
from longstop.telemetry.events.sources import CircuitClosed, CircuitOpened, ListingFailed, ListingRead, RequestRetried

MAX_MATCHES = 2_000
#: Kinds of error for one match; our own tree has fewer, a stranger's source may have any number.
MAX_ERROR_TYPES = 32
MAX_LABEL_CHARACTERS = 100
#: What shares a label when there are too many; no match id looks like this, since those have an underscore.
OTHER = "other"

#: What a breaker guards, and why a watch begins anew: told from the start, so that a first time is a step up from 0.
SCOPES = ("target", "match", "source")
RESTART_REASONS = ("stale", "errors", "lifetime", "cool_down", "asked", "recycled")

FRESHNESS_BOUNDS = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LATENCY_BOUNDS = (0.1, 0.5, 1.0, 2.0, 5.0)
DURATION_BOUNDS = (0.1, 0.25, 0.5, 1.0, 3.0, 10.0)


class Spread(Struct, frozen=True):
    """How values are distributed between upper bounds; the last count is of those above all bounds."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    def not_above(self) -> list[tuple[str, int]]:
        """Return how many values did not exceed each bound, the last being infinity."""
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class MatchReading(Struct, frozen=True, kw_only=True):
    """What was counted for one match."""

    match_id: str
    updates: int
    latency: Spread
    errors: Mapping[str, int]


class Watched(Struct, frozen=True, kw_only=True):
    """What only the schedulers and the process know, taken at one moment."""

    node: str
    records: Sequence[MonitoringRecord]
    #: The priorities of the looks that have not begun.
    waiting: Sequence[int]
    #: The kinds of all open findings.
    findings: Sequence[str]
    rss_bytes: int
    #: The worst of the last ten seconds.
    loop_lag_seconds: float | None = None
    browsers: tuple[BrowserCensus, ...] = ()
    #: Through the proxy in this month; `None` where there is none.
    proxy_bytes: int | None = None


class Reading(Struct, frozen=True, kw_only=True):
    """Everything there is to write out, at one moment."""

    node: str
    rss_bytes: int
    loop_lag_seconds: float | None = None
    matches: tuple[MatchReading, ...]
    #: Seconds since the last accepted poll, by match; only those in play.
    staleness: Mapping[str, float]
    #: The ages that the matches in play had, sampled over the whole run …
    freshness: Spread
    #: … and those of the latest sample, in order.
    ages: tuple[float, ...]
    waiting: Mapping[str, int]
    open_findings: Mapping[str, int]
    scrapes: Mapping[tuple[str, str], int]
    durations: Mapping[str, Spread]
    events_stored: Mapping[str, int]
    listings_failed: Mapping[str, int]
    #: By what a breaker guards: how often one opened, and how many requests were turned away.
    breakers_opened: Mapping[str, int]
    requests_rejected: Mapping[str, int]
    requests_retried: Mapping[str, int]
    watches_restarted: Mapping[str, int]
    browsers: tuple[BrowserCensus, ...] = ()
    proxy_bytes: int | None = None


class _Tally:
    """Sorts values below upper bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def spread(self) -> Spread:
        return Spread(self._bounds, tuple(self._counts), self._total)


class _MatchSeries:
    def __init__(self) -> None:
        self.updates = 0
        self.latency = _Tally(LATENCY_BOUNDS)
        self.errors: Counter[str] = Counter()


class Metrics:
    """Listens to the bus and counts."""

    def __init__(self, max_matches: int = MAX_MATCHES) -> None:
        self._max_matches = max_matches
        self._matches: dict[str, _MatchSeries] = {}
        self._scrapes: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, _Tally] = {}
        self._events_stored: Counter[str] = Counter(insert=0, update=0, void=0)
        self._listings_failed: Counter[str] = Counter()
        self._breakers_opened = Counter(dict.fromkeys(SCOPES, 0))
        self._requests_rejected = Counter(dict.fromkeys(SCOPES, 0))
        self._requests_retried: Counter[str] = Counter()
        self._watches_restarted = Counter(dict.fromkeys(RESTART_REASONS, 0))
        self._freshness = _Tally(FRESHNESS_BOUNDS)
        self._ages: tuple[float, ...] = ()

    def take(self, event: Telemetry) -> None:
        match event:
            case MatchClaimed():
                self._series(event.ref)
            case UpdateStored():
                self._count_update(event)
            case PollSucceeded():
                self._count_look(event)
            case PollFailed():
                self._count_failure(event)
            case ListingRead():
                self._scrapes[_label(event.source), "success"] += 1
            case ListingFailed():
                self._scrapes[_label(event.source), "failure"] += 1
                self._listings_failed[_label(event.source)] += 1
            case _:
                self._count_care(event)

    def sample(self, records: Sequence[MonitoringRecord], now: Moment) -> None:
        """Note how old each match in play is, and forget the matches that are watched no more."""
        self._ages = tuple(sorted(age for _, age in _in_play(records, now)))
        for age in self._ages:
            self._freshness.add(age)
        watched = {_label(str(record.ref)) for record in records} | {OTHER}
        self._matches = {name: series for name, series in self._matches.items() if name in watched}

    def read(self, watched: Watched, now: Moment) -> Reading:
        """Return what there is to write out; nothing in it changes afterwards."""
        return Reading(
            node=_label(watched.node),
            rss_bytes=watched.rss_bytes,
            loop_lag_seconds=watched.loop_lag_seconds,
            matches=tuple(_match_reading(name, series) for name, series in self._matches.items()),
            staleness=_staleness(watched.records, now, self._matches.keys()),
            freshness=self._freshness.spread(),
            ages=self._ages,
            waiting=_by_priority(watched.waiting),
            open_findings=Counter(watched.findings),
            scrapes=dict(self._scrapes),
            durations={domain: tally.spread() for domain, tally in self._durations.items()},
            events_stored=dict(self._events_stored),
            listings_failed=dict(self._listings_failed),
            breakers_opened=dict(self._breakers_opened),
            requests_rejected=dict(self._requests_rejected),
            requests_retried=dict(self._requests_retried),
            watches_restarted=dict(self._watches_restarted),
            browsers=watched.browsers,
            proxy_bytes=watched.proxy_bytes,
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

    def _count_look(self, event: PollSucceeded) -> None:
        domain = _domain(event.ref)
        self._scrapes[domain, "success"] += 1
        self._durations.setdefault(domain, _Tally(DURATION_BOUNDS)).add(event.seconds)

    def _count_care(self, event: Telemetry) -> None:
        """Count what was done about trouble."""
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
    """Return what may stand in a label; escaping it is up to whoever writes it out."""
    if text.isascii() and len(text) <= MAX_LABEL_CHARACTERS:
        return text
    return text[:MAX_LABEL_CHARACTERS].encode(errors="replace").decode()


def _domain(ref: str) -> str:
    return _label(ref.partition("_")[0])


def _match_reading(name: str, series: _MatchSeries) -> MatchReading:
    return MatchReading(
        match_id=name, updates=series.updates, latency=series.latency.spread(), errors=dict(series.errors)
    )


def _in_play(records: Sequence[MonitoringRecord], now: Moment) -> list[tuple[str, float]]:
    """Return the age of every match in play."""
    return [
        (_label(str(record.ref)), age)
        for record in records
        if priority_of(record.status, record.start_at, now.wall) is Priority.LIVE
        and (age := record.age_at(now)) is not None
    ]


def _staleness(records: Sequence[MonitoringRecord], now: Moment, known: Collection[str]) -> dict[str, float]:
    """Return the ages by match; those without a series of their own are told by their oldest."""
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
