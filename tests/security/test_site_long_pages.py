"""Large pages of a site are parsed outside the event loop, one at a time, and not for long."""

import asyncio
import threading
from collections.abc import Callable

import msgspec
import pytest

from longstop.errors import CircuitOpen, LimitExceeded, MalformedBody
from longstop.matches.limits import Limits
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import LARGE_BODY_BYTES, PollAttempt, PollClient, SourceClient
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


class Held:
    """Work that lasts until the test ends it, for the first pages."""

    def __init__(self, pages: int) -> None:
        self.is_over, self.running, self.most, self.calls = threading.Event(), 0, 0, 0
        self._pages = pages

    def __call__(self) -> None:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        if self.calls <= self._pages:
            self.is_over.wait(3)
        self.running -= 1


async def test_a_page_that_takes_too_long_holds_up_the_others_no_longer_than_the_limit() -> None:
    work = Held(pages=1)
    source = client(work, parse_seconds=0.2)
    first = asyncio.create_task(ask(source))
    await asyncio.sleep(0.05)

    healthy = asyncio.create_task(ask(source))
    done, _ = await asyncio.wait({healthy}, timeout=2.0)
    work.is_over.set()

    assert done
    assert (await healthy).source_id == "M1"
    with pytest.raises(LimitExceeded):
        await first


async def test_pages_that_take_too_long_are_never_more_than_three_of_a_source() -> None:
    work = Held(pages=20)
    source = client(work, parse_seconds=0.1)

    results = await asyncio.gather(*(ask(source) for _ in range(8)), return_exceptions=True)
    most = work.most
    work.is_over.set()

    assert most == 3
    # The others are postponed: they may be pages of matches that did nothing wrong.
    assert [type(each) for each in results] == [LimitExceeded] * 3 + [CircuitOpen] * 5


async def test_large_pages_are_parsed_again_once_one_that_took_too_long_has_ended() -> None:
    work = Held(pages=3)
    source = client(work, parse_seconds=0.1)
    await asyncio.gather(*(ask(source) for _ in range(3)), return_exceptions=True)

    work.is_over.set()
    await asyncio.sleep(0.1)

    assert [(await ask(source)).source_id for _ in range(5)] == ["M1"] * 5


async def test_healthy_large_pages_are_parsed_one_at_a_time() -> None:
    work = Held(pages=0)
    source = client(work)

    await asyncio.gather(*(ask(source) for _ in range(10)))

    assert (work.calls, work.most) == (10, 1)


async def test_a_page_of_a_cancelled_poll_holds_up_no_other() -> None:
    work = Held(pages=1)
    source = client(work)
    first = asyncio.create_task(ask(source))
    await asyncio.sleep(0.1)
    first.cancel()
    await asyncio.wait([first])

    healthy = asyncio.create_task(ask(source))
    done, _ = await asyncio.wait({healthy}, timeout=2.0)
    work.is_over.set()

    assert done
    assert (await healthy).source_id == "M1"


async def test_the_time_that_a_poll_waits_for_a_page_of_another_is_not_counted_as_its_work() -> None:
    work = Held(pages=1)
    source = client(work, parse_seconds=0.5)
    hostile, healthy = PollAttempt(), PollAttempt()
    query = Query(resource=LIVE, source_id="M1")

    polls = [PollClient(source, attempt=each).ask(query, Board) for each in (hostile, healthy)]
    await asyncio.gather(*polls, return_exceptions=True)
    work.is_over.set()

    assert hostile.busy_seconds > 0.4
    assert healthy.busy_seconds < 0.3


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
