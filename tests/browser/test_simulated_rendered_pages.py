"""The simulator's match pages, rendered by a real Chromium and read as a fallback."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import pytest

from longstop.clock import SystemClock
from longstop.errors import LayoutChanged
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http import HttpFetcher
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import PollClient, SourceClient
from longstop.model.match import MatchRef
from longstop.model.source_queries_and_answers import LIVE, RENDERED, Query
from longstop.resilience.breaker import source_policy
from longstop.sources.base import Source
from longstop.sources.crex.source import CrexSource
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.base import DOM_ONLY
from longstop.sports.cricket.model import Board, DomBoard
from longstop.sports.cricket.sport import Cricket
from longstop.sports.football.model import FootballBoard, FootballDomBoard
from longstop.sports.football.sport import Football
from longstop.storage.error_pages_and_screenshots import ErrorPages, ErrorScreenshots
from longstop.watching.screenshots import Screenshots
from longstop.watching.source_and_layout_breakers import SourceAdmission
from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator
from tests.browser.harness import BrowserHarness, until
from tests.builders import CREX_CONFIG, NOW
from tests.football_site import SOFASCORE_CONFIG
from tests.live import poll, take
from tests.memory import MemoryStore

#: The simulated time is stopped: a rendered page can be compared with data requested a moment later.
OPTIONS = SimulatorOptions(sites="all", matches=20, kinds=("t20", "football"), seed=3, speed=0.001, poll_seconds=0.5)
#: Each poll waits for the page's own requests, or a few seconds if there are none.
BROWSING = BrowserPolicy(modes=(Mode.NAVIGATE, Mode.PAGE), page_seconds=20, settle_seconds=3)
DESIGNS = [None, FaultKind.REDESIGNED]

Shown = TypeVar("Shown")


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    async with running_simulator(OPTIONS) as running:
        yield running


def befall(simulator: RunningSimulator, kind: FaultKind | None, **more: Any) -> None:
    if kind is not None:
        simulator.faults.add(Fault(kind=kind, **more), SystemClock().now())


def source_of(simulator: RunningSimulator, name: str) -> Source:
    if name == "crex":
        url = simulator.base_url
        every = {f"{part}_url": url for part in ("site", "api", "content", "names")}
        return CrexSource(msgspec.structs.replace(CREX_CONFIG, metadata=every))
    url = simulator.sofascore_url
    return SofascoreSource(msgspec.structs.replace(SOFASCORE_CONFIG, metadata={"site_url": url, "api_url": url}))


def match_in_play(simulator: RunningSimulator, name: str) -> str:
    if name == "crex":
        boards = simulator.world.boards.items()
        return next(key for key, board in boards if board.begun and not board.is_break)
    football = simulator.football.boards.items()
    return next(key for key, shown in football if shown.status in ("1st half", "2nd half"))


def host_of(simulator: RunningSimulator, name: str) -> str:
    return urlsplit(simulator.base_url if name == "crex" else simulator.sofascore_url).netloc


def by_browser(harness: BrowserHarness, simulator: RunningSimulator, name: str) -> SourceClient:
    fetcher = harness.fetcher(name, browsing=BROWSING, host=host_of(simulator, name))
    return SourceClient(source_of(simulator, name), fetcher, is_browser_based=True)


def by_http(simulator: RunningSimulator, name: str) -> SourceClient:
    policy = FetchPolicy(hosts=(host_of(simulator, name),), allow_private_addresses=True)
    return SourceClient(source_of(simulator, name), HttpFetcher(policy, SystemClock()))


async def live(client: SourceClient, key: str, kind: type[Shown]) -> Shown:
    return await PollClient(client).ask(Query(resource=LIVE, source_id=key), kind)


async def rendered(client: SourceClient, key: str, kind: type[Shown]) -> Shown:
    return await PollClient(client).ask(Query(resource=RENDERED, source_id=key), kind)


@pytest.mark.req("FR-019")
@pytest.mark.parametrize("design", DESIGNS)
async def test_the_crex_page_shows_what_its_state_says(
    harness: BrowserHarness, simulator: RunningSimulator, design: FaultKind | None
) -> None:
    befall(simulator, design)
    key = match_in_play(simulator, "crex")
    client = by_browser(harness, simulator, "crex")

    drawn = await rendered(client, key, DomBoard)

    by_api = await live(by_http(simulator, "crex"), key, Board)
    assert (drawn.first, drawn.second, drawn.status) == (by_api.first, by_api.second, by_api.status)
    assert any(drawn.selectors.values()) is (design is not None)


@pytest.mark.req("FR-019")
@pytest.mark.parametrize("design", DESIGNS)
async def test_the_sofascore_page_shows_what_its_event_says(
    harness: BrowserHarness, simulator: RunningSimulator, design: FaultKind | None
) -> None:
    befall(simulator, design)
    key = match_in_play(simulator, "sofascore")
    client = by_browser(harness, simulator, "sofascore")

    drawn = await rendered(client, key, FootballDomBoard)

    by_api = await live(by_http(simulator, "sofascore"), key, FootballBoard)
    assert (drawn.score, drawn.status, drawn.headline) == (by_api.score, by_api.status, by_api.headline)
    assert (drawn.home.name, drawn.away.name) == (by_api.home.name, by_api.away.name)
    assert any(drawn.selectors.values()) is (design is not None)


@pytest.mark.parametrize(("name", "kind"), [("crex", DomBoard), ("sofascore", FootballDomBoard)])
async def test_a_page_that_makes_no_calls_draws_nothing_and_is_not_believed(
    harness: BrowserHarness, simulator: RunningSimulator, name: str, kind: type[DomBoard | FootballDomBoard]
) -> None:
    befall(simulator, FaultKind.NO_CALLS)

    with pytest.raises(LayoutChanged):
        await rendered(by_browser(harness, simulator, name), match_in_play(simulator, name), kind)


@pytest.mark.req("FR-019")
async def test_a_football_match_is_read_from_its_rendered_page_while_its_event_has_another_layout(
    harness: BrowserHarness, simulator: RunningSimulator
) -> None:
    key, store = match_in_play(simulator, "sofascore"), MemoryStore()
    client = by_browser(harness, simulator, "sofascore")
    pipeline = Pipeline(
        Football(), client=client, store=store, bus=harness.bus, clock=SystemClock(), scraper_id="node-a"
    )
    row = await store.register(MatchRef("sofascore", key), "a match", None, NOW, sport="football")
    good = await poll(pipeline, await take(store, row.match_id, "node-a"))
    events = store.history.get(row.match_id, [])
    befall(simulator, FaultKind.RENAMED, path="/api/v1/event", field="startTimestamp")

    only_drawn = await poll(pipeline, good.state)

    assert store.findings[row.match_id] == (DOM_ONLY,)
    assert store.history.get(row.match_id, []) == events
    assert isinstance(good.state.board, FootballBoard)
    assert isinstance(only_drawn.state.board, FootballBoard)
    assert only_drawn.state.board.score == good.state.board.score
    simulator.faults.clear()
    assert (await poll(pipeline, only_drawn.state)).state.findings == ()


@pytest.mark.req("FR-019")
async def test_a_cricket_match_is_read_from_its_rendered_page_while_its_event_list_has_another_layout(
    harness: BrowserHarness, simulator: RunningSimulator
) -> None:
    key, store = match_in_play(simulator, "crex"), MemoryStore()
    client = by_browser(harness, simulator, "crex")
    pipeline = Pipeline(
        Cricket(), client=client, store=store, bus=harness.bus, clock=SystemClock(), scraper_id="node-a"
    )
    row = await store.register(MatchRef("crex", key), "a match", None, NOW, sport="cricket")
    good = await poll(pipeline, await take(store, row.match_id, "node-a"))
    events = list(store.history[row.match_id])
    befall(simulator, FaultKind.RENAMED, path="/commentary", field="on")

    only_drawn = await poll(pipeline, good.state)

    assert store.findings[row.match_id] == (DOM_ONLY,)
    assert store.history[row.match_id] == events
    assert isinstance(good.state.board, Board)
    assert isinstance(only_drawn.state.board, Board)
    assert only_drawn.state.board.first == good.state.board.first
    assert only_drawn.state.board.second == good.state.board.second


@pytest.mark.req("FR-019")
async def test_a_page_whose_data_cannot_be_read_is_kept_with_its_picture(
    harness: BrowserHarness, simulator: RunningSimulator, tmp_path: Path
) -> None:
    befall(simulator, FaultKind.RENAMED, path="/api/v1/event", field="startTimestamp")
    fetcher = harness.fetcher("sofascore", browsing=BROWSING, host=host_of(simulator, "sofascore"))
    storage, clock = tmp_path / "storage", SystemClock()
    store = ErrorScreenshots(storage / "errors", "sofascore")
    screenshots = Screenshots("sofascore", take=fetcher.screenshot, store=store, clock=clock, bus=harness.bus)
    admission = SourceAdmission(
        "sofascore",
        policy=source_policy(),
        probe_seconds=300.0,
        pages=ErrorPages(storage / "error_pages"),
        clock=clock,
        bus=harness.bus,
        request_screenshot=screenshots.request,
    )

    client = SourceClient(source_of(simulator, "sofascore"), fetcher, admission)

    with pytest.raises(LayoutChanged):
        await live(client, match_in_play(simulator, "sofascore"), FootballBoard)
    await until(lambda: "screenshot.saved" in harness.events.names(), 10)

    [picture] = (storage / "errors" / "sofascore").iterdir()
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")
    assert len(list((storage / "error_pages").iterdir())) == 1
    await screenshots.aclose()
