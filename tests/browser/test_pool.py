"""The pool over many pages: bounded, measured, recycled, and closed completely."""

import asyncio
import json
from pathlib import Path
from time import monotonic

import pytest

from longstop.errors import BrowserLost, FetchError, FetchTimeout, ResourcesExhausted
from longstop.exhaustion import MachineResource
from longstop.fetching.browser import engine as engine_module
from longstop.fetching.browser.base import BrowserKind, BrowserPolicy, Mode
from longstop.fetching.browser.events import BrowserRecycled
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.pool import BrowserPool, PoolPlan
from longstop.fetching.browser.recycling import RecyclePolicy
from longstop.process.processes import browser_mark
from longstop.telemetry.bus import Bus
from tests.browser.laboratory import Laboratory, RecordedEvents, crash, descendants, laboratory, until
from tests.browser.site import Site

PAGES = 100
DEADLINE_SECONDS = 6.0
BROWSING = BrowserPolicy(
    modes=(Mode.NAVIGATE,), page_seconds=DEADLINE_SECONDS, fresh_seconds=0, max_tabs=8, probe_seconds=0.5
)


@pytest.mark.req("FR-007", "FR-021", "FLD-10", "US4.3")
async def test_a_hundred_pages_of_which_some_spin_crash_or_leak_leave_nothing(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BROWSING)
    await lab.start()
    await fetcher.fetch(lab.state(match="first"))
    before = _descriptors()
    waits: list[float] = []
    outcomes = {"good": 0, "bad": 0}
    crashing: list[asyncio.Task[None]] = []

    async def one(number: int) -> None:
        name = _page(number)
        request = lab.state("never" if name == "crash" else name, str(number))
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

    numbers = list(range(PAGES))
    while numbers:
        batch, numbers = numbers[:4], numbers[4:]
        await asyncio.gather(*map(one, batch))
    await asyncio.gather(*crashing)
    session = fetcher.sessions[0]
    await until(lambda: session.pages == len(session.tabs), 10)
    await lab.pool.check()
    report = lab.pool.stats()[0]
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
    engine = lab.engine()
    await until(lambda: (engine.contexts, engine.addresses) == (0, ()), 10)


def _page(number: int) -> str:
    if number % 20 == 7:
        return "spin-at-once"
    if number in (30, 70):
        return "crash"
    return "leak" if number == 50 else "plain"


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_a_page_in_use_is_not_closed_to_make_room_for_another(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, max_tabs=2, max_loads=4))
    await lab.start()

    pages = await asyncio.gather(*(fetcher.fetch(lab.state("late", match)) for match in "abcd"))
    tabs_in_use = len(fetcher.sessions[0].tabs)
    await fetcher.fetch(lab.state("plain", "e"))

    assert [json.loads(page.body)["match"] for page in pages] == ["a", "b", "c", "d"]
    assert tabs_in_use == 4
    assert len(fetcher.sessions[0].tabs) == 2


async def test_a_page_that_is_taken_into_use_while_room_is_made_stays(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, max_tabs=2, max_loads=4))
    await lab.start()
    await asyncio.gather(*(fetcher.fetch(lab.state("late", match)) for match in "abcd"))
    session = fetcher.sessions[0]
    oldest, next_one, *_ = sorted(session.tabs, key=lambda tab: tab.used_at)

    opening = asyncio.ensure_future(session.tab(lab.site.url("/page/plain?match=e")))
    while oldest in session.tabs:  # noqa: ASYNC110 - it is taken out a few turns of the loop from now
        await asyncio.sleep(0)
    async with next_one.in_use():
        await opening

        assert next_one in session.tabs
        assert not next_one.lost


