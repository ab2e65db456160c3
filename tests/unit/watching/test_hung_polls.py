"""A poll that hangs is cancelled, and the watch restarts before the next poll."""

import asyncio

import pytest

from longstop.errors import BrowserBusy, CircuitOpen, FetchError
from longstop.fetching.base import FetchRequest, Page
from longstop.telemetry.events.matches import WatchRestarted
from tests.unit.watching.running import CountingFetcher, Running, match, script

FEED = "getBallFeeds"
FOR_EVER = 1e6


class HangingFetcher(CountingFetcher):
    """Does not answer when a match's feed is asked for while it hangs."""

    is_hanging = False
    #: The response to the first request while it hangs.
    first: FetchError | None = None

    async def fetch(self, request: FetchRequest) -> Page:
        if self.is_hanging and FEED in request.url:
            if self.first is not None:
                error, self.first = self.first, None
                raise error
            await asyncio.sleep(FOR_EVER)
        return await super().fetch(request)


@pytest.mark.req("FR-001")
def test_a_poll_that_hangs_is_abandoned_and_the_watch_restarted() -> None:
    one = match("M1", "1")
    running = Running(one)
    running.fetcher = fetcher = HangingFetcher(running.site, delay_seconds=0.01)

    def hang() -> None:
        fetcher.is_hanging = True
        one.bowl("4")

    def come_back() -> None:
        fetcher.is_hanging = False

    script(running, (4.0, hang), (400.0, come_back), until=800.0)

    restarts = [event for event in running.sink.events if isinstance(event, WatchRestarted)]
    assert [event.reason for event in restarts] == ["stale", "stale"]
    assert running.age("M1", 800.0) < 31
    assert len(running.store.history[1]) == 2


@pytest.mark.req("FR-001")
@pytest.mark.parametrize("held", [BrowserBusy("3 pages are being loaded already"), CircuitOpen("the circuit is open")])
def test_a_poll_that_hangs_after_one_that_was_postponed_is_abandoned_all_the_same(held: FetchError) -> None:
    one = match("M1", "1")
    running = Running(one)
    running.fetcher = fetcher = HangingFetcher(running.site, delay_seconds=0.01)
    fetcher.first = held
    is_held: list[bool] = []

    def hang() -> None:
        fetcher.is_hanging = True
        one.bowl("4")

    def come_back() -> None:
        fetcher.is_hanging = False

    def note() -> None:
        [record] = running.scheduler.records
        is_held.append(record.is_held)

    script(running, (4.0, hang), (290.0, note), (291.0, come_back), (360.0, note), until=400.0)

    assert is_held == [True, False]
    assert [event.name for event in running.sink.events].count(WatchRestarted.name) == 1
    assert running.age("M1", 400.0) < 31
