"""A scheduler with its parts, on a small site, in virtual time: shared by the suites of watching."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from longstop.fetching.base import FetchRequest, Page
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy, GuardedFetcher
from longstop.matches.limits import Limits
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.resilience.breaker import source_policy
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.sport import Cricket
from longstop.storage.base import HotRow
from longstop.storage.error_pages_and_screenshots import NoPages
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.testing import START, ScriptedFetcher, VirtualClock, run_virtual
from longstop.watching.feed_polling import WatchContext
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.poll_intervals_and_frozen_pages import WatchRules
from longstop.watching.source_and_layout_breakers import SourceAdmission
from longstop.watching.source_scheduler import Scheduler
from longstop.watching.stored_pauses import StoredPauses
from tests.builders import CREX_CONFIG
from tests.crex_site import Site, SiteMatch
from tests.memory import MemoryHot, MemoryPauses, MemorySink, MemoryStore

LIST = "getLiveMatches"


class CountingFetcher(ScriptedFetcher):
    """A scripted fetcher that counts concurrent requests."""

    def __init__(self, site: Site, delay_seconds: float) -> None:
        super().__init__(site, delay_seconds=delay_seconds)
        #: How much longer pages of a name take.
        self.slow: dict[str, float] = {}
        self._in_flight = 0
        self.most_in_flight = 0

    async def fetch(self, request: FetchRequest) -> Page:
        await asyncio.sleep(next((seconds for name, seconds in self.slow.items() if name in request.url), 0.0))
        if LIST in request.url:
            return await super().fetch(request)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            return await super().fetch(request)
        finally:
            self._in_flight -= 1


class Running:
    """A scheduler with its parts."""

    def __init__(
        self,
        *matches: SiteMatch,
        delay_seconds: float = 0.01,
        slots: int = 4,
        is_guarded: bool = False,
        memory_check: MemoryCheck | None = None,
    ) -> None:
        self.site = Site(*matches)
        self.fetcher = CountingFetcher(self.site, delay_seconds)
        self.store = MemoryStore()
        self.hot = MemoryHot()
        self.sink = MemorySink()
        self.pauses = StoredPauses(MemoryPauses(), clock=VirtualClock())
        self._slots = slots
        #: Whether the fetcher stands behind its guards, and the source behind its admission.
        self._is_guarded = is_guarded
        self._memory_check = memory_check or MemoryCheck(0)
        self.rules = WatchRules()
        self.limits = Limits()
        self.scheduler: Scheduler
        self.dispatcher: Dispatcher

    async def run(self, seconds: float) -> None:
        """Let the loop run for so long, then stop it."""
        task = asyncio.create_task(self.start())
        await asyncio.sleep(seconds)
        await self.stop(task)

    async def start(self) -> None:
        bus, clock = Bus([self.sink]), VirtualClock()
        client = self._client(clock, bus)
        context = WatchContext(
            pipeline=Pipeline(Cricket(), client=client, store=self.store, bus=bus, clock=clock, scraper_id="node-a"),
            matches=LiveMatches(self.store, "node-a"),
            hot=self.hot,
            bus=bus,
            clock=clock,
            rules=self.rules,
            pauses=self.pauses.of("crex"),
        )
        self.dispatcher = Dispatcher(clock=clock, bus=bus, cap=self._slots)
        self.scheduler = Scheduler(
            "crex", client=client, context=context, dispatcher=self.dispatcher, memory_check=self._memory_check
        )
        async for match in context.matches.take_over({"crex"}, lambda ref, error: None):
            await self.scheduler.adopt(match, match.row.ref)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.dispatcher.run())
            await self.scheduler.run()

    def _client(self, clock: VirtualClock, bus: Bus) -> SourceClient:
        source = CrexSource(CREX_CONFIG)
        if not self._is_guarded:
            return SourceClient(source, self.fetcher, limits=self.limits)
        policy = FetchPolicy(hosts=CREX_CONFIG.hosts, allow_private_addresses=True)
        guarded = GuardedFetcher(self.fetcher, policy, clock=clock, bus=bus, random=Random(7))
        admission = SourceAdmission(
            "crex", policy=source_policy(), probe_seconds=300.0, pages=NoPages(), clock=clock, bus=bus
        )
        return SourceClient(source, guarded, admission, limits=self.limits)

    async def stop(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    def row(self, key: str) -> HotRow:
        return next(row for row in self.hot.rows.values() if row.record.ref.source_id == key)

    def age(self, key: str, now: float) -> float:
        polled = self.row(key).record.last_poll_at
        assert polled is not None
        return now - (polled - START).total_seconds()


def match(key: str, *values: str) -> SiteMatch:
    found = SiteMatch(key=key)
    found.bowl(*values)
    return found


def script(running: Running, *acts: tuple[float, Callable[[], object]], until: float) -> None:
    """Run the loop in virtual time, with each act at its second."""

    async def play() -> None:
        task = asyncio.create_task(running.start())
        now = 0.0
        for at, act in acts:
            await asyncio.sleep(at - now)
            now = at
            act()
        await asyncio.sleep(until - now)
        await running.stop(task)

    run_virtual(play())


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    run_virtual(coroutine)
