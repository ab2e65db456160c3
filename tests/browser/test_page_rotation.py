"""A page that has received much is replaced by a new one, without interrupting requests."""

import asyncio
import json
import os
import signal

import pytest
from msgspec import structs

from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.tab import Tab
from longstop.telemetry.events.browsers import PageRotationFailed
from tests.browser.harness import BrowserHarness, of_type, until

BY_ANSWERS = BrowserPolicy(modes=(Mode.NAVIGATE, Mode.PAGE), page_seconds=20, max_responses=20, rotation_seconds=0)
BY_BYTES = BrowserPolicy(
    modes=(Mode.NAVIGATE, Mode.PAGE), page_seconds=20, max_response_bytes=400_000, rotation_seconds=0
)


PASSIVE = BrowserPolicy(
    modes=(Mode.NAVIGATE, Mode.PASSIVE), page_seconds=20, passive_seconds=3, max_responses=20, rotation_seconds=0
)


async def promoted(fetcher: BrowserFetcher, harness: BrowserHarness, mode: Mode = Mode.PAGE) -> None:
    while fetcher.mode is not mode:
        await fetcher.fetch(harness.state("polling"))


async def due_page(fetcher: BrowserFetcher) -> Tab:
    """Wait until the page is due to be replaced; the next request starts that."""
    tab = fetcher.sessions[0].tabs[0]
    await until(lambda: tab.interception.traffic.responses >= 20, 30)
    return tab


def rotation_failures(harness: BrowserHarness) -> list[str]:
    """Return why pages could not be replaced."""
    return [event.reason for event in harness.events.events if isinstance(event, PageRotationFailed)]


@pytest.mark.req("FR-021")
@pytest.mark.parametrize("browsing", [BY_ANSWERS, BY_BYTES], ids=["answers", "bytes"])
async def test_a_worn_page_is_relieved_and_no_look_is_lost(harness: BrowserHarness, browsing: BrowserPolicy) -> None:
    fetcher = harness.fetcher(browsing=browsing)
    harness.site.state = (200, json.dumps({"match": "1", "much": "x" * 20_000}))
    await promoted(fetcher, harness)
    first = fetcher.sessions[0].tabs[0]

    for _ in range(30):
        await asyncio.gather(*(fetcher.fetch(harness.state("polling")) for _ in range(3)))
    await until(lambda: harness.events.names().count("page.rotated") >= 1, 15)

    session = fetcher.sessions[0]
    assert (await fetcher.fetch(harness.state("polling"))).status == 200
    assert first not in session.tabs
    assert fetcher.mode is Mode.PAGE
    await until(lambda: len(session.engine.addresses) <= 2, 10)  # one, and possibly one that is being replaced


async def test_who_still_waits_in_a_worn_page_gets_the_answer_and_then_it_is_closed(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BY_ANSWERS)
    await promoted(fetcher, harness)
    session = fetcher.sessions[0]
    old = session.tabs[0]
    waiting = asyncio.ensure_future(fetcher.fetch(harness.state("polling", "held")))
    await until(lambda: old.users == 1, 10)

    while old in session.tabs:
        await fetcher.fetch(harness.state("polling"))
    is_open = not old.lost
    harness.site.released.set()

    assert json.loads((await waiting).body)["match"] == "held"
    assert is_open
    await until(lambda: bool(old.lost), 10)


@pytest.mark.req("FR-021")
async def test_a_request_that_hears_nothing_in_a_worn_page_is_sent_in_its_replacement(
    harness: BrowserHarness,
) -> None:
    fetcher = harness.fetcher(browsing=PASSIVE)
    await promoted(fetcher, harness, Mode.PASSIVE)
    old = await due_page(fetcher)
    unasked = structs.replace(harness.state("polling"), url=harness.site.url("/api/state?match=2"))

    waiting = asyncio.ensure_future(fetcher.fetch(unasked))
    await until(lambda: old not in fetcher.sessions[0].tabs, 10)
    is_waiting, is_open = not waiting.done(), not old.lost

    assert json.loads((await waiting).body)["match"] == "2"
    assert (is_waiting, is_open) == (True, True)
    await until(lambda: bool(old.lost), 10)
    assert fetcher.mode is Mode.PASSIVE


@pytest.mark.req("FR-021")
async def test_a_page_that_is_listened_to_is_relieved_and_no_look_is_lost(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=PASSIVE)
    await promoted(fetcher, harness, Mode.PASSIVE)
    old = await due_page(fetcher)

    pages = [await fetcher.fetch(harness.state("polling")) for _ in range(20)]

    assert {json.loads(page.body)["match"] for page in pages} == {"1"}
    assert old not in fetcher.sessions[0].tabs
    assert fetcher.mode is Mode.PASSIVE


@pytest.mark.req("CAP-4")
async def test_a_refusal_of_the_page_that_relieves_counts_as_any_other(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BY_ANSWERS)
    await promoted(fetcher, harness)
    await due_page(fetcher)
    session = fetcher.sessions[0]
    harness.site.refused.add("/page/polling")

    await fetcher.fetch(harness.state("polling"))
    await until(lambda: bool(rotation_failures(harness)), 15)

    assert rotation_failures(harness)[0].startswith("SourceRefused")
    assert session not in fetcher.sessions
    assert fetcher.mode is Mode.NAVIGATE


async def test_a_loss_reaches_the_page_that_is_being_made(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BY_ANSWERS)
    await promoted(fetcher, harness)
    await due_page(fetcher)
    session, asked = fetcher.sessions[0], harness.site.asked["/page/polling"]
    harness.site.stuck.add("/page/polling")

    await fetcher.fetch(harness.state("polling"))
    await until(lambda: harness.site.asked["/page/polling"] > asked, 10)
    session.lose("the browser was lost")

    await until(lambda: rotation_failures(harness) == ["BrowserLost: the browser was lost"], 10)


async def test_a_driver_that_dies_during_a_rotation_is_reported(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BY_ANSWERS)
    await promoted(fetcher, harness)
    await due_page(fetcher)
    asked = harness.site.asked["/page/polling"]
    harness.site.stuck.add("/page/polling")

    await fetcher.fetch(harness.state("polling"))
    await until(lambda: harness.site.asked["/page/polling"] > asked, 10)
    os.kill(of_type(harness.engine(), "driver")[0].pid, signal.SIGKILL)

    await until(lambda: bool(rotation_failures(harness)), 10)
    assert rotation_failures(harness)[0].startswith("BrowserLost")


async def test_a_page_that_cannot_be_loaded_again_goes_on_as_it_is(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=structs.replace(BY_ANSWERS, page_seconds=8))
    await harness.start()
    await promoted(fetcher, harness)
    old = fetcher.sessions[0].tabs[0]
    harness.site.stuck.add("/page/polling")

    pages = [await fetcher.fetch(harness.state("polling")) for _ in range(40)]
    await until(lambda: bool(rotation_failures(harness)), 25)

    assert all(page.status == 200 for page in pages)
    assert (await fetcher.fetch(harness.state("polling"))).status == 200
    assert fetcher.sessions[0].tabs == (old,)
    assert "page.rotated" not in harness.events.names()
    assert set(rotation_failures(harness)) == {"FetchTimeout: the new page did not load within 8 s"}
