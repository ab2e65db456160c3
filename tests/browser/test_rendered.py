"""A page as rendered by its script: read from the open tab, or as a screenshot."""

import re
import struct
from time import monotonic

import msgspec
import pytest

from longstop.errors import BodyTooLarge, FetchError, FetchTimeout, PageNotFound, SourceChallenged
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from tests.browser.harness import BrowserHarness, until

PNG = b"\x89PNG\r\n\x1a\n"
PATIENT = BrowserPolicy(page_seconds=20, settle_seconds=5)


def rendered(harness: BrowserHarness, page: str = "drawing", match: str = "1") -> FetchRequest:
    """Return the request for a rendered page."""
    return msgspec.structs.replace(harness.state(page, match), is_rendered=True)


@pytest.mark.req("FR-019")
async def test_what_a_pages_script_has_drawn_is_brought_once_it_is_rendered(harness: BrowserHarness) -> None:
    page = await harness.fetcher(browsing=PATIENT).fetch(rendered(harness, match="11HD"))

    assert "<title>11HD</title>" in page.body.decode()
    assert "seen 1;" in page.body.decode()
    assert (page.status, page.headers["content-type"]) == (200, "text/html")


async def test_an_open_page_that_goes_on_drawing_is_not_loaded_again(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=msgspec.structs.replace(PATIENT, active_seconds=5))
    await fetcher.fetch(harness.state("drawing"))
    await until(lambda: harness.site.asked["/api/state"] >= 3, 5)

    page = await fetcher.fetch(rendered(harness))

    assert len(re.findall(r"seen \d+;", page.body.decode())) >= 2
    assert harness.site.asked["/page/drawing"] == 1


async def test_an_open_page_that_has_stopped_is_loaded_again(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=msgspec.structs.replace(PATIENT, active_seconds=0))

    for _ in range(2):
        await fetcher.fetch(rendered(harness, "never"))

    assert harness.site.asked["/page/never"] == 2


async def test_a_page_whose_script_is_never_answered_is_taken_as_it_stands(harness: BrowserHarness) -> None:
    browsing = BrowserPolicy(page_seconds=10, settle_seconds=1)
    await harness.start()

    started = monotonic()
    page = await harness.fetcher(browsing=browsing).fetch(rendered(harness, "unanswered"))
    seconds = monotonic() - started

    assert "not yet" in page.body.decode()
    assert seconds < 9


async def test_reading_what_is_drawn_says_nothing_about_the_other_ways(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=PATIENT)

    for _ in range(4):
        await fetcher.fetch(rendered(harness))

    assert fetcher.mode is Mode.NAVIGATE


@pytest.mark.parametrize(
    ("page", "expected"), [("challenge", SourceChallenged), ("404", PageNotFound), ("spin-at-once", FetchTimeout)]
)
async def test_a_page_that_draws_nothing_is_one_typed_error(
    harness: BrowserHarness, page: str, expected: type[FetchError]
) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(page_seconds=5, settle_seconds=1, probe_seconds=0.5))
    await harness.start()

    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(rendered(harness, page))

    assert type(caught.value) is expected
    assert (await fetcher.fetch(rendered(harness))).status == 200


@pytest.mark.parametrize("page", ["large", "huge", "huge-drawn"])
async def test_a_page_that_draws_or_gets_more_than_the_cap_is_too_large_and_not_our_loss(
    harness: BrowserHarness, page: str
) -> None:
    with pytest.raises(BodyTooLarge):
        await harness.fetcher(browsing=PATIENT).fetch(rendered(harness, page))


@pytest.mark.req("FR-019")
async def test_an_open_page_gives_its_picture_and_a_closed_one_gives_none(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher()
    await fetcher.fetch(harness.state())

    picture = await fetcher.screenshot(harness.state().page) or b""

    assert picture.startswith(PNG)
    assert struct.unpack(">II", picture[16:24]) == (1920, 1080)
    assert len(set(picture)) > 100, "it shows nothing"
    assert await fetcher.screenshot(harness.site.url("/page/another")) is None


async def test_a_page_that_spins_gives_no_screenshot_and_delays_no_other(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(page_seconds=20, screenshot_seconds=0.5))
    await fetcher.fetch(harness.state("spin-later"))
    await until(lambda: harness.site.asked["/spins"] == 1, 5)

    assert await fetcher.screenshot(harness.state("spin-later").page) is None
