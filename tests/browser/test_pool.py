"""The pool over many pages: bounded, measured, recycled, and closed completely."""

import asyncio
import json
from pathlib import Path
from time import monotonic

import pytest

from longstop.errors import BrowserLost, FetchError, FetchTimeout, ResourcesExhausted
from longstop.exhaustion import MachineResource
from longstop.fetching.browser import engine as engine_module
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.recycle_and_hang_policy import RecyclePolicy
from longstop.process.processes import browser_mark
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.browsers import BrowserRecycled
from tests.browser.harness import BrowserHarness, RecordedEvents, browser_harness, crash, descendants, until
from tests.browser.site import Site

PAGES = 100
AT_ONCE = 4
DEADLINE_SECONDS = 6.0
BROWSING = BrowserPolicy(
    modes=(Mode.NAVIGATE,), page_seconds=DEADLINE_SECONDS, fresh_seconds=0, max_tabs=8, probe_seconds=0.5
)


@pytest.mark.req("FR-007", "FR-021", "FLD-10", "US4.3")
async def test_a_hundred_pages_of_which_some_spin_crash_or_leak_leave_nothing(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BROWSING)
    await harness.start()
    await fetcher.fetch(harness.state(match="first"))
    before = _descriptors()
    waits: list[float] = []
    outcomes = {"good": 0, "bad": 0}
    crashing: list[asyncio.Task[None]] = []

    async def one(number: int) -> None:
        name = _page(number)
        request = harness.state("never" if name == "crash" else name, str(number))
        if name == "crash":
            crashing.append(asyncio.ensure_future(crash(fetcher, request.page)))
        started = monotonic()
        try:
            page = await fetcher.fetch(request)
            assert json.loads(page.body)["match"] == str(number)
            outcomes["good"] += 1
        except FetchError:
            outcomes["bad"] += 1
        waits.append(monotonic() - started)

    numbers = iter(range(PAGES))

    async def take_turns() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(take_turns() for _ in range(AT_ONCE)))
    await asyncio.gather(*crashing)
    session = fetcher.sessions[0]
    await until(lambda: len(session.engine.addresses) == len(session.tabs), 10)
    await harness.pool.check()
    report = harness.pool.stats()[0]
    usage = report.usage

    assert outcomes == {"good": 93, "bad": 7}
    assert max(waits) < DEADLINE_SECONDS + 2
    assert report.contexts == 1
    assert len(session.tabs) <= 8
    assert usage is not None
    assert usage.processes < 25
    assert (usage.rss_bytes or 0) > (usage.pss_bytes or 0) > 50_000_000
    assert _descriptors() - before < 20
    await fetcher.aclose()
    engine = harness.engine()
    await until(lambda: (engine.contexts, engine.addresses) == (0, ()), 10)


def _page(number: int) -> str:
    if number % 20 == 7:
        return "spin-at-once"
    if number in (30, 70):
        return "crash"
    return "leak" if number == 50 else "plain"


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_a_page_in_use_is_not_closed_to_make_room_for_another(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, max_tabs=2, max_loads=4))
    await harness.start()

    pages = await asyncio.gather(*(fetcher.fetch(harness.state("late", match)) for match in "abcd"))
    tabs_in_use = len(fetcher.sessions[0].tabs)
    await fetcher.fetch(harness.state("plain", "e"))

    assert [json.loads(page.body)["match"] for page in pages] == ["a", "b", "c", "d"]
    assert tabs_in_use == 4
    assert len(fetcher.sessions[0].tabs) == 2


async def test_a_page_that_is_taken_into_use_while_room_is_made_stays(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, max_tabs=2, max_loads=4))
    await harness.start()
    await asyncio.gather(*(fetcher.fetch(harness.state("late", match)) for match in "abcd"))
    session = fetcher.sessions[0]
    oldest, next_one, *_ = sorted(session.tabs, key=lambda tab: tab.used_at)

    opening = asyncio.ensure_future(session.tab(harness.site.url("/page/plain?match=e")))
    while oldest in session.tabs:  # noqa: ASYNC110 - it is taken out a few turns of the loop from now
        await asyncio.sleep(0)
    async with next_one.in_use():
        await opening

        assert next_one in session.tabs
        assert not next_one.lost


