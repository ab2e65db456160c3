"""Guards that leave a site alone."""

import asyncio
from random import Random

import pytest

from longstop.errors import (
    CircuitOpen,
    FetchError,
    FetchTimeout,
    LayoutChanged,
    PageNotFound,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import FetchRequest, Page
from longstop.telemetry.events.base import Telemetry
from longstop.telemetry.events.sources import BreakerClosed, BreakerOpened, BreakerProbing
from longstop.testing import Answer, run_virtual
from tests.unit.fetching.site import API_REQUEST, ONCE, REQUEST, Site, now, saying, types

RESET = SourceUnreachable("reset")


class Net:
    """A way to the site that can be cut."""

    is_cut = True

    def __call__(self, _request: FetchRequest) -> Answer:
        return RESET if self.is_cut else b"{}"


def _breaker_events(site: Site) -> list[Telemetry]:
    return [event for event in site.sink.events if event.name.startswith("breaker.")]


@pytest.mark.req("FR-003")
def test_five_connection_failures_in_a_row_open_the_circuit_and_nothing_more_is_sent() -> None:
    site = Site(saying(RESET), retry=ONCE)

    outcomes = run_virtual(site.fetch_often(8))

    assert types(outcomes) == ["SourceUnreachable"] * 5 + ["CircuitOpen"] * 3
    assert (site.asked, site.care.rejected) == (5, 3)
    assert _breaker_events(site) == [
        BreakerOpened(scope="target", subject="crex.com", reason="5 failures in a row, the last: reset", seconds=60)
    ]


def test_who_is_held_learns_for_how_long() -> None:
    site = Site(saying(RESET), retry=ONCE)

    async def visit() -> Page | FetchError:
        await site.fetch_often(5)
        await asyncio.sleep(2)
        return await site.fetch()

    held = run_virtual(visit())

    assert isinstance(held, CircuitOpen)
    assert held.retry_after_seconds == 58
    assert str(held) == "crex GET https://crex.com/live: crex.com is left alone for 58.0 s more"


@pytest.mark.parametrize("error", [PageNotFound("404"), SourceRefused("403"), SourceRefused("429")])
def test_whatever_the_site_answers_the_connection_is_good(error: FetchError) -> None:
    site = Site(saying(*[RESET] * 4, error, *[RESET] * 4, b"{}"), retry=ONCE)

    outcomes = run_virtual(site.fetch_often(10))

    assert "CircuitOpen" not in types(outcomes)
    assert site.asked == 10


@pytest.mark.req("FR-003")
def test_after_its_time_the_host_is_tried_and_five_good_answers_close_the_circuit() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        net.is_cut = False
        return await site.fetch_often(5)

    outcomes = run_virtual(visit())

    assert types(outcomes) == ["Page"] * 5
    assert _breaker_events(site)[1:] == [
        BreakerProbing(scope="target", subject="crex.com"),
        BreakerClosed(scope="target", subject="crex.com", rejected=0),
    ]


@pytest.mark.req("FR-003")
def test_while_the_circuit_is_open_one_canary_goes_out_every_interval() -> None:
    site = Site(saying(RESET), retry=ONCE)

    async def visit() -> list[float]:
        await site.fetch_often(5)
        sent = []
        while now() < 20:
            await asyncio.sleep(0.125)
            before = site.asked
            await asyncio.gather(*(site.fetch() for _ in range(50)))
            sent += [now()] * (site.asked - before)
        return sent

    assert run_virtual(visit()) == [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0]


@pytest.mark.req("FR-003")
def test_a_canary_that_comes_back_opens_all_hosts_of_the_source_by_half() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> tuple[tuple[str, ...], tuple[str, ...], Page | FetchError]:
        await site.fetch_often(5)
        await site.fetch_often(5, API_REQUEST)
        before = site.care.open_targets()
        net.is_cut = False
        await asyncio.sleep(2.5)
        await site.fetch(REQUEST)
        return before, site.care.open_targets(), await site.fetch(API_REQUEST)

    before, after, outcome = run_virtual(visit())

    assert (before, after) == (("crex.com", "api.crex.com"), ())
    assert isinstance(outcome, Page)
    assert _breaker_events(site)[2:] == [
        BreakerProbing(scope="target", subject="crex.com"),
        BreakerProbing(scope="target", subject="api.crex.com"),
    ]


@pytest.mark.req("FR-003")
def test_when_the_way_is_back_no_more_than_five_are_let_in_at_once_until_the_circuit_closes() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        net.is_cut = False
        site.takes(1.0)
        return await asyncio.gather(*(site.fetch() for _ in range(50)))

    outcomes = run_virtual(visit())

    assert types(outcomes).count("Page") == 5
    held = [outcome.reason for outcome in outcomes if isinstance(outcome, CircuitOpen)]
    assert held == ["crex.com is being tried by others"] * 45
    assert _breaker_events(site)[-1] == BreakerClosed(scope="target", subject="crex.com", rejected=45)


def test_a_late_answer_from_before_the_cut_does_not_close_the_circuit() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> tuple[str, bool]:
        net.is_cut = False
        site.takes(5.0)
        late = asyncio.create_task(site.fetch())
        await asyncio.sleep(1)
        net.is_cut = True
        site.takes(0.0)
        await site.fetch_often(5)
        net.is_cut = False
        return type(await late).__name__, site.care.is_open("crex.com")

    assert run_virtual(visit()) == ("Page", True)


def test_answers_that_crawl_open_the_circuit_and_say_so() -> None:
    site = Site(saying(b"{}"), delay_seconds=9.0, retry=ONCE)

    outcomes = run_virtual(site.fetch_often(6))

    assert types(outcomes) == ["Page"] * 5 + ["CircuitOpen"]
    opened = next(event for event in site.sink.events if isinstance(event, BreakerOpened))
    assert opened.reason == "5 failures in a row, the last: answered after 9.0 s"


def test_a_cancelled_probe_gives_its_place_back() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> Page | FetchError:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        net.is_cut = False
        site.takes(5.0)
        probes = [asyncio.create_task(site.fetch()) for _ in range(5)]
        await asyncio.sleep(1)
        for probe in probes:
            probe.cancel()
        await asyncio.wait(probes)
        return await site.fetch()

    assert isinstance(run_virtual(visit()), Page)


def test_an_error_that_no_fetcher_should_raise_gives_the_place_back_too() -> None:
    answers = [RESET] * 5 + [None] * 5 + [b"{}"]

    def script(_request: FetchRequest) -> Answer:
        answer = answers.pop(0)
        if answer is None:
            raise LayoutChanged("a bug in a third party's fetcher")
        return answer

    site = Site(script, retry=ONCE)

    async def visit() -> Page | FetchError:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        for _ in range(5):
            with pytest.raises(LayoutChanged):
                await site.fetch()
        return await site.fetch()

    assert isinstance(run_virtual(visit()), Page)


# --- rest -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "rested"),
    [
        (0.0, 1.0),
        (30.0, 30.0),
        (864_000.0, 900.0),  # ten days
    ],
)
def test_a_rest_that_one_answer_asks_for_holds_all_requests_of_the_source(asked: float, rested: float) -> None:
    site = Site(saying(SourceRefused("429", retry_after_seconds=asked), b"{}"), retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        first = await site.fetch()
        at_once = await site.fetch(API_REQUEST)
        await asyncio.sleep(rested - 0.01)
        almost = await site.fetch()
        await asyncio.sleep(0.02)
        return [first, at_once, almost, await site.fetch()]

    first, at_once, almost, after = run_virtual(visit())

    assert types([first, at_once, almost, after]) == ["SourceRefused", "CircuitOpen", "CircuitOpen", "Page"]
    assert isinstance(at_once, CircuitOpen)
    assert at_once.retry_after_seconds == rested
    assert at_once.reason == f"the site has asked for rest, {rested:.1f} s more"
    assert (site.asked, site.care.rejected) == (2, 2)


def test_a_rest_is_a_little_longer_than_asked_and_never_shorter() -> None:
    rests = []
    for seed in range(50):
        site = Site(saying(SourceFailed("503", retry_after_seconds=100)), retry=ONCE, random=Random(seed))

        async def visit(site: Site = site) -> float:
            await site.fetch()
            return site.care.rest_seconds()

        rests.append(run_virtual(visit()))

    assert all(100 <= rest <= 110 for rest in rests)
    assert max(rests) - min(rests) > 5


def test_a_refusal_that_asks_for_nothing_holds_nobody() -> None:
    site = Site(saying(SourceRefused("403"), b"{}"))

    assert types(run_virtual(site.fetch_often(2))) == ["SourceRefused", "Page"]


def test_an_open_circuit_is_no_wish_of_the_site() -> None:
    site = Site(saying(FetchTimeout("late")), retry=ONCE)

    async def visit() -> float:
        await site.fetch_often(7)
        return site.care.rest_seconds()

    assert run_virtual(visit()) == 0


def test_a_rest_uses_up_neither_the_canary_nor_a_probe() -> None:
    site = Site(saying(*[RESET] * 4, SourceFailed("503", retry_after_seconds=5), b"{}"), retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        await site.fetch_often(5)
        await asyncio.sleep(4)
        held = await site.fetch()  # would be the canary
        await asyncio.sleep(1.1)
        return [held, await site.fetch()]

    assert types(run_virtual(visit())) == ["CircuitOpen", "Page"]
