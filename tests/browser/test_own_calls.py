"""Which requests a page sends by itself, and which are sent from inside it."""

import asyncio
import json
from time import monotonic

import pytest

from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.base import BrowserPolicy, Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from tests.browser.laboratory import Laboratory, until

#: Waiting for a request that the page never sends takes longer than any of these tests.
SILENCE_SECONDS = 20.0
CALLS = ("/api/state",)


def policy(mode: Mode, passive_seconds: float = SILENCE_SECONDS) -> BrowserPolicy:
    return BrowserPolicy(modes=(mode,), calls=CALLS, page_seconds=30, passive_seconds=passive_seconds)


async def listening(lab: Laboratory, page: str) -> BrowserFetcher:
    """Return a fetcher with an open page, in passive mode."""
    fetcher = lab.fetcher(browsing=policy(Mode.PASSIVE))
    while fetcher.mode is not Mode.PASSIVE:
        await fetcher.fetch(lab.state("polling", "9"))
    await fetcher.fetch(lab.state(page))
    return fetcher


@pytest.mark.req("CAP-1")
@pytest.mark.parametrize("mode", [Mode.NAVIGATE, Mode.PASSIVE])
async def test_what_a_page_does_not_ask_by_itself_is_asked_from_inside_it_without_a_wait(
    lab: Laboratory, mode: Mode
) -> None:
    fetcher = lab.fetcher(browsing=policy(mode))
    aside = FetchRequest(source="crex", url=lab.site.url("/static"), page=lab.state("plain").page)
    began = monotonic()

    pages = [await fetcher.fetch(aside) for _ in range(3)]

    assert {page.body.decode() for page in pages} == {"<!doctype html><p>grüße</p>"}
    assert monotonic() - began < SILENCE_SECONDS / 2


@pytest.mark.req("CAP-1")
async def test_a_post_is_never_answered_with_what_the_page_has_posted(lab: Laboratory) -> None:
    fetcher = await listening(lab, "posting")
    asked = FetchRequest(
        source="crex", url=lab.site.url("/api/state"), method="POST", body=b'{"match": "mine"}', page=lab.state().page
    )

    page = await fetcher.fetch(asked)

    assert json.loads(page.body)["said"] == {"match": "mine"}


async def test_after_a_sign_of_change_a_page_that_asks_rarely_is_asked_at_once(lab: Laboratory) -> None:
    fetcher = await listening(lab, "socket")
    signals: list[str] = []
    fetcher.on_signal = signals.append
    await until(lambda: bool(signals), 5)
    began = monotonic()

    page = await fetcher.fetch(lab.state("socket"))

    assert json.loads(page.body)["match"] == "1"
    assert monotonic() - began < SILENCE_SECONDS / 2


async def test_what_an_open_page_got_long_ago_is_not_news(lab: Laboratory) -> None:
    fetcher = lab.fetcher(
        browsing=BrowserPolicy(modes=(Mode.PASSIVE,), calls=CALLS, page_seconds=30, passive_seconds=1)
    )
    while fetcher.mode is not Mode.PASSIVE:
        await fetcher.fetch(lab.state("polling", "9"))
    await fetcher.fetch(lab.state("twice"))
    # The second response came after half a second, and is more than a second old now.
    await asyncio.sleep(2.5)
    asked = lab.site.asked["/api/state"]

    page = await fetcher.fetch(lab.state("twice"))

    assert json.loads(page.body)["number"] > asked


async def test_a_second_look_right_after_a_load_is_answered_and_does_not_wait_for_what_never_comes(
    lab: Laboratory,
) -> None:
    fetcher = lab.fetcher(browsing=policy(Mode.NAVIGATE))
    await fetcher.fetch(lab.state("plain"))
    began = monotonic()

    page = await fetcher.fetch(lab.state("plain"))

    assert json.loads(page.body)["match"] == "1"
    assert monotonic() - began < SILENCE_SECONDS / 2


async def test_questions_that_were_cancelled_hold_nobody_up(lab: Laboratory) -> None:
    fetcher = await listening(lab, "plain")
    tab = fetcher.sessions[0].tabs[0]
    hanging = FetchRequest(source="crex", url=lab.site.url("/hang"))

    cancelled = await asyncio.gather(
        *(asyncio.wait_for(tab.fetch(hanging), 1) for _ in range(8)), return_exceptions=True
    )
    async with asyncio.timeout(5):
        answer = await tab.fetch(lab.state())

    assert [type(each) for each in cancelled] == [TimeoutError] * 8
    assert json.loads(answer.body)["match"] == "1"
