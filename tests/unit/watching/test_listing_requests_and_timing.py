"""One source's listing: its failures and its interval."""

import asyncio
from typing import Any

import pytest

from longstop.errors import FetchError, SourceFailed, SourceRefused
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import Phase
from longstop.sources.crex.source import CrexSource
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import WatchRestarted
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.listing_requests_and_timing import (
    FORGOTTEN_AFTER_SECONDS,
    SLOWEST_GOOD_LISTING,
    Listings,
    finished_after,
)
from longstop.watching.poll_intervals_and_frozen_pages import Cadence
from tests.builders import CREX_CONFIG
from tests.crex_site import OUT_OF_ORDER, Site
from tests.unit.watching.running import LIST, CountingFetcher, Running, match, script

CADENCE = Cadence()


@pytest.mark.req("FLD-5")
@pytest.mark.parametrize("answer", [OUT_OF_ORDER, b"<html>", b"[]", b'{"M1": 1}'], ids=["503", "html", "list", "junk"])
def test_a_listing_that_fails_changes_nothing_and_is_no_empty_one(answer: Any) -> None:
    running = Running(match("M1", "1"))

    def fail() -> None:
        running.site.faults[LIST] = answer
        running.site.asked.clear()

    script(running, (4.0, fail), until=30.0)

    assert 5 <= len(running.sink.named("listing.failed")) <= 8
    assert running.row("M1").record.phase is Phase.ACTIVE


def test_while_only_the_listing_is_broken_matches_are_asked_for_one_by_one() -> None:
    one = match("M1", "1")
    running = Running(one)

    def fail() -> None:
        running.site.faults[LIST] = OUT_OF_ORDER
        one.bowl("4")

    script(running, (4.0, fail), until=60.0)

    assert len(running.store.history[1]) == 2
    assert running.age("M1", 60.0) < 13


def test_the_loop_goes_on_when_the_listing_is_back() -> None:
    one = match("M1", "1")
    running = Running(one)

    def recover() -> None:
        running.site.faults.clear()
        one.bowl("4")

    script(running, (4.0, lambda: running.site.faults.update({LIST: OUT_OF_ORDER})), (20.0, recover), until=25.0)

    assert len(running.store.history[1]) == 2
    assert running.age("M1", 25.0) < 6


def test_a_site_that_fails_at_the_start_is_asked_again_soon() -> None:
    running = Running(match("M1", "1"))
    running.site.faults[LIST] = OUT_OF_ORDER

    script(running, (1.0, running.site.faults.clear), until=5.0)

    assert len(running.store.history[1]) == 1


def test_the_list_is_asked_often_in_play_and_seldom_after_it() -> None:
    one = match("M1", "1")
    running = Running(one)

    def finish() -> None:
        one.headline = "Reds won by 3 runs"

    script(running, (10.0, finish), (190.0, running.site.asked.clear), until=790.0)

    assert running.site.count(LIST) == 10


def test_a_list_that_fails_for_long_is_asked_rarely_and_its_matches_as_before() -> None:
    one, two = match("M1", "1"), match("M2", "1")
    running = Running(one, two)
    ages: list[float] = []

    def fail() -> None:
        running.site.faults[LIST] = SourceFailed("500")
        running.site.asked.clear()

    def note() -> None:
        now = asyncio.get_running_loop().time()
        ages.append(max(running.age("M1", now), running.age("M2", now)))
        if len(ages) % 5 == 0:
            one.bowl("1")
            two.bowl("2")

    script(running, (5.0, fail), *((20.0 + second, note) for second in range(0, 280, 2)), until=300.0)

    assert max(ages) < 16
    assert 10 < running.site.count(LIST) < 40


def test_while_the_list_is_refused_its_matches_wait_and_say_so() -> None:
    running = Running(match("M1", "1"))
    held: list[bool] = []

    def note() -> None:
        held.append(running.row("M1").record.is_held)

    script(
        running,
        (4.0, note),
        (5.0, lambda: running.site.faults.update({LIST: SourceRefused("403")})),
        (6.0, running.site.asked.clear),
        (300.0, note),
        (300.5, lambda: held.append(running.site.count("getSV3") > 0)),
        (301.0, running.site.faults.clear),
        (400.0, note),
        until=401.0,
    )

    assert held == [False, True, False, False]
    assert not running.sink.named(WatchRestarted.name)


