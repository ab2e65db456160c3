"""Fetching with a real Chromium: what a page's script receives is returned, and nothing is left behind."""

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from longstop.errors import (
    BodyTooLarge,
    BodyTruncated,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    PageNotFound,
    SourceChallenged,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, BrowserPolicy, Mode
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.telemetry.events.browsers import PageMeasured
from tests.browser.harness import BrowserHarness, browser_harness, leased, until
from tests.browser.site import Site
from tests.prerequisites import unavailable
from tests.servers import OK_BODY, fault_server

NAVIGATING = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, fresh_seconds=0)


async def promote(fetcher: BrowserFetcher, harness: BrowserHarness) -> None:
    """Fetch until the cheapest mode is reached."""
    while fetcher.mode is not Mode.HTTP:
        await fetcher.fetch(harness.state())


@pytest.mark.req("CAP-1")
async def test_what_a_pages_script_gets_is_brought(harness: BrowserHarness) -> None:
    page = await harness.fetcher(browsing=NAVIGATING).fetch(harness.state(match="11HD"))

    assert json.loads(page.body)["match"] == "11HD"
    assert (page.status, page.headers["content-type"]) == (200, "application/json")
    assert page.wire_bytes > 0


@pytest.mark.req("CAP-3")
@pytest.mark.parametrize(
    ("kind", "is_cdp"),
    [
        (BrowserKind.SHELL, True),
        (BrowserKind.HEADLESS, False),
        (BrowserKind.HEADED, False),
        (BrowserKind.HEADLESS, True),
    ],
)
async def test_every_kind_of_browser_brings_it(tmp_path: Path, site: Site, kind: BrowserKind, is_cdp: bool) -> None:
    if find_chromium(kind) is None:
        unavailable(f"there is no Chromium for {kind}")
    async with browser_harness(tmp_path, site, is_cdp=is_cdp) as harness:
        page = await harness.fetcher(kind=kind).fetch(harness.state())

        agent = site.headers["/api/state"]["user-agent"]
        assert json.loads(page.body)["match"] == "1"
        assert "Headless" not in agent + site.headers["/api/state"]["sec-ch-ua"]
        assert f"Chrome/{harness.engine().version.partition('.')[0]}.0.0.0" in agent


async def test_a_page_that_is_wanted_itself_is_brought(harness: BrowserHarness) -> None:
    request = FetchRequest(source="crex", url=harness.site.url("/static"))

    page = await harness.fetcher().fetch(request)

    assert page.body.decode() == "<!doctype html><p>grüße</p>"


@pytest.mark.req("CAP-2")
async def test_pictures_films_styles_ads_and_foreign_hosts_are_blocked_and_counted(harness: BrowserHarness) -> None:
    await harness.fetcher(browsing=NAVIGATING).fetch(harness.state())
    await asyncio.sleep(0.3)

    asked = set(harness.site.asked) - {"/favicon.ico"}
    measured = harness.events.of("page.measured")[0]
    assert asked == {"/page/polling", "/api/state"}
    assert set(harness.site.hosts) == {harness.site.authority}
    assert isinstance(measured, PageMeasured)
    assert measured.requests_blocked >= 4
    assert measured.captured >= 1
    assert 0 < measured.bytes_in_est < 5000


