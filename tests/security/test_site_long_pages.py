"""Large pages of a site are parsed outside the event loop, one at a time, and not for long."""

import asyncio
import threading
from collections.abc import Callable

import msgspec
import pytest

from longstop.errors import LimitExceeded, MalformedBody
from longstop.matches.limits import Limits
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import LARGE_BODY_BYTES, PollClient, SourceClient
from longstop.model.source_queries_and_answers import LIVE, Observation, Query
from longstop.sources.crex.source import CrexSource
from longstop.sports.base import Draft
from longstop.sports.cricket.model import Board, CricketState
from longstop.sports.cricket.sport import Cricket
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from tests.builders import CREX_CONFIG
from tests.crex_site import SiteMatch
from tests.unit.sports.cricket.polling import Polling


class SlowSource(CrexSource):
    """Takes as long as the test says to parse a page."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(CREX_CONFIG)
        self._work = work

    def parse(self, query: Query, body: bytes) -> object:
        self._work()
        return super().parse(query, body)


def state(size: int = LARGE_BODY_BYTES) -> bytes:
    return msgspec.json.encode({**SiteMatch().state(), "x": "y" * size})


def client(work: Callable[[], object], parse_seconds: float = 5.0) -> SourceClient:
    return SourceClient(
        SlowSource(work), ScriptedFetcher(lambda _: state()), limits=Limits(parse_seconds=parse_seconds)
    )


async def ask(source: SourceClient) -> Board:
    return await PollClient(source).ask(Query(resource=LIVE, source_id="M1"), Board)


async def test_a_page_that_takes_too_long_to_parse_is_refused_and_blocks_nothing_else() -> None:
    is_over, ticks = threading.Event(), 0
    source = client(lambda: is_over.wait(60), parse_seconds=0.3)

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    try:
        with pytest.raises(LimitExceeded, match="SCRAPER_MAX_PARSE_SECONDS"):
            await ask(source)
    finally:
        is_over.set()
        ticking.cancel()

    assert ticks > 10


async def test_what_takes_too_long_is_never_more_than_one_page_of_a_source() -> None:
    is_over, running, most = threading.Event(), 0, 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        is_over.wait(60)
        running -= 1

    source = client(work, parse_seconds=0.2)
    asking = [asyncio.create_task(ask(source)) for _ in range(5)]
    await asyncio.sleep(1.0)
    was_most = most
    is_over.set()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert (was_most, most) == (1, 1)
    # Only the page that took too long is refused; the others waited for its end.
    assert [type(each) for each in results] == [LimitExceeded, Board, Board, Board, Board]


async def test_a_poll_that_is_cancelled_during_a_long_page_lets_the_next_one_wait_for_its_end() -> None:
    is_over = threading.Event()
    source = client(lambda: is_over.wait(60))
    first = asyncio.create_task(ask(source))
    await asyncio.sleep(0.2)
    first.cancel()
    await asyncio.wait([first])

    second = asyncio.create_task(ask(source))
    await asyncio.sleep(0.2)
    was_done = second.done()
    is_over.set()

    assert not was_done
    assert (await second).source_id == "M1"


async def test_an_error_of_a_long_page_is_that_of_a_short_one() -> None:
    source = SourceClient(CrexSource(CREX_CONFIG), ScriptedFetcher(lambda _: state()[:-1]))

    with pytest.raises(MalformedBody) as caught:
        await ask(source)

    assert "M1" in str(caught.value)


async def test_a_large_match_is_compared_outside_the_loop_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over, threads = threading.Event(), list[threading.Thread]()

    class SlowSport(Cricket):
        def diff(self, state: CricketState, observation: Observation) -> Draft:
            threads.append(threading.current_thread())
            is_over.wait(60)
            return super().diff(state, observation)

    polling = Polling(SiteMatch(match_format="Test"))
    polling.match.bowl(*"1" * 300)
    polling.client.limits = Limits(parse_seconds=0.3)
    polling.pipeline = Pipeline(
        SlowSport(), client=polling.client, store=polling.store, bus=Bus(), clock=polling.clock, scraper_id="node-a"
    )
    monkeypatch.setattr("longstop.matches.pipeline.LARGE_MATCH_EVENTS", 200)
    await polling.start()

    with pytest.raises(LimitExceeded, match="comparing 350 events took more than"):
        await polling.poll()
    is_over.set()
    polling.client.limits = Limits()
    await polling.poll()

    assert threading.main_thread() not in threads
    assert len(polling.stored_balls()) == 300
