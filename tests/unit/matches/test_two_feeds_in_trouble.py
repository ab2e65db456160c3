"""Two feeds of one match when one of them misleads: it must not hide, double or undo what the other shows."""

import asyncio
from collections import Counter

import msgspec

from longstop.errors import SourceUnreachable
from longstop.fetching.base import FetchRequest, Page
from longstop.matches.map_ids_and_keys_between_feeds import as_seen
from longstop.model.event import Event, EventKey, Op
from longstop.model.match import Phase
from longstop.sports.cricket.align import align
from longstop.sports.cricket.model import CricketKind, SeenEvent
from longstop.sports.cricket.poll_requests import assemble_window
from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.poll_intervals_and_frozen_pages import Cadence, WatchRules
from longstop.watching.source_scheduler import Scheduler
from tests.builders import delivery
from tests.crex_site import OUT_OF_ORDER
from tests.unit.matches.test_two_feeds import BOWLED, HangingFetcher, Mirror, TwoFeeds

HOUR = 3600.0


def linked(feeds: type[TwoFeeds] = TwoFeeds) -> TwoFeeds:
    made = feeds(second=Mirror)
    made.match.bowl(*BOWLED)
    return made


def emitted(feeds: TwoFeeds) -> Counter[str]:
    return Counter(type(event).__name__ for event in feeds.sink.events)


def test_a_feed_that_was_only_glanced_at_takes_over_with_its_own_keys() -> None:
    feeds = linked()
    listing = feeds.sites["mirror"].faults

    feeds.play(
        (5, lambda: listing.update(getLiveMatches=OUT_OF_ORDER)),
        (25, listing.clear),
        (40, lambda: feeds.dead.add("crex")),
        (42, lambda: feeds.match.bowl("3", "2")),
        until=100,
    )

    assert feeds.leaders == ["crex", "mirror"]
    assert len(feeds.deliveries()) == len(feeds.match.balls)


def test_a_feed_that_does_not_lead_is_neither_frozen_nor_stale() -> None:
    feeds = linked()
    listing = feeds.sites["mirror"].faults

    feeds.play(
        (5, lambda: listing.update(getLiveMatches=OUT_OF_ORDER)),
        (25, listing.clear),
        *[(30 + 20 * nth, lambda: feeds.match.bowl("1")) for nth in range(30)],
        until=640,
    )

    assert feeds.leaders == ["crex"]
    assert not emitted(feeds) & Counter(["SourceFrozen", "MatchStale", "WatchRestarted"])


def test_a_cached_listing_keeps_no_feed_in_the_lead_whose_own_pages_fail() -> None:
    feeds = linked()
    site = feeds.sites["crex"]

    def die() -> None:
        site.frozen_list = site.list_now()
        site.faults.update(dict.fromkeys(("getSV3", "getBallFeeds", "getSC4"), OUT_OF_ORDER))

    feeds.play((15, die), *[(20 + 10 * nth, lambda: feeds.match.bowl("1")) for nth in range(20)], until=240)

    assert feeds.leaders == ["crex", "mirror"]
    assert len(feeds.deliveries()) == len(feeds.match.balls)


class SlowCard(HangingFetcher):
    """Gives the last answer of a poll late, so that what was read before it is old."""

    is_slow = False

    async def fetch(self, request: FetchRequest) -> Page:
        page = await super().fetch(request)
        if self.is_slow and "getSC4" in request.url:
            await asyncio.sleep(25)
        return page


class SlowFirst(TwoFeeds):
    slow: SlowCard

    def _scheduler(self, name: str, bus: Bus, clock: VirtualClock, dispatcher: Dispatcher) -> Scheduler:
        scheduler = super()._scheduler(name, bus, clock, dispatcher)
        if name == "crex":
            self.slow = SlowCard(lambda request: self._answer(name, request), lambda: False)
            scheduler.client.fetcher = self.slow
        return scheduler