@pytest.mark.req("CAP-1")
@pytest.mark.parametrize(
    "page",
    [
        *("late", "dialogs", "popups", "download", "other", "foreign-call", "leak", "worker", "workers"),
        *("foreign-socket", "dynamic", "foretold"),
    ],
)
async def test_a_hostile_page_still_gives_its_answer(harness: BrowserHarness, page: str) -> None:
    fetcher = harness.fetcher(browsing=NAVIGATING)

    answers = [json.loads((await fetcher.fetch(harness.state(page, "7"))).body)["match"] for _ in range(2)]

    assert answers == ["7", "7"]
    assert not {"/popup", "/api/stolen", "/sw.js", "/worker.js", "/by-worker", "/push", "/ahead"} & set(
        harness.site.asked
    )
    assert (harness.site.baited, harness.site.asked["/rules.json"]) == (0, 0)
    assert set(harness.site.hosts) == {harness.site.authority}
    assert len(fetcher.sessions[0].tabs) == 1


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("never", FetchTimeout),
        ("spin", FetchTimeout),
        ("spin-at-once", FetchTimeout),
        ("challenge", SourceChallenged),
        ("403", SourceRefused),
        ("429", SourceRefused),
        ("404", PageNotFound),
        ("503", SourceFailed),
    ],
)
async def test_a_page_without_an_answer_is_one_typed_error_within_its_deadline(
    harness: BrowserHarness, page: str, expected: type[FetchError]
) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(page_seconds=5, fresh_seconds=0))
    await harness.start()
    await fetcher.fetch(harness.state())
    started = asyncio.get_running_loop().time()

    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(harness.state(page))

    assert type(caught.value) is expected
    assert asyncio.get_running_loop().time() - started < 5 + 1
    assert (await fetcher.fetch(harness.state())).status == 200


async def test_a_challenge_in_place_of_json_is_a_refusal(harness: BrowserHarness) -> None:
    harness.site.state = (200, "<!doctype html><title>Just a moment...</title><form id=challenge-form>")

    with pytest.raises(SourceChallenged):
        await harness.fetcher().fetch(harness.state())


@pytest.mark.parametrize("kind", [BrowserKind.SHELL, BrowserKind.HEADLESS])
async def test_webrtc_finds_no_way_out_even_where_no_script_of_ours_runs(
    harness: BrowserHarness, kind: BrowserKind
) -> None:
    if find_chromium(kind) is None:
        unavailable(f"there is no Chromium for {kind}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.settimeout(0.5)
        harness.site.udp_port = stun.getsockname()[1]
        async with leased(harness.pool.browser("plain", kind)) as engine:
            context = await engine.new_context()
            page = await context.new_page()
            await page.goto(harness.site.url("/page/rtc"))
            await until(lambda: harness.site.asked["/api/state"] == 1, 10)
            has_webrtc = await page.evaluate("typeof RTCPeerConnection")
            await context.close()

        assert has_webrtc == "function"
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(stun.recv, 100)


async def test_a_page_of_a_session_has_no_webrtc(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=NAVIGATING)

    await fetcher.fetch(harness.state("rtc"))

    assert await fetcher.sessions[0].tabs[0].cdp.send(
        "Runtime.evaluate", {"expression": "typeof RTCPeerConnection"}
    ) == {"result": {"type": "string", "value": "undefined"}}


async def test_a_redirect_to_a_host_that_is_not_listed_is_not_followed(harness: BrowserHarness) -> None:
    with pytest.raises(ForbiddenTarget, match="localhost"):
        await harness.fetcher().fetch(FetchRequest(source="crex", url=harness.site.url("/redirect")))

    assert set(harness.site.hosts) == {harness.site.authority}


async def test_a_host_that_is_not_listed_is_not_asked(harness: BrowserHarness) -> None:
    request = FetchRequest(
        source="crex", url=harness.site.url("/api/state"), page=f"http://localhost:{harness.site.port}/x"
    )

    with pytest.raises(ForbiddenTarget):
        await harness.fetcher().fetch(request)

    assert not harness.site.asked


@pytest.mark.parametrize("modes", [(), (Mode.PAGE,)])
async def test_a_body_above_the_cap_is_refused(harness: BrowserHarness, modes: tuple[Mode, ...]) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=modes, page_seconds=20))
    for _ in range(4):
        await fetcher.fetch(harness.state())

    with pytest.raises(BodyTooLarge):
        await fetcher.fetch(FetchRequest(source="crex", url=harness.site.url("/api/huge")))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/short", BodyTruncated),
        ("/chunked-without-end", BodyTruncated),
        ("/broken-gzip", BodyTruncated),
        ("/reset", SourceUnreachable),
        ("/no-answer", SourceUnreachable),
        ("/huge", BodyTooLarge),
    ],
)
async def test_an_answer_that_is_not_whole_is_an_error_at_once_and_the_next_one_is_good(
    harness: BrowserHarness, path: str, expected: type[FetchError]
) -> None:
    async with fault_server() as server:
        fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(), page_seconds=20), host=server.authority)

        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(FetchRequest(source="crex", url=server.url(path)))

        assert type(caught.value) is expected
        assert (await fetcher.fetch(FetchRequest(source="crex", url=server.url("/ok")))).body == OK_BODY
        await fetcher.aclose()


