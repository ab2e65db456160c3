"""Memory and CPU: what a scraper uses, and what each match costs of it."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from longstop.fetching.browser.browser_policy_and_stats import BrowserStats
from longstop.model.scraper_report import MatchCost, ProcessResources
from longstop.process.processes import Identity, find_process, measure, process_tree


class ResourceMeter:
    """Measures a process tree from time to time, in a thread: reading the PSS of a browser takes a while."""

    def __init__(self, monotonic: Callable[[], float], pid: int | None = None) -> None:
        self._monotonic = monotonic
        self._pid = os.getpid() if pid is None else pid
        self._peak: int | None = None
        self._cpu: dict[Identity, float] = {}
        self._measured_at: float | None = None
        self.newest: ProcessResources | None = None

    def start(self, every_seconds: float) -> threading.Event:
        """Measure until the returned event is set."""
        ending = threading.Event()

        def work() -> None:
            while not ending.is_set():
                with suppress(OSError):  # out of file descriptors: keep the last figures
                    self.newest = self.measure() or self.newest
                ending.wait(every_seconds)

        threading.Thread(target=work, name="meter", daemon=True).start()
        return ending

    def measure(self) -> ProcessResources | None:
        """Measure now; `None` if the process does not exist."""
        head = find_process(self._pid)
        if head is None:
            return None
        tree = process_tree(head.identity)
        measured = measure(tree)
        now = self._monotonic()
        own, percent = self._cpu_percents(head.identity, {each.identity: each.cpu_seconds for each in tree}, now)
        if measured.rss_bytes is not None:
            self._peak = max(self._peak or 0, measured.rss_bytes)
        return ProcessResources(
            pids=tuple(sorted(each.pid for each in tree)),
            rss_bytes=measured.rss_bytes,
            pss_bytes=measured.pss_bytes,
            peak_rss_bytes=self._peak,
            cpu_percent=percent,
            own_pss_bytes=measure([head]).pss_bytes,
            own_cpu_percent=own,
        )

    def _cpu_percents(
        self, head: Identity, spent: dict[Identity, float], now: float
    ) -> tuple[float | None, float | None]:
        """Return the CPU use of the first process and of the tree since the last measurement."""
        before, self._cpu = self._cpu, spent
        since, self._measured_at = self._measured_at, now
        if since is None or now <= since:
            return None, None
        percents = {who: 100 * (cpu - before.get(who, 0.0)) / (now - since) for who, cpu in spent.items()}
        return round(percents.get(head, 0.0), 1), round(sum(percents.values()), 1)


# --- the cost of each match -------------------------------------------------------------------------------------------


def match_costs(
    sources: Mapping[int, str], browsers: Sequence[BrowserStats], used: ProcessResources | None
) -> dict[int, MatchCost]:
    """Share the measured resources between the matches, given with their sources; the shares add up to the whole.

    All matches share the scraper's own process equally, and those of a source its browsers: what a single page uses is
    not measured. What was not measured is `None`, not 0.
    """
    if used is None:
        return {}
    counts, memory, cpu = Counter(sources.values()), [_pss(each) for each in browsers], _browser_cpu(browsers, used)

    def share(source: str, own: float | None, amounts: Sequence[float | None]) -> float | None:
        of_source = [amount for each, amount in zip(browsers, amounts, strict=True) if each.source == source]
        if own is None or None in of_source:
            return None
        return own / len(sources) + sum(amount or 0.0 for amount in of_source) / counts[source]

    costs = {}
    for source in counts:
        held, spent = share(source, used.own_pss_bytes, memory), share(source, used.own_cpu_percent, cpu)
        costs[source] = MatchCost(
            pss_bytes=None if held is None else round(held), cpu_percent=None if spent is None else round(spent, 2)
        )
    return {match_id: costs[source] for match_id, source in sources.items()}


def _pss(browser: BrowserStats) -> int | None:
    return browser.usage.pss_bytes if browser.usage else None


def _browser_cpu(browsers: Sequence[BrowserStats], used: ProcessResources) -> list[float | None]:
    """Share the CPU use of all browsers by their open pages."""
    if used.cpu_percent is None or used.own_cpu_percent is None:
        return [None] * len(browsers)
    spent = max(0.0, used.cpu_percent - used.own_cpu_percent)
    pages = [max(1, each.pages) for each in browsers]
    return [spent * count / sum(pages) for count in pages]
