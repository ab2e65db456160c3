"""The simulated pages in a real browser."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from playwright.async_api import Browser, Dialog, Page, Request, async_playwright

from longstop.clock import SystemClock
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.forward_proxy import running_forward_proxy
from longstop_lab.simulator.pages.crex_page import page_path as crex_path
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator
from longstop_lab.simulator.sites.sofascore.page import page_path as event_path

CHROMIUM = find_chromium(BrowserKind.SHELL)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WITHIN = 15.0
#: How much a page has leaked, in megabytes, and when, by its own clock.
LEAKED = "[leaked.length, performance.now() / 1000]"


OPTIONS = SimulatorOptions(sites="all", matches=20, kinds=("t20", "football"), seed=3, speed=20, poll_seconds=0.5)


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    async with running_simulator(OPTIONS) as running:
        yield running


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*ARGUMENTS])
        try:
            yield started
        finally:
            async with asyncio.timeout(10):
                await started.close()


@pytest.fixture
async def page(browser: Browser) -> Page:
    return await browser.new_page()


@pytest.fixture
def cricket(simulator: RunningSimulator) -> Board:
    return next(board for board in simulator.world.boards.values() if board.begun and not board.is_break)


@pytest.fixture
def football(simulator: RunningSimulator) -> FootballBoard:
    return next(board for board in simulator.football.boards.values() if board.status in ("1st half", "2nd half"))


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN):
        while not await is_so():  # noqa: ASYNC110 - what is awaited happens in the browser
            await asyncio.sleep(0.05)


async def texts(page: Page, selector: str) -> list[str]:
    return await page.locator(selector).all_text_contents()


def befall(simulator: RunningSimulator, kind: FaultKind, **more: Any) -> None:
    simulator.faults.add(Fault(kind=kind, **more), SystemClock().now())


async def test_the_crex_page_draws_the_state_under_the_names_that_others_read(
    simulator: RunningSimulator, cricket: Board, page: Page
) -> None:
    await page.goto(simulator.base_url + crex_path(cricket.game))

    async def is_drawn() -> bool:
        return bool((await texts(page, ".team-content .team-name"))[0]) and bool(await texts(page, ".over-ball"))

    await until(is_drawn)
    names = {side.name for side in cricket.game.sides}
    assert set(await texts(page, ".team-content .team-name")) == names
    assert "/" in (await texts(page, ".team-content .runs span:nth-child(1)"))[0]
    assert (await texts(page, ".team-content .runs span:nth-child(2)"))[0].startswith("(")
    assert (await texts(page, "div#slideOver .overs-slide span"))[0].endswith("Over:")
    assert (await texts(page, "div#slideOver .overs-slide .total"))[0].startswith("= ")
    assert len(await texts(page, "app-match-live-player .batsmen-partnership")) == 3
    assert (await texts(page, ".fav-odd .d-flex span"))[0] in names


async def test_names_come_late_into_the_storage_of_the_crex_page(
    simulator: RunningSimulator, cricket: Board, page: Page
) -> None:
    await page.goto(simulator.base_url + crex_path(cricket.game))

    async def players() -> int:
        keys = await page.evaluate("Object.keys(localStorage)")
        return sum(key.startswith("p_") for key in keys)

    async def some_are_there() -> bool:
        return await players() > 1

    async def most_are_there() -> bool:
        return await players() > 10

    await until(some_are_there)
    early = await players()
    await until(most_are_there)

    assert early == 7  # six of the match, and one who played long ago


async def test_the_event_page_asks_for_its_four_parts_again_and_again(
    simulator: RunningSimulator, football: FootballBoard, page: Page
) -> None:
    asked: Counter[str] = Counter()

    def note(request: Request) -> None:
        asked[request.url.rpartition("/")[2]] += request.resource_type == "fetch"

    page.on("request", note)
    await page.goto(simulator.sofascore_url + event_path(football.match))

    async def three_times() -> bool:
        return all(asked[part] >= 3 for part in (football.match.key, "incidents", "lineups", "statistics"))

    await until(three_times)
    assert (await texts(page, ".event-score"))[0] != "- : -"


async def test_the_push_channel_sends_changed_fields_and_drops(page: Page) -> None:
    frames: list[dict[str, Any]] = []
    closed = 0

    def listen(channel: Any) -> None:
        def count(_channel: Any) -> None:
            nonlocal closed
            closed += 1

        channel.on("framereceived", lambda frame: frames.append(msgspec.json.decode(frame)))
        channel.on("close", count)

    async def told_and_dropped() -> bool:
        return bool(frames) and closed > 0

    page.on("websocket", listen)
    async with running_simulator(replace(OPTIONS, speed=300, drop_seconds=1)) as simulator:
        match = next(board.match for board in simulator.football.boards.values() if board.status == "1st half")
        await page.goto(simulator.sofascore_url + event_path(match))
        await until(told_and_dropped)

    assert all(frame["id"] == int(match.key) for frame in frames)
    assert "changes.changeTimestamp" in frames[0]


async def test_every_kind_of_furniture_is_asked_for(
    simulator: RunningSimulator, football: FootballBoard, page: Page
) -> None:
    kinds: Counter[str] = Counter()

    def note(request: Request) -> None:
        kinds[request.resource_type] += 1

    page.on("request", note)
    await page.goto(simulator.sofascore_url + event_path(football.match))

    assert {"document", "stylesheet", "script", "image", "font", "fetch", "ping"} <= kinds.keys()
    assert kinds["document"] == 3  # itself and two frames with ads


async def test_the_font_is_one_that_a_browser_takes(simulator: RunningSimulator, page: Page) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    await page.goto(f"{simulator.base_url}/live-matches")

    loaded = await page.evaluate("document.fonts.load('16px Text').then(faces => faces.map(face => face.status))")

    assert (loaded, complaints) == (["loaded"], [])


async def answers(page: Page) -> bool:
    try:
        async with asyncio.timeout(1):
            return bool(await page.evaluate("1"))
    except TimeoutError:
        return False


async def test_a_page_that_spins_answers_nothing_any_more(simulator: RunningSimulator, page: Page) -> None:
    await page.goto(f"{simulator.base_url}/_hostile/spin?seconds=0.1", wait_until="commit")
    async with asyncio.timeout(WITHIN):
        while await answers(page):
            pass

    assert not await answers(page)


async def test_a_page_that_leaks_grows_by_ten_megabytes_a_second(simulator: RunningSimulator, page: Page) -> None:
    await page.goto(f"{simulator.base_url}/_hostile/leak")
    leaked, seconds = await page.evaluate(LEAKED)
    await asyncio.sleep(1)
    leaked_later, seconds_later = await page.evaluate(LEAKED)

    assert 3 <= (leaked_later - leaked) / (seconds_later - seconds) <= 12


async def test_a_page_that_crashes_takes_its_renderer_along(
    simulator: RunningSimulator, cricket: Board, page: Page
) -> None:
    befall(simulator, FaultKind.CRASH, path="/scoreboard/")

    async with asyncio.timeout(WITHIN):
        async with page.expect_event("crash"):
            await page.goto(simulator.base_url + crex_path(cricket.game), wait_until="commit")


async def test_dialogs_popups_and_downloads_come_unasked(simulator: RunningSimulator, browser: Browser) -> None:
    seen: list[str] = []

    async def dismiss(dialog: Dialog) -> None:
        seen.append(dialog.type)
        await dialog.dismiss()

    for name, wanted in (("dialogs", "prompt"), ("popups", "popup"), ("downloads", "download")):
        page = await browser.new_page()
        page.on("dialog", dismiss)
        page.on("popup", lambda _page: seen.append("popup"))
        page.on("download", lambda _download: seen.append("download"))
        await page.goto(f"{simulator.base_url}/_hostile/{name}")

        async def has_come(wanted: str = wanted) -> bool:
            return wanted in seen

        await until(has_come)
        await page.context.close()
    assert {"alert", "confirm", "prompt", "popup", "download"} == set(seen)


async def test_a_busy_page_is_never_idle(simulator: RunningSimulator, page: Page) -> None:
    await page.goto(f"{simulator.base_url}/_hostile/busy")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await page.wait_for_load_state("networkidle")


async def test_a_redesigned_page_still_works_under_other_names(
    simulator: RunningSimulator, cricket: Board, page: Page
) -> None:
    befall(simulator, FaultKind.REDESIGNED, path="/scoreboard/")
    await page.goto(simulator.base_url + crex_path(cricket.game))

    async def is_drawn() -> bool:
        return cricket.game.sides[0].name in await page.inner_text("main")

    await until(is_drawn)
    assert await texts(page, ".team-name, .over-ball, .result-box, app-match-live-player") == []


@pytest.mark.parametrize(("kind", "has_calls"), [(FaultKind.LATE_CALLS, True), (FaultKind.NO_CALLS, False)])
async def test_calls_come_late_or_never(
    simulator: RunningSimulator, cricket: Board, page: Page, kind: FaultKind, has_calls: bool
) -> None:
    befall(simulator, kind, path="/scoreboard/", seconds=1.0)
    begun = asyncio.get_running_loop().time()
    calls: list[float] = []

    def note(request: Request) -> None:
        if request.resource_type == "fetch":
            calls.append(asyncio.get_running_loop().time() - begun)

    page.on("request", note)
    await page.goto(simulator.base_url + crex_path(cricket.game))
    await asyncio.sleep(2.5)

    assert bool(calls) is has_calls
    assert all(seconds >= 1.0 for seconds in calls)


async def test_the_calls_of_a_page_may_be_answered_about_another_match(
    simulator: RunningSimulator, football: FootballBoard, page: Page
) -> None:
    befall(simulator, FaultKind.OTHER_MATCH, path="/api/")

    async with page.expect_response(f"**/api/v1/event/{football.match.key}") as answered:
        await page.goto(simulator.sofascore_url + event_path(football.match))

    other = (await (await answered.value).json())["event"]["id"]
    assert str(other) in simulator.football.boards
    assert str(other) != football.match.key


async def test_a_browser_goes_through_the_proxy_and_is_counted_by_its_session(
    simulator: RunningSimulator, football: FootballBoard, browser: Browser
) -> None:
    place = ("127.0.0.1", simulator.sofascore_port)
    async with running_forward_proxy(names={"sofascore.test:80": place}) as proxy:
        for session in ("one", "two"):
            login = {"server": proxy.url, "username": "user", "password": f"pw_session-{session}"}
            context = await browser.new_context(proxy=login)  # type: ignore[arg-type]
            page = await context.new_page()
            await page.goto(f"http://sofascore.test{event_path(football.match)}")
            await context.close()

        counted = {who: usage.requests for who, usage in proxy.proxy.usage.items() if usage.requests}

    assert counted.keys() == {"user:pw_session-one", "user:pw_session-two"}
    assert min(counted.values()) > 10