async def test_a_source_is_read_ever_more_cheaply_and_every_way_brings_the_same(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher()
    seen = []

    for _ in range(14):
        mode = fetcher.mode
        page = await fetcher.fetch(harness.state(match="9"))
        seen.append((mode, json.loads(page.body)["match"]))

    assert {match for _, match in seen} == {"9"}
    assert list(dict.fromkeys(mode for mode, _ in seen)) == [Mode.NAVIGATE, Mode.PASSIVE, Mode.PAGE, Mode.HTTP]
    assert harness.site.asked["/page/polling"] == 1
    assert len(harness.events.of("mode.changed")) == 3
    by_http = harness.site.headers["/api/state"]
    assert (by_http["cookie"], by_http["x-page"]) == ("visited=yes", "yes")


async def test_a_refusal_makes_the_way_dearer_again_and_starts_a_clean_session(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher()
    await promote(fetcher, harness)
    before = fetcher.sessions[0]
    harness.site.state = (403, "no")

    with pytest.raises(SourceRefused):
        await fetcher.fetch(harness.state())
    harness.site.state = None
    page = await fetcher.fetch(harness.state())

    assert page.status == 200
    assert fetcher.mode is Mode.PAGE
    assert fetcher.sessions[0] is not before


async def test_what_an_open_page_never_asks_for_is_asked_from_inside_it(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.PASSIVE,), page_seconds=20, passive_seconds=0.5))
    for _ in range(3):
        await fetcher.fetch(harness.state())
    aside = FetchRequest(source="crex", url=harness.site.url("/static"), page=harness.state().page)

    pages = [await fetcher.fetch(aside) for _ in range(2)]

    assert [page.status for page in pages] == [200, 200]
    assert harness.site.asked["/page/polling"] == 1


async def test_a_push_from_the_site_is_a_signal_and_nothing_more(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher()
    signals: list[str] = []
    fetcher.on_signal(signals.append)

    page = await fetcher.fetch(harness.state("socket"))
    await until(lambda: len(signals) >= 3, 5)

    assert json.loads(page.body)["match"] == "1"
    assert set(signals) == {harness.state("socket").page}
    assert harness.site.sockets == 1


async def test_a_cancelled_fetch_leaves_a_fetcher_that_works(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher()
    await fetcher.fetch(harness.state())
    for milliseconds in range(5, 300, 25):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(milliseconds / 1000):
                await fetcher.fetch(harness.state("never", str(milliseconds)))

    assert (await fetcher.fetch(harness.state())).status == 200
    await until(lambda: len(fetcher.sessions[0].engine.addresses) == len(fetcher.sessions[0].tabs), 5)
    assert harness.engine().contexts == 1


@pytest.mark.req("FR-007")
async def test_a_fetch_cancelled_while_its_session_opens_leaves_no_context(harness: BrowserHarness) -> None:
    await harness.start()
    fetcher = harness.fetcher()
    for milliseconds in range(1, 40, 4):
        with suppress(TimeoutError):
            async with asyncio.timeout(milliseconds / 1000):
                await fetcher.fetch(harness.state("never"))

    await until(lambda: harness.engine().contexts == len(fetcher.sessions), 5)
