"""`python -m bench.pages [--count N]`: many pages through one pool, some of them hostile; nothing may accumulate.

Of a hundred pages five spin, two crash and one leaks 10 MB a second; the others are match pages of the simulated
football site. Every page has an address of its own, so no page is reused.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import count as counting
from pathlib import Path
from statistics import linear_regression
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import psutil
from msgspec import Struct

from bench.browser_setup import make_fetcher, make_pool
from bench.reporting import Report, rounded, run, say
from longstop.errors import FetchError
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop_lab.client import percentile
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator
from longstop_lab.simulator.sites.sofascore.page import page_path

AT_ONCE = 4
MAX_TABS = 8
DEADLINE_SECONDS = 10.0
BROWSING = BrowserPolicy(
    modes=(Mode.NAVIGATE,), page_seconds=DEADLINE_SECONDS, fresh_seconds=0, max_tabs=MAX_TABS, probe_seconds=1
)
#: The tolerance of deadlines on a busy machine.
GRACE_SECONDS = 1.0
#: Pages between two samples.
SAMPLE_EVERY = 20
#: The largest growth of processes and descriptors for a hundred pages.
FLAT = 2.0
#: The least success rate of good pages while others spin.
GOOD_SHARE = 0.99
#: Seconds for abandoned processes to end.
GONE_WITHIN = 10.0


class Kind(StrEnum):
    """What becomes of a page; the harmful ones are names below the simulator's `/_hostile/`."""

    GOOD = "good"
    SPIN = "spin"
    CRASH = "crash"
    LEAK = "leak"


def kind_of(number: int) -> Kind:
    """Return what the page with this number is: of every hundred, 5 spin, 2 crash, 1 leaks."""
    if number % 20 == 7:
        return Kind.SPIN
    if number % 50 == 30:
        return Kind.CRASH
    return Kind.LEAK if number % 100 == 50 else Kind.GOOD


class Sample(Struct, frozen=True, kw_only=True):
    """Resources in use after a number of pages."""

    pages: int
    processes: int
    descriptors: int


def slope(samples: Sequence[Sample], name: str) -> float:
    """Return by how much a figure grows for a hundred pages: the straight line that fits the least of each hundred.

    The least, because a browser and its replacement overlap for a while, which is not growth.
    """
    least: dict[int, int] = {}
    for sample in samples:
        block, value = (sample.pages - 1) // 100, int(getattr(sample, name))
        least[block] = min(value, least.get(block, value))
    return linear_regression(list(least), list(least.values())).slope if len(least) > 1 else 0.0


class Crowd:
    """Sends pages through a fetcher, and notes how it went."""

    def __init__(self, fetcher: BrowserFetcher, simulator: RunningSimulator, pages: int) -> None:
        self.waits: list[float] = []
        self.samples: list[Sample] = []
        self.good = 0
        self._fetcher = fetcher
        self._site = simulator.sofascore_url
        self._boards = list(simulator.football.boards.items())
        self._pages = pages
        self._numbers = counting()

    async def pass_through(self) -> None:
        await asyncio.gather(*(self._take_turns() for _ in range(AT_ONCE)))

    async def _take_turns(self) -> None:
        while (number := next(self._numbers)) < self._pages:
            await self._visit(number)
            if len(self.waits) % SAMPLE_EVERY == 0:
                self.samples.append(take_sample(len(self.waits)))
            if len(self.waits) % 100 == 0:
                say(f"{len(self.waits)} pages; {self.samples[-1].processes} processes")

    async def _visit(self, number: int) -> None:
        began = monotonic()
        try:
            await self._fetcher.fetch(self._request(number))
            self.good += 1
        except FetchError as error:
            if kind_of(number) is Kind.GOOD:
                say(f"page {number}: {error}")
        waited = monotonic() - began
        self.waits.append(waited)
        if waited > DEADLINE_SECONDS + GRACE_SECONDS:
            say(f"page {number} ({kind_of(number)}) took {waited:.1f} s")

    def _request(self, number: int) -> FetchRequest:
        kind = kind_of(number)
        key, board = self._boards[number % len(self._boards)]
        path = page_path(board.match) if kind is Kind.GOOD else f"/_hostile/{kind}"
        return FetchRequest(
            source="pages", url=f"{self._site}/api/v1/event/{key}", page=f"{self._site}{path}?number={number}"
        )


