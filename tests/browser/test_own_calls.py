"""Which requests a page sends by itself, and which are sent from inside it."""

import asyncio
import json
from time import monotonic

import pytest

from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from tests.browser.harness import BrowserHarness, until

#: Waiting for a request that the page never sends takes longer than any of these tests.
SILENCE_SECONDS = 20.0
CALLS = ("/api/state",)


def policy(mode: Mode, passive_seconds: float = SILENCE_SECONDS) -> BrowserPolicy:
    return BrowserPolicy(modes=(mode,), calls=CALLS, page_seconds=30, passive_seconds=passive_seconds)


async def listening(harness: BrowserHarness, page: str) -> BrowserFetcher:
    """Return a fetcher with an open page, in passive mode."""
    fetcher = harness.fetcher(browsing=policy(Mode.PASSIVE))
    while fetcher.mode is not Mode.PASSIVE:
        await fetcher.fetch(harness.state("polling", "9"))
    await fetcher.fetch(harness.state(page))
    return fetcher


@pytest.mark.req("CAP-1")
@pytest.mark.parametrize("mode", [Mode.NAVIGATE, Mode.PASSIVE])
async def test_what_a_page_does_not_ask_by_itself_is_asked_from_inside_it_without_a_wait(
    harness: BrowserHarness, mode: Mode
) -> None:
    fetcher = harness.fetcher(browsing=policy(mode))
    aside = FetchRequest(source="crex", url=harness.site.url("/static"), page=harness.state("plain").page)
    began = monotonic()

    pages = [await fetcher.fetch(aside) for _ in range(3)]

    assert {page.body.decode() for page in pages} == {"<!doctype html><p>grüße</p>"}
    assert monotonic() - began < SILENCE_SECONDS / 2


@pytest.mark.req("CAP-1")
async def test_a_post_is_never_answered_with_what_the_page_has_posted(harness: BrowserHarness) -> None:
    fetcher = await listening(harness, "posting")
    asked = FetchRequest(
        source="crex",
        url=harness.site.url("/api/state"),
        method="POST",
        body=b'{"match": "mine"}',
        page=harness.state().page,
    )

    page = await fetcher.fetch(asked)

    assert json.loads(page.body)["said"] == {"match": "mine"}


async def test_after_a_sign_of_change_a_page_that_asks_rarely_is_asked_at_once(harness: BrowserHarness) -> None:
    fetcher = await listening(harness, "socket")
    signals: list[str] = []
    fetcher.on_signal(signals.append)
    await until(lambda: bool(signals), 5)
    began = monotonic()

    page = await fetcher.fetch(harness.state("socket"))

    assert json.loads(page.body)["match"] == "1"
    assert monotonic() - began < SILENCE_SECONDS / 2


async def test_what_an_open_page_got_long_ago_is_not_news(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(
        browsing=BrowserPolicy(modes=(Mode.PASSIVE,), calls=CALLS, page_seconds=30, passive_seconds=1)
    )
    while fetcher.mode is not Mode.PASSIVE:
        await fetcher.fetch(harness.state("polling", "9"))
    await fetcher.fetch(harness.state("twice"))
    # The second response came after half a second, and is more than a second old now.
    await asyncio.sleep(2.5)
    asked = harness.site.asked["/api/state"]

    page = await fetcher.fetch(harness.state("twice"))

    assert json.loads(page.body)["number"] > asked


async def test_a_second_look_right_after_a_load_is_answered_and_does_not_wait_for_what_never_comes(
    harness: BrowserHarness,
) -> None:
    fetcher = harness.fetcher(browsing=policy(Mode.NAVIGATE))
    await fetcher.fetch(harness.state("plain"))
    began = monotonic()

    page = await fetcher.fetch(harness.state("plain"))

    assert json.loads(page.body)["match"] == "1"
    assert monotonic() - began < SILENCE_SECONDS / 2


async def test_cancelled_requests_delay_no_others(harness: BrowserHarness) -> None:
    fetcher = await listening(harness, "plain")
    tab = fetcher.sessions[0].tabs[0]
    hanging = FetchRequest(source="crex", url=harness.site.url("/hang"))

    cancelled = await asyncio.gather(
        *(asyncio.wait_for(tab.fetch(hanging), 1) for _ in range(8)), return_exceptions=True
    )
    async with asyncio.timeout(5):
        answer = await tab.fetch(harness.state())

    assert [type(each) for each in cancelled] == [TimeoutError] * 8
    assert json.loads(answer.body)["match"] == "1"