async def test_a_lost_page_that_somebody_else_closes_meanwhile_troubles_nobody(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
    for match in "ab":
        await fetcher.fetch(lab.state("plain", match))
    session = fetcher.sessions[0]
    lost = session.tabs
    for tab in lost:
        tab.lose("its renderer has ended")

    opened, _ = await asyncio.gather(session.tab(lab.site.url("/page/plain?match=c")), session.discard(lost[1]))

    assert session.tabs == (opened,)


async def test_a_browser_of_our_own_that_does_not_show_its_mark_at_once_is_waited_for(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_at: list[float] = []

    def shy(pid: int) -> str | None:
        asked_at.append(monotonic())
        return browser_mark(pid) if monotonic() - asked_at[0] > 0.1 else None

    monkeypatch.setattr(engine_module, "browser_mark", shy)
    async with laboratory(tmp_path, site, is_cdp=True) as lab:
        page = await lab.fetcher().fetch(lab.state("plain"))

        assert json.loads(page.body)["match"] == "1"
        assert lab.engine().root in {each.identity for each in descendants()}


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (RecyclePolicy(max_pages=3), "pages"),
        (RecyclePolicy(max_age_seconds=1.5), "age"),
        (RecyclePolicy(max_memory_bytes=1000), "memory"),
        (RecyclePolicy(max_processes=2), "processes"),
    ],
)
async def test_a_browser_that_has_served_enough_is_replaced_and_nobody_is_interrupted(
    tmp_path: Path, site: Site, policy: RecyclePolicy, reason: str
) -> None:
    async with laboratory(tmp_path, site, recycle=policy) as lab:
        fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
        for number in range(3):
            await fetcher.fetch(lab.state(match=str(number)))
        waiting = asyncio.ensure_future(fetcher.fetch(lab.state("late", "a")))
        await until(lambda: "browser.recycled" in lab.events.names(), 10)
        after = await fetcher.fetch(lab.state(match="b"))

        assert json.loads((await waiting).body)["match"] == "a"
        assert json.loads(after.body)["match"] == "b"
        event = lab.events.of("browser.recycled")[0]
        assert isinstance(event, BrowserRecycled)
        assert event.reason == reason
        assert event.rss_bytes
        await until(lambda: "browser.closed" in lab.events.names(), 10)


async def test_a_browser_whose_answers_never_come_in_time_is_replaced(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=1, fresh_seconds=0))
    await lab.start()

    for _ in range(4):
        with pytest.raises(FetchTimeout):
            await fetcher.fetch(lab.state("never"))
    await until(lambda: "browser.recycled" in lab.events.names(), 5)

    event = lab.events.of("browser.recycled")[0]
    assert isinstance(event, BrowserRecycled)
    assert event.reason == "timeouts"


@pytest.mark.req("FLD-10")
async def test_the_census_tells_what_was_measured_and_who_lives_there(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
    for match in ("a", "b"):
        await fetcher.fetch(lab.state("plain", match))
    await lab.pool.check()

    known = next(each for each in lab.pool.stats() if each.source == "crex")

    assert (known.contexts, known.pages, known.pages_served) == (1, 2, 2)
    assert known.addresses == (lab.site.url("/page/plain"),) * 2
    assert known.usage is not None
    assert 0 < known.usage.processes < 15
    assert (known.pss_per_page or 0) * 2 == pytest.approx(known.usage.pss_bytes, abs=2)


@pytest.mark.req("CAP-3")
async def test_cookies_outlive_the_browser_that_got_them(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))
    await fetcher.fetch(lab.state())

    lab.pool.browser("crex", BrowserKind.SHELL).recycle()
    await fetcher.fetch(lab.state("late"))

    assert lab.site.headers["/page/late"]["cookie"] == "visited=yes"


async def test_many_who_ask_at_once_share_one_browser_and_one_load(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20))

    pages = await asyncio.gather(*(fetcher.fetch(lab.state()) for _ in range(8)))

    assert len(pages) == 8
    assert lab.site.asked["/page/polling"] == 1
    assert lab.events.names().count("browser.started") == 1


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/chromium"])
async def test_a_browser_that_does_not_start_is_told_and_tried_ever_more_rarely(
    tmp_path: Path, site: Site, program: str
) -> None:
    heard = RecordedEvents()
    plan = PoolPlan(registry=tmp_path / "browsers.json", node="n", executable=program)
    lab = Laboratory(BrowserPool(plan, Bus([heard])), site, heard)
    fetcher: BrowserFetcher = lab.fetcher()

    for _ in range(5):
        with pytest.raises(BrowserLost):
            await fetcher.fetch(lab.state())
    await lab.aclose()

    assert heard.names().count("browser.failed") == 1
    assert json.loads((tmp_path / "browsers.json").read_text() if (tmp_path / "browsers.json").exists() else "[]") == []


@pytest.mark.req("NFR-009")
async def test_a_browser_for_which_this_machine_has_no_room_is_a_lack_of_ours_until_it_starts(
    tmp_path: Path, site: Site
) -> None:
    heard, program = RecordedEvents(), tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'cannot write a profile: ENOSPC' >&2\nexit 1\n")
    program.chmod(0o755)
    plan = PoolPlan(registry=tmp_path / "browsers.json", node="n", executable=str(program))
    lab = Laboratory(BrowserPool(plan, Bus([heard])), site, heard)
    fetcher: BrowserFetcher = lab.fetcher()

    lacks = []
    for _ in range(3):  # the first is reported by the browser, the others during the back-off
        with pytest.raises(ResourcesExhausted) as raised:
            await fetcher.fetch(lab.state())
        lacks.append(raised.value.resource)
    await lab.aclose()

    assert lacks == [MachineResource.TEMPORARY_SPACE] * 3
    assert heard.names().count("browser.failed") == 1