def take_sample(pages: int) -> Sample:
    own = psutil.Process()
    return Sample(pages=pages, processes=len(own.children(recursive=True)), descriptors=own.num_fds())


async def pages(count: int) -> Report:
    before = take_sample(0)
    with TemporaryDirectory(prefix="longstop-pages-") as home:
        async with running_simulator(SimulatorOptions(sites="sofascore", matches=8)) as simulator:
            figures = await _pass_through(Path(home), simulator, count)
    after = take_sample(count)
    figures |= {"processes_left": after.processes - before.processes, "pages": count}
    figures |= {"descriptors_before": before.descriptors, "descriptors_after": after.descriptors}
    return Report(suite="pages", is_ok=is_good(figures), figures=figures)


def is_good(figures: dict[str, Any]) -> bool:
    """Return whether nothing grew, nothing is left, and no wait exceeded its deadline."""
    is_gone = not any(figures[name] for name in ("contexts_left", "pages_unclosed", "processes_left"))
    is_flat = max(figures["processes_slope"], figures["descriptors_slope"]) <= FLAT
    in_time = figures["wait_max_s"] <= DEADLINE_SECONDS + GRACE_SECONDS and figures["closing_s"] <= GONE_WITHIN
    return is_gone and is_flat and in_time and figures["good_share"] >= GOOD_SHARE


async def _pass_through(home: Path, simulator: RunningSimulator, count: int) -> dict[str, Any]:
    pool = make_pool(home)
    care = asyncio.create_task(pool.run())
    fetcher = make_fetcher(pool, "pages", host=urlsplit(simulator.sofascore_url).netloc, browsing=BROWSING)
    crowd = Crowd(fetcher, simulator, count)
    try:
        await crowd.pass_through()
        unclosed = await _at_rest(
            lambda: sum(len(session.engine.addresses) - len(session.tabs) for session in fetcher.sessions)
        )
        contexts = sum(each.contexts for each in pool.stats())
        await fetcher.aclose()
        left = await _at_rest(lambda: sum(each.contexts for each in pool.stats()))
    finally:
        care.cancel()
        await asyncio.gather(care, return_exceptions=True)
        began = monotonic()
        await pool.aclose()
        closing = monotonic() - began
    wanted = sum(kind_of(number) is Kind.GOOD for number in range(count))
    return {
        "good_share": rounded(crowd.good / wanted),
        "contexts": contexts,
        "contexts_left": left,
        "pages_unclosed": unclosed,
        "processes_max": max(sample.processes for sample in crowd.samples),
        "processes_slope": rounded(slope(crowd.samples, "processes"), 2),
        "descriptors_slope": rounded(slope(crowd.samples, "descriptors"), 2),
        "wait_p50_s": rounded(percentile(crowd.waits, 0.5), 2),
        "wait_max_s": rounded(max(crowd.waits), 2),
        "deadline_s": DEADLINE_SECONDS,
        "closing_s": rounded(closing, 2),
    }


async def _at_rest(left: Callable[[], int]) -> int:
    """Return what is left after abandoned processes had time to end."""
    deadline = monotonic() + GONE_WITHIN
    while True:
        now = left()
        if not now or monotonic() > deadline:
            return now
        await asyncio.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/pages", description="Send pages through a pool of browsers, and end in one JSON line."
    )
    parser.add_argument("--count", type=int, default=1000, help="how many pages; at least 100 show every kind")
    chosen = parser.parse_args()
    if chosen.count < SAMPLE_EVERY:
        parser.error(f"--count must be {SAMPLE_EVERY} or more")
    return run("pages", pages(chosen.count))


if __name__ == "__main__":
    sys.exit(main())
