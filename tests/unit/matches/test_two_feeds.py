"""A match with two feeds: one match, one leader, and either feed may die and come back."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from longstop.errors import SourceUnreachable
from longstop.fetching.base import FetchRequest, Page
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.event import Op
from longstop.model.match import MatchRef, MatchRow
from longstop.model.polling_status import SyncState
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.model import Delivery
from longstop.sports.cricket.sport import Cricket
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher, ScriptedReply, VirtualClock, run_virtual
from longstop.watching.feed_polling import WatchContext
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.poll_intervals_and_frozen_pages import WatchRules
from longstop.watching.source_scheduler import Scheduler
from tests.builders import CREX_CONFIG, NOW
from tests.crex_site import Site, SiteMatch
from tests.memory import MemoryHot, MemorySink, MemoryStore

#: The second feed's keys of the players and teams of the first.
OTHER_KEYS = {b'"A1': b'"P7', b"A2": b"P8", b'"A3"': b'"P5"', b'"B1"': b'"P9"', b"T1": b"U1", b"T2": b"U2"}
#: How far its event ids are off.
OFFSET = 13


class Mirror(Site):
    """The same match as another source shows it: other event ids, other keys of players and teams."""

    def __call__(self, request: FetchRequest) -> ScriptedReply:
        asked = request.body or b""
        for ours, theirs in OTHER_KEYS.items():
            asked = asked.replace(theirs, ours)
        if b"lastDocId" in asked:
            question = msgspec.json.decode(asked)
            if question["lastDocId"] is not None:
                question["lastDocId"] = str(int(question["lastDocId"]) - OFFSET)
            asked = msgspec.json.encode(question)
        answer = super().__call__(msgspec.structs.replace(request, body=asked or None))
        if not isinstance(answer, bytes):
            return answer
        if "getBallFeeds" in request.url:
            items = msgspec.json.decode(answer)
            answer = msgspec.json.encode([{**item, "id": item["id"] + OFFSET} for item in items])
        for ours, theirs in OTHER_KEYS.items():
            answer = answer.replace(ours, theirs)
        return answer


class HangingFetcher(ScriptedFetcher):
    """A scripted fetcher that may wait for ever."""

    def __init__(self, script: Callable[[FetchRequest], ScriptedReply], is_hanging: Callable[[], bool]) -> None:
        super().__init__(script, delay_seconds=0.01)
        self._is_hanging = is_hanging

    async def fetch(self, request: FetchRequest) -> Page:
        if self._is_hanging():
            await asyncio.sleep(3600)
        return await super().fetch(request)


class TwoFeeds:
    """Two sources with a scheduler each, and one match that both of them show."""

    def __init__(self, *, second: type[Site] = Site, weights: tuple[int, int] = (100, 50)) -> None:
        self.match = SiteMatch(key="M1")
        self.sites = {"crex": Site(self.match), "mirror": second(self.match)}
        for site in self.sites.values():
            site.names["A3"] = "Ada Alpha"
        self.weights = dict(zip(self.sites, weights, strict=True))
        #: The sources that are switched on.
        self.enabled = list(self.sites)
        self.store, self.hot, self.sink = MemoryStore(), MemoryHot(), MemorySink()
        self.dead: set[str] = set()
        #: Sources that do not answer, and do not fail either.
        self.hanging: set[str] = set()
        self.rules = WatchRules()
        self.matches: LiveMatches

    def play(self, *acts: tuple[float, Callable[[], object]], until: float) -> None:
        """Run both schedulers in virtual time and do each act at its second."""

        async def script() -> None:
            row = await self.store.register(MatchRef("crex", "M1"), "a match", None, NOW, sport="cricket")
            await self.store.link(MatchRef("mirror", "M1"), row.match_id)
            running = asyncio.create_task(self._run())
            for at, act in acts:
                await asyncio.sleep(at - asyncio.get_running_loop().time())
                act()
            await asyncio.sleep(until - asyncio.get_running_loop().time())
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        run_virtual(script())

    async def _run(self) -> None:
        bus, clock = Bus([self.sink]), VirtualClock()
        self.matches = LiveMatches(self.store, "node-a")
        dispatcher = Dispatcher(clock=clock, bus=bus, cap=4)
        schedulers = {name: self._scheduler(name, bus, clock, dispatcher) for name in self.enabled}
        async for match in self.matches.take_over(schedulers, lambda ref, error: None):
            for ref in match.refs:
                if ref.source in schedulers:
                    await schedulers[ref.source].adopt(match, ref)
        async with asyncio.TaskGroup() as group:
            group.create_task(dispatcher.run())
            for scheduler in schedulers.values():
                group.create_task(scheduler.run())

    def _scheduler(self, name: str, bus: Bus, clock: VirtualClock, dispatcher: Dispatcher) -> Scheduler:
        source = CrexSource(msgspec.structs.replace(CREX_CONFIG, domain_id=name))
        fetcher = HangingFetcher(lambda request: self._answer(name, request), lambda: name in self.hanging)
        client = SourceClient(source, fetcher)
        pipeline = Pipeline(
            Cricket(), client=client, store=self.store, bus=bus, clock=clock, scraper_id=self.matches.node
        )
        context = WatchContext(
            pipeline=pipeline,
            matches=self.matches,
            hot=self.hot,
            bus=bus,
            clock=clock,
            rules=self.rules,
            precedence=self.weights[name],
        )
        return Scheduler(name, client=client, context=context, dispatcher=dispatcher, memory_check=MemoryCheck(0))

    def _answer(self, name: str, request: FetchRequest) -> ScriptedReply:
        return SourceUnreachable("the site is gone") if name in self.dead else self.sites[name](request)

    # --- what came of it ---

    @property
    def leaders(self) -> list[str]:
        """Return who said each stored snapshot, without repetitions in a row."""
        said = [update.snapshot.provenance["*"].source for update in self.store.updates if update.snapshot]
        return [name for place, name in enumerate(said) if place == 0 or said[place - 1] != name]

    def deliveries(self) -> list[tuple[str, int, int]]:
        """Return key, runs and revision of each live delivery, in the order of play."""
        current = [stored.event for stored in self.store.current(1).values()]
        live = [event for event in current if event.is_live and isinstance(event.content, Delivery)]
        live.sort(key=lambda event: (event.key.numbers[0], event.position or 0))
        return [
            (str(event.key), event.content.runs.total, event.rev)
            for event in live
            if isinstance(event.content, Delivery)
        ]

    def true_runs(self) -> list[int]:
        return [int(ball.value) for ball in self.match.balls]

    def check_nothing_doubled_or_renumbered(self) -> None:
        found = self.deliveries()
        assert [runs for _, runs, _ in found] == self.true_runs()
        assert {rev for _, _, rev in found} == {1}
        assert [stored.event.op for stored in self.store.history[1]] == [Op.INSERT] * len(self.store.history[1])
        assert [key for key, _, _ in found] == [
            f"delivery:1:{place // 6}:{place % 6 + 1}" for place in range(len(self.match.balls))
        ]


BOWLED = ("1", "2", "0", "4", "1", "6", "1")


@pytest.mark.parametrize("second", [Site, Mirror])
@pytest.mark.parametrize("is_first_asked", [True, False])
def test_two_feeds_of_one_match_store_it_once_and_the_higher_precedence_leads(
    second: type[Site], is_first_asked: bool
) -> None:
    feeds = TwoFeeds(second=second)
    feeds.enabled = feeds.enabled if is_first_asked else feeds.enabled[::-1]
    feeds.match.bowl(*BOWLED)

    feeds.play((20, lambda: feeds.match.bowl("3", "2")), until=40)

    assert list(feeds.store.rows) == [1]
    assert feeds.leaders == ["crex"]
    feeds.check_nothing_doubled_or_renumbered()


@pytest.mark.parametrize("second", [Site, Mirror])
def test_when_the_leader_dies_the_other_feed_goes_on_and_when_it_is_back_it_leads_again(second: type[Site]) -> None:
    feeds = TwoFeeds(second=second)
    feeds.match.bowl(*BOWLED)

    feeds.play(
        (15, lambda: feeds.dead.add("crex")),
        (17, lambda: feeds.match.bowl("3", "2")),
        (60, lambda: feeds.match.bowl("1")),
        (80, lambda: feeds.dead.clear()),
        (200, lambda: feeds.match.bowl("2", "2")),
        until=240,
    )

    assert feeds.leaders == ["crex", "mirror", "crex"]
    feeds.check_nothing_doubled_or_renumbered()
    assert feeds.hot.rows[1].record.sync is SyncState.IN_SYNC


def test_a_leader_that_hangs_does_not_keep_the_other_feed_waiting() -> None:
    feeds = TwoFeeds(second=Mirror)
    feeds.match.bowl(*BOWLED)

    feeds.play(
        (15, lambda: feeds.hanging.add("crex")),
        (17, lambda: feeds.match.bowl("3")),
        until=45,
    )

    assert feeds.leaders == ["crex", "mirror"]
    feeds.check_nothing_doubled_or_renumbered()


@pytest.mark.parametrize("second", [Site, Mirror])
def test_a_feed_that_does_not_lead_may_die_and_come_back_unnoticed(second: type[Site]) -> None:
    feeds = TwoFeeds(second=second)
    feeds.match.bowl(*BOWLED)

    feeds.play(
        (15, lambda: feeds.dead.add("mirror")),
        (30, lambda: feeds.match.bowl("3", "2")),
        (60, lambda: feeds.dead.clear()),
        (80, lambda: feeds.match.bowl("1")),
        until=100,
    )

    assert feeds.leaders == ["crex"]
    feeds.check_nothing_doubled_or_renumbered()


def test_players_of_the_other_feed_are_known_by_the_keys_that_are_stored() -> None:
    feeds = TwoFeeds(second=Mirror)
    feeds.match.bowl(*BOWLED)

    feeds.play((15, lambda: feeds.dead.add("crex")), (17, lambda: feeds.match.bowl("3")), until=60)

    newest = feeds.store.history[1][-1].event
    assert isinstance(newest.content, Delivery)
    assert (newest.content.batter, newest.content.bowler, newest.source) == ("A1", "B1", "mirror")
    assert newest.source_event_id == str(feeds.match.balls[-1].id + OFFSET)
    assert feeds.store.keys[1]["mirror"].players == {"P7": "A1", "P8": "A2", "P9": "B1"}
    assert set(feeds.store.players[1]) == {"A1", "A2", "B1"}


def test_a_player_whom_the_second_feed_introduced_keeps_its_key_when_the_first_is_back() -> None:
    feeds = TwoFeeds(second=Mirror)
    feeds.match.bowl(*BOWLED)

    def ada_bats() -> None:
        for ball in feeds.match.bowl("3", "2"):
            ball.batter = "A3"

    feeds.play(
        (15, lambda: feeds.dead.add("crex")),
        (17, ada_bats),
        (80, lambda: feeds.dead.clear()),
        (200, ada_bats),
        until=240,
    )

    assert feeds.leaders == ["crex", "mirror", "crex"]
    feeds.check_nothing_doubled_or_renumbered()
    batters = [
        stored.event.content.batter for stored in feeds.store.history[1] if isinstance(stored.event.content, Delivery)
    ]
    assert batters == ["A1"] * 7 + ["P5"] * 4
    assert feeds.store.players[1]["P5"] == "Ada Alpha"
    assert "A3" not in feeds.store.players[1]


def test_a_second_feed_that_is_excluded_after_a_restart_learns_its_ids_once() -> None:
    feeds = TwoFeeds(second=Mirror)
    feeds.match.bowl(*BOWLED)
    feeds.play(until=20)

    feeds.enabled = ["mirror"]
    before = len(feeds.store.updates)
    feeds.play((20, lambda: feeds.match.bowl("3")), (40, lambda: feeds.match.bowl("2")), until=60)

    feeds.check_nothing_doubled_or_renumbered()
    learnt = [len(update.ids) for update in feeds.store.updates[before:]]
    assert [count for count in learnt if count] == [len(BOWLED) + 1], "each ball and the end of the over, once"


@pytest.mark.parametrize("second", [Site, Mirror])
def test_among_equals_the_feed_that_leads_keeps_the_lead(second: type[Site]) -> None:
    feeds = TwoFeeds(second=second, weights=(100, 100))
    feeds.match.bowl(*BOWLED)

    feeds.play(
        *((at, lambda: feeds.match.bowl("1")) for at in range(10, 100, 7)),
        until=110,
    )

    assert len(feeds.leaders) == 1
    feeds.check_nothing_doubled_or_renumbered()


@pytest.mark.parametrize("second", [Site, Mirror])
def test_after_a_restart_under_the_other_feed_nothing_is_doubled(second: type[Site]) -> None:
    feeds = TwoFeeds(second=second)
    feeds.match.bowl(*BOWLED)

    feeds.play((15, lambda: feeds.dead.add("crex")), (17, lambda: feeds.match.bowl("3", "2")), until=60)
    feeds.match.bowl("1")
    feeds.play(until=60)
    feeds.dead.clear()
    feeds.match.bowl("2")
    feeds.play(until=60)

    assert feeds.leaders == ["crex", "mirror", "crex"]
    feeds.check_nothing_doubled_or_renumbered()


async def test_two_sources_that_find_a_match_at_the_same_moment_share_it() -> None:
    class Slow(MemoryStore):
        async def claim(self, match_id: int, node: str) -> MatchRow:
            await asyncio.sleep(0)
            return await super().claim(match_id, node)

    store = Slow()
    await store.register(MatchRef("crex", "M1"), "a match", None, NOW, sport="cricket")
    matches = LiveMatches(store, "node-a")

    one, two = await asyncio.gather(matches.take(1), matches.take(1))

    assert one is two
    assert store.rows[1].epoch == 1