async def test_a_lost_page_may_be_closed_twice_at_once(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
    for match in "ab":
        await fetcher.fetch(harness.state("plain", match))
    session = fetcher.sessions[0]
    lost = session.tabs
    for tab in lost:
        tab.lose("its renderer has ended")

    opened, _ = await asyncio.gather(session.tab(harness.site.url("/page/plain?match=c")), session.discard(lost[1]))

    assert session.tabs == (opened,)


async def test_a_browser_of_our_own_that_does_not_show_its_mark_at_once_is_waited_for(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_at: list[float] = []

    def shy(pid: int) -> str | None:
        asked_at.append(monotonic())
        return browser_mark(pid) if monotonic() - asked_at[0] > 0.1 else None

    monkeypatch.setattr(engine_module, "browser_mark", shy)
    async with browser_harness(tmp_path, site, is_cdp=True) as harness:
        page = await harness.fetcher().fetch(harness.state("plain"))

        assert json.loads(page.body)["match"] == "1"
        assert harness.engine().root in {each.identity for each in descendants()}


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (RecyclePolicy(max_pages=3), "pages"),
        (RecyclePolicy(max_age_seconds=1.5), "age"),
        (RecyclePolicy(max_memory_bytes=1000), "memory"),
        (RecyclePolicy(max_processes=2), "processes"),
    ],
)
async def test_a_browser_at_its_limits_is_replaced_without_interrupting_requests(
    tmp_path: Path, site: Site, policy: RecyclePolicy, reason: str
) -> None:
    async with browser_harness(tmp_path, site, recycle=policy) as harness:
        fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
        for number in range(3):
            await fetcher.fetch(harness.state(match=str(number)))
        waiting = asyncio.ensure_future(fetcher.fetch(harness.state("late", "a")))
        await until(lambda: "browser.recycled" in harness.events.names(), 10)
        after = await fetcher.fetch(harness.state(match="b"))

        assert json.loads((await waiting).body)["match"] == "a"
        assert json.loads(after.body)["match"] == "b"
        event = harness.events.of("browser.recycled")[0]
        assert isinstance(event, BrowserRecycled)
        assert event.reason == reason
        assert event.rss_bytes
        await until(lambda: "browser.closed" in harness.events.names(), 10)


async def test_a_browser_whose_answers_never_come_in_time_is_replaced(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=1, fresh_seconds=0))
    await harness.start()

    for _ in range(4):
        with pytest.raises(FetchTimeout):
            await fetcher.fetch(harness.state("never"))
    await until(lambda: "browser.recycled" in harness.events.names(), 5)

    event = harness.events.of("browser.recycled")[0]
    assert isinstance(event, BrowserRecycled)
    assert event.reason == "timeouts"


@pytest.mark.req("FLD-10")
async def test_the_stats_show_what_was_measured_and_which_pages_are_open(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
    for match in ("a", "b"):
        await fetcher.fetch(harness.state("plain", match))
    await harness.pool.check()

    known = next(each for each in harness.pool.stats() if each.source == "crex")

    assert (known.contexts, known.pages, known.pages_served) == (1, 2, 2)
    assert known.addresses == (harness.site.url("/page/plain"),) * 2
    assert known.usage is not None
    assert 0 < known.usage.processes < 15
    assert (known.pss_per_page or 0) * 2 == pytest.approx(known.usage.pss_bytes, abs=2)


@pytest.mark.req("CAP-4")
async def test_a_browser_whose_hosts_change_is_replaced_by_one_that_finds_the_new_ones(harness: BrowserHarness) -> None:
    harness.fetcher(host="old.example")
    await harness.start()
    old = harness.engine()

    page = await harness.fetcher().fetch(harness.state())

    assert page.status == 200
    assert old is not harness.engine()
    assert harness.engine().plan.egress.hosts == (harness.site.authority,)
    harness.fetcher()
    assert harness.events.names().count("browser.recycled") == 1


@pytest.mark.req("CAP-3")
async def test_cookies_outlive_the_browser_that_got_them(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
    await fetcher.fetch(harness.state())

    harness.browser().recycle()
    await fetcher.fetch(harness.state("late"))

    assert harness.site.headers["/page/late"]["cookie"] == "visited=yes"


async def test_many_who_ask_at_once_share_one_browser_and_one_load(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))

    pages = await asyncio.gather(*(fetcher.fetch(harness.state()) for _ in range(8)))

    assert len(pages) == 8
    assert harness.site.asked["/page/polling"] == 1
    assert harness.events.names().count("browser.started") == 1


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/chromium"])
async def test_a_browser_that_does_not_start_is_reported_and_retried_with_back_off(
    tmp_path: Path, site: Site, program: str
) -> None:
    heard = RecordedEvents()
    plan = PoolPlan(registry=tmp_path / "browsers.json", node="n", executable=program)
    harness = BrowserHarness(BrowserPool(plan, Bus([heard])), site, heard)
    fetcher: BrowserFetcher = harness.fetcher()

    for _ in range(5):
        with pytest.raises(BrowserLost):
            await fetcher.fetch(harness.state())
    await harness.aclose()

    assert heard.names().count("browser.failed") == 1
    assert json.loads((tmp_path / "browsers.json").read_text() if (tmp_path / "browsers.json").exists() else "[]") == []


@pytest.mark.req("NFR-009")
async def test_a_browser_without_temporary_space_is_an_exhausted_resource_until_it_starts(
    tmp_path: Path, site: Site
) -> None:
    heard, program = RecordedEvents(), tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'cannot write a profile: ENOSPC' >&2\nexit 1\n")
    program.chmod(0o755)
    plan = PoolPlan(registry=tmp_path / "browsers.json", node="n", executable=str(program))
    harness = BrowserHarness(BrowserPool(plan, Bus([heard])), site, heard)
    fetcher: BrowserFetcher = harness.fetcher()

    exhausted = []
    for _ in range(3):  # the first is reported by the browser, the others during the back-off
        with pytest.raises(ResourcesExhausted) as raised:
            await fetcher.fetch(harness.state())
        exhausted.append(raised.value.resource)
    await harness.aclose()

    assert exhausted == [MachineResource.TEMPORARY_SPACE] * 3
    assert heard.names().count("browser.failed") == 1
