"""A page that has been answered much is relieved by a new one, and whoever reads it notices nothing."""

import asyncio
import json

import pytest

from longstop.fetching.browser.base import Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.policy import BrowserPolicy
from tests.browser.laboratory import Laboratory, until

BY_ANSWERS = BrowserPolicy(modes=(Mode.NAVIGATE, Mode.PAGE), page_seconds=20, max_answers=20, relief_seconds=0)
BY_BYTES = BrowserPolicy(modes=(Mode.NAVIGATE, Mode.PAGE), page_seconds=20, max_answer_bytes=400_000, relief_seconds=0)


async def promoted(fetcher: BrowserFetcher, lab: Laboratory) -> None:
    while fetcher.mode is not Mode.PAGE:
        await fetcher.fetch(lab.state("polling"))


@pytest.mark.req("FR-021")
@pytest.mark.parametrize("browsing", [BY_ANSWERS, BY_BYTES], ids=["answers", "bytes"])
async def test_a_worn_page_is_relieved_and_no_look_is_lost(lab: Laboratory, browsing: BrowserPolicy) -> None:
    fetcher = lab.fetcher(browsing=browsing)
    lab.site.state = (200, json.dumps({"match": "1", "much": "x" * 20_000}))
    await promoted(fetcher, lab)
    first = fetcher.sessions[0].tabs[0]

    for _ in range(30):
        await asyncio.gather(*(fetcher.fetch(lab.state("polling")) for _ in range(3)))
    await until(lambda: lab.heard.names().count("page.relieved") >= 1, 15)

    session = fetcher.sessions[0]
    assert (await fetcher.fetch(lab.state("polling"))).status == 200
    assert first not in session.tabs
    assert fetcher.mode is Mode.PAGE
    await until(lambda: session.pages <= 2, 10)  # one, or another one in the making


async def test_who_still_waits_in_a_worn_page_gets_the_answer_and_then_it_is_closed(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BY_ANSWERS)
    await promoted(fetcher, lab)
    session = fetcher.sessions[0]
    old = session.tabs[0]
    waiting = asyncio.ensure_future(fetcher.fetch(lab.state("polling", "held")))
    await until(lambda: old.users == 1, 10)

    while old in session.tabs:
        await fetcher.fetch(lab.state("polling"))
    is_open = not old.lost
    lab.site.released.set()

    assert json.loads((await waiting).body)["match"] == "held"
    assert is_open
    await until(lambda: bool(old.lost), 10)


async def test_a_page_that_cannot_be_loaded_again_goes_on_as_it_is(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BY_ANSWERS)
    await promoted(fetcher, lab)
    old = fetcher.sessions[0].tabs[0]
    lab.site.refused.add("/page/polling")
    asked = lab.site.asked["/page/polling"]

    pages = [await fetcher.fetch(lab.state("polling")) for _ in range(40)]
    await until(lambda: lab.site.asked["/page/polling"] > asked, 15)

    assert all(page.status == 200 for page in pages)
    assert (await fetcher.fetch(lab.state("polling"))).status == 200
    assert fetcher.sessions[0].tabs == (old,)
    assert "page.relieved" not in lab.heard.names()
