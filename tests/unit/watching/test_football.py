"""Watching football: the listing shows only the score, so the match's own pages are polled every time."""

import asyncio
from collections.abc import Callable

import pytest

from longstop.fetching.base import FetchRequest
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.model.source_queries_and_answers import Query
from longstop.sources.base import Source, not_offered
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.football.model import LINEUPS, STATISTICS
from longstop.sports.football.sport import Football
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.testing import START, ScriptedFetcher, VirtualClock, run_virtual
from longstop.watching.feed_polling import WatchContext
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.source_scheduler import Scheduler
from tests.football_site import SOFASCORE_CONFIG, FootballPages, card, event, goal
from tests.memory import MemoryHot, MemorySink, MemoryStore


class Running:
    """A scheduler with one football match."""

    def __init__(self, source: Source | None = None) -> None:
        self.source = source or SofascoreSource(SOFASCORE_CONFIG)
        self.pages = FootballPages()
        self.pages.event = event("1st half", 0, 0)
        self.store = MemoryStore()
        self.hot = MemoryHot()
        self.sink = MemorySink()

    def play(self, *acts: tuple[float, Callable[[], object]], until: float) -> None:
        """Run the loop in virtual time and do each act at its second."""
        run_virtual(self._play(acts, until))

    async def _play(self, acts: tuple[tuple[float, Callable[[], object]], ...], until: float) -> None:
        task = asyncio.create_task(self._run())
        now = 0.0
        for at, act in acts:
            await asyncio.sleep(at - now)
            now = at
            act()
        await asyncio.sleep(until - now)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        bus, clock = Bus([self.sink]), VirtualClock()
        client = SourceClient(self.source, ScriptedFetcher(self.pages, delay_seconds=0.01))
        context = WatchContext(
            pipeline=Pipeline(Football(), client=client, store=self.store, bus=bus, clock=clock, scraper_id="node-a"),
            matches=LiveMatches(self.store, "node-a"),
            hot=self.hot,
            bus=bus,
            clock=clock,
        )
        dispatcher = Dispatcher(clock=clock, bus=bus, cap=4)
        scheduler = Scheduler(
            "sofascore", client=client, context=context, dispatcher=dispatcher, memory_check=MemoryCheck(0)
        )
        async for match in context.matches.take_over({"sofascore"}, lambda ref, error: None):
            await scheduler.adopt(match, match.row.ref)
        async with asyncio.TaskGroup() as group:
            group.create_task(dispatcher.run())
            await scheduler.run()

    @property
    def keys(self) -> list[str]:
        return [str(stored.event.key) for stored in self.store.history.get(1, [])]

    def age(self, now: float) -> float:
        polled = self.hot.rows[1].record.last_poll_at
        assert polled is not None
        return now - (polled - START).total_seconds()


def test_a_match_of_the_live_list_is_found_read_and_kept_under_its_sport() -> None:
    running = Running()

    running.play(until=1)

    record = running.hot.rows[1].record
    assert (record.phase, record.sync, record.status) == (Phase.ACTIVE, SyncState.IN_SYNC, MatchStatus.LIVE)
    assert (record.sport, running.store.rows[1].sport) == ("football", "football")


def test_a_card_is_seen_although_the_list_shows_nothing_of_it() -> None:
    running = Running()

    def show() -> None:
        running.pages.incidents = [card(101)]

    # By then the line-ups that name its player have been known for a while.
    running.play((40.0, show), until=44)

    assert running.keys == ["card:home:1"]


@pytest.mark.req("NFR-011")
def test_a_match_without_a_goal_for_an_hour_stays_young_and_is_not_called_frozen() -> None:
    running = Running()

    running.play(until=3600)

    assert running.age(3600) < 5
    assert not running.sink.named("source.frozen")
    assert running.hot.rows[1].record.tempo == "baseline"


def test_at_half_time_the_list_is_enough() -> None:
    running = Running()

    def rest() -> None:
        running.pages.event = event("Halftime", 0, 0)

    running.play((10.0, rest), (120.0, running.pages.asked.clear), until=240)

    assert set(running.pages.asked) == {"live"}
    assert running.age(240) < 35


def test_a_match_that_leaves_the_list_is_not_finished_until_its_event_says_so() -> None:
    running = Running()

    def leave() -> None:
        running.pages.listed = []

    def end() -> None:
        running.pages.event = event("Ended", 1, 0, winnerCode=1)
        running.pages.incidents = [goal(100, 1, 0)]

    def check() -> None:
        assert running.store.rows[1].phase is Phase.ACTIVE

    running.play((10.0, leave), (30.0, check), (31.0, end), until=45)

    assert running.store.rows[1].phase is Phase.COMPLETED
    assert running.keys == ["goal:home:1", "result"]


class SourceOfScores(SofascoreSource):
    """A source that offers neither line-ups nor statistics."""

    def request(self, query: Query) -> FetchRequest:
        if query.resource in (LINEUPS, STATISTICS):
            raise not_offered(self.name, query.resource)
        return super().request(query)


def test_a_source_without_line_ups_and_statistics_is_read() -> None:
    running = Running(SourceOfScores(SOFASCORE_CONFIG))

    def show() -> None:
        running.pages.event = event("1st half", 1, 0)
        running.pages.incidents = [goal(100, 1, 0), card(101)]

    running.play((10.0, show), until=14)

    assert running.keys == ["goal:home:1", "card:home:1"]
    record = running.hot.rows[1].record
    assert (record.sync, record.total_failures) == (SyncState.IN_SYNC, 0)