def test_an_observation_older_than_what_another_feed_stored_meanwhile_is_dropped() -> None:
    feeds = SlowFirst(second=Mirror)
    feeds.match.bowl(*BOWLED)

    def come_back() -> None:
        feeds.slow.is_slow = True
        feeds.dead.clear()

    feeds.play(
        (14, lambda: feeds.dead.add("crex")),
        *[(16 + 4 * nth, lambda: feeds.match.bowl("1")) for nth in range(6)],
        (41, come_back),
        *[(42 + 4 * nth, lambda: feeds.match.bowl("1")) for nth in range(39)],
        until=230,
    )

    payloads = [msgspec.json.decode(each.snapshot.payload) for each in feeds.store.updates if each.snapshot]
    runs = [payload["innings"][0]["runs"] for payload in payloads if payload["innings"]]
    assert runs == sorted(runs)
    assert len(feeds.deliveries()) == len(feeds.match.balls)


def test_a_liveness_check_is_no_full_poll_so_that_the_leader_reads_an_edited_match_again() -> None:
    feeds = TwoFeeds(second=Mirror)
    feeds.enabled = ["mirror", "crex"]
    feeds.rules = WatchRules(cadence=Cadence(live=60, busy=60, discovery=HOUR / 4, completed=HOUR / 4))
    feeds.match.bowl(*["1"] * 18)

    def end() -> None:
        feeds.match.headline = "Reds won by 5 runs"

    def unlist() -> None:
        feeds.match.is_listed = False

    def edit() -> None:  # with the same total, so that only a full poll sees it
        feeds.match.balls[0].value, feeds.match.balls[1].value = "2", "0"

    feeds.play((300, end), (900, unlist), (20 * HOUR, edit), until=27 * HOUR)

    assert feeds.store.rows[1].phase is Phase.ARCHIVED
    assert [runs for _, runs, _ in feeds.deliveries()][:2] == [2, 0]


class BrokenSecond(TwoFeeds):
    def _scheduler(self, name: str, bus: Bus, clock: VirtualClock, dispatcher: Dispatcher) -> Scheduler:
        scheduler = super()._scheduler(name, bus, clock, dispatcher)
        if name == "mirror":
            scheduler.client.fetcher = _Raising(lambda request: self._answer(name, request), lambda: False)
        return scheduler


class _Raising(HangingFetcher):
    async def fetch(self, request: FetchRequest) -> Page:
        if "getLiveMatches" in request.url:
            raise SourceUnreachable("no listing, so that the match is asked for by itself")
        raise KeyError("a bug of a plug-in")


def test_a_bug_in_one_feed_costs_the_other_no_full_poll() -> None:
    feeds = linked(BrokenSecond)
    feeds.match.bowl(*["1"] * 60)  # several pages

    feeds.play(*[(20 + 10 * nth, lambda: feeds.match.bowl("1")) for nth in range(20)], until=230)

    assert emitted(feeds)["TaskFailed"] > 1
    assert feeds.sites["crex"].count("getBallFeeds") < 50
    assert len(feeds.deliveries()) == len(feeds.match.balls)


def test_a_window_that_takes_over_doubles_no_ball_and_learns_its_ids() -> None:
    stored = {}
    labels = [f"{over}.{ball}" for over in range(5) for ball in range(1, 7)]
    for position, label in enumerate(labels, 1):
        over, ball = map(int, label.split("."))
        key = EventKey(CricketKind.DELIVERY, (1, over, ball))
        stored[key] = Event(
            key=key,
            rev=1,
            op=Op.INSERT,
            content=delivery(label, 1),
            source_event_id=str(1000 + position),
            position=position,
        )
    items = [
        SeenEvent(
            innings=1,
            over=key.numbers[1],
            source_event_id=str(9000 + nth),
            content=delivery(label, 1),
            nth=key.numbers[2],
        )
        for nth, (key, label) in enumerate(zip(stored, labels, strict=True))
    ]
    seen = as_seen(stored, "espncricinfo", "crex", {})

    found = align(seen, assemble_window(items[-20:], items[:6]), settled={1})

    assert found.events == []
    assert len(found.ids) == 26
