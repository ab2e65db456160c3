"""The browsers of a node as Prometheus gauges. Pure: the same census gives the same gauges."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from longstop.fetching.browser.base import BrowserCensus


def browser_gauges(census: Iterable[BrowserCensus], proxy_bytes: int | None = None) -> Iterator[Metric]:
    """Yield what browsers hold, by source, all generations together; what is not known is left out, never 0."""
    people = tuple(census)
    yield _gauge("longstop_browser_rss_bytes", "Memory of the tree, shared pages once for each process.", _rss(people))
    yield _gauge("longstop_browser_pss_bytes", "Memory of the tree, shared pages once in all.", _pss(people))
    shares = {each.source: each.pss_per_page for each in people}
    yield _gauge("longstop_browser_page_pss_bytes", "What one open page costs, of the newest browser.", shares)
    processes = _added((each.source, each.usage.processes if each.usage else None) for each in people)
    yield _gauge("longstop_browser_processes", "Processes of the tree, driver included.", processes)
    yield _gauge("longstop_browser_contexts", "Open contexts.", _added((each.source, each.contexts) for each in people))
    yield _gauge("longstop_browser_pages", "Open pages.", _added((each.source, each.pages) for each in people))
    used = GaugeMetricFamily("longstop_proxy_bytes_month", "Bytes through the proxy in this month.")
    if proxy_bytes is not None:
        used.add_metric([], proxy_bytes)
    yield used


def _rss(people: Iterable[BrowserCensus]) -> Mapping[str, int | None]:
    return _added((each.source, each.usage.rss_bytes if each.usage else None) for each in people)


def _pss(people: Iterable[BrowserCensus]) -> Mapping[str, int | None]:
    return _added((each.source, each.usage.pss_bytes if each.usage else None) for each in people)


def _added(values: Iterable[tuple[str, int | None]]) -> dict[str, int | None]:
    """Add up by source; with one part unknown, the whole is."""
    sums: dict[str, int | None] = {}
    for source, value in values:
        before = sums.get(source, 0)
        sums[source] = None if before is None or value is None else before + value
    return sums


def _gauge(name: str, about: str, values: Mapping[str, int | None]) -> Metric:
    family = GaugeMetricFamily(name, about, labels=("source",))
    for source, value in values.items():
        if value is not None:
            family.add_metric([source], value)
    return family