class Desk:
    """The listings of a small site, without a scheduler around them."""

    def __init__(self) -> None:
        self.site = Site(match("M1", "1"))
        self.fetcher = CountingFetcher(self.site, 0.01)
        client = SourceClient(CrexSource(CREX_CONFIG), self.fetcher)
        self.listings = Listings("crex", client=client, bus=Bus(), clock=VirtualClock(), cadence=CADENCE)

    async def fail(self, times: int, error: FetchError = OUT_OF_ORDER) -> None:
        """Poll this many times, each as soon as it is due, while the site returns an error."""
        self.site.faults[LIST] = error
        while self.site.count(LIST) < times:
            assert await self.listings.next() is None
            await asyncio.sleep(0.1)
        self.site.faults.clear()

    async def good(self) -> None:
        """Ask once it is due again, and sort it out."""
        await asyncio.sleep(60.0)
        assert await self.listings.next() is not None
        self.listings.settle()


@pytest.mark.parametrize(
    ("failures", "distance"), [(4, 1.0), (5, 2 * CADENCE.live), (25, SLOWEST_GOOD_LISTING * CADENCE.live)]
)
def test_after_a_bad_spell_a_good_list_is_asked_more_rarely_but_never_much(failures: int, distance: float) -> None:
    async def play() -> float:
        desk = Desk()
        await desk.fail(failures)
        await desk.good()
        return desk.listings.distance(1.0)

    assert run_virtual(play()) == distance


def test_the_usual_distance_counts_when_it_is_the_longer_one() -> None:
    async def play() -> float:
        desk = Desk()
        await desk.fail(25)
        return desk.listings.distance(60.0)

    assert run_virtual(play()) == 60.0


def test_a_list_that_is_long_in_coming_is_not_asked_for_twice() -> None:
    async def play() -> tuple[bool, bool, int, float]:
        desk = Desk()
        desk.fetcher.slow[LIST] = 15.0
        first, second = await desk.listings.next(), await desk.listings.next()
        return first is None, second is not None, desk.site.count(LIST), desk.listings.unread_seconds

    is_late, is_there, asked, age = run_virtual(play())

    assert (is_late, is_there, asked) == (True, True, 1)
    assert age == pytest.approx(15.0, abs=0.1)  # as old as its question


def test_the_failure_of_a_trial_request_slows_nothing_down() -> None:
    async def play() -> float:
        desk = Desk()
        trial = SourceFailed("503")
        trial.is_canary = True
        await desk.fail(25, trial)
        return asyncio.get_running_loop().time()

    assert run_virtual(play()) < 3.0


def test_the_wait_for_a_list_counts_from_the_last_that_was_read() -> None:
    async def play() -> tuple[float, float]:
        desk = Desk()
        await asyncio.sleep(20.0)
        before = desk.listings.unread_seconds
        await desk.good()
        await asyncio.sleep(5.0)
        return before, desk.listings.unread_seconds

    assert run_virtual(play()) == pytest.approx((20.0, 5.0), abs=0.1)


# --- who is remembered as over ----------------------------------------------------------------------------------------


def test_who_is_listed_again_and_again_is_remembered() -> None:
    finished = {"M1": 0.0}

    for hour in range(1, 100):
        finished = finished_after(finished, ["M1", "M2"], hour * 3600.0, 10)

    assert finished.keys() == {"M1"}


def test_of_too_many_those_are_remembered_that_were_listed_last() -> None:
    finished = {"M1": 1.0, "M2": 3.0, "M3": 2.0, "M4": 0.0}

    assert finished_after(finished, ["M4"], 4.0, 2) == {"M4": 4.0, "M2": 3.0}


def test_who_was_not_listed_for_a_day_is_forgotten_and_not_sooner() -> None:
    finished = {"M1": 0.0}

    assert finished_after(finished, [], FORGOTTEN_AFTER_SECONDS - 1, 10) == finished
    assert finished_after(finished, [], FORGOTTEN_AFTER_SECONDS, 10) == {}
