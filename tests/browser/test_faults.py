"""Processes of a working pool are killed and stopped: it notices, recovers, and leaves nothing behind."""

import asyncio
import os
import shutil
import signal
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from longstop.errors import BrowserLost, FetchError
from longstop.fetching.browser import closing
from longstop.fetching.browser import engine as engine_module
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.engine import Engine
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.process import processes
from longstop.process.processes import is_alive
from tests.browser.harness import BrowserHarness, browser_harness, crash, leased, of_type, until
from tests.browser.site import Site

#: Every fetch loads its page again, with a short deadline.
BROWSING = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=4, fresh_seconds=0, probe_seconds=1)
#: With time for a busy machine.
PATIENT = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, fresh_seconds=0)
#: From the fault to the next good response; the specification allows 30 s to detect and 10 s to recover.
RECOVERY_SECONDS = 15.0
#: One page of another source's browser, on a busy machine.
UNDISTURBED_SECONDS = 7.0


@pytest.fixture
async def harness(tmp_path: Path, site: Site) -> AsyncIterator[BrowserHarness]:
    async with browser_harness(tmp_path, site, hung_seconds=8) as opened:
        yield opened


async def recovered(fetcher: BrowserFetcher, harness: BrowserHarness) -> float:
    """Repeat a request, as polling does, until it succeeds; return how long that took."""
    started = monotonic()
    while True:
        try:
            async with asyncio.timeout(RECOVERY_SECONDS):
                await fetcher.fetch(harness.state())
            return monotonic() - started
        except FetchError:
            assert monotonic() - started < RECOVERY_SECONDS
            await asyncio.sleep(0.2)


@pytest.mark.req("FR-004", "FR-021")
@pytest.mark.parametrize("kind", ["browser", "driver", "renderer", "gpu-process", "network"])
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
async def test_a_process_that_is_killed_or_halted_costs_one_source_a_moment_and_no_other(
    harness: BrowserHarness, kind: str, blow: signal.Signals
) -> None:
    hit, spared = harness.fetcher("crex", browsing=BROWSING), harness.fetcher("other", browsing=PATIENT)
    await harness.start()
    await recovered(hit, harness)
    await spared.fetch(harness.state())
    other = harness.engine("other")
    victims = of_type(harness.engine("crex"), kind)
    assert victims
    before = len(harness.events.events)

    for victim in victims:
        os.kill(victim.pid, blow)
    going_on = asyncio.ensure_future(_read_on(spared, harness))
    noticed = asyncio.ensure_future(until(lambda: not any(is_alive(each.identity) for each in victims), 30))
    seconds = await recovered(hit, harness)
    await noticed
    going_on.cancel()
    reported = [event for event in harness.events.events[before:] if event.name in ("browser.failed", "page.discarded")]

    assert seconds < RECOVERY_SECONDS
    assert {getattr(event, "source", "") for event in reported} <= {"crex"}
    assert "browser.failed" in {event.name for event in reported} or kind not in ("browser", "driver")
    # The other source gets all of its responses, and none takes as long as the fault.
    with pytest.raises(asyncio.CancelledError):
        await going_on
    assert harness.engine("other") is other


async def _read_on(fetcher: BrowserFetcher, harness: BrowserHarness) -> None:
    """Fetch repeatedly; every response comes within half of the time that detecting a stopped browser takes."""
    while True:
        async with asyncio.timeout(UNDISTURBED_SECONDS):
            assert (await fetcher.fetch(harness.state())).status == 200


@pytest.mark.req("FR-004")
@pytest.mark.parametrize("kind", ["browser", "driver"])
async def test_a_halted_browser_is_noticed_without_requests(harness: BrowserHarness, kind: str) -> None:
    await harness.fetcher(browsing=PATIENT).fetch(harness.state())
    engine = harness.engine()

    os.kill(of_type(engine, kind)[0].pid, signal.SIGSTOP)
    seconds = await until(lambda: "browser.failed" in harness.events.names(), 30)
    await until(lambda: not engine.processes(), 10)

    assert seconds < 30


@pytest.mark.req("FR-004")
async def test_a_browser_that_runs_and_answers_nothing_is_given_up_in_time(
    harness: BrowserHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.fetcher(browsing=PATIENT).fetch(harness.state())
    engine = harness.engine()
    monkeypatch.setattr(engine, "_cdp", Mute())

    seconds = await until(lambda: "browser.failed" in harness.events.names(), 30)
    await until(lambda: not engine.processes(), 10)

    # It counts as hung after eight seconds here; the rest is for a busy machine.
    assert 3 < seconds < 8 + 6


class Mute:
    """A connection to browsers without any response, although no process was stopped or has exited."""

    def __init__(self) -> None:
        self.waiting = self.most_waiting = 0

    async def send(self, command: str) -> None:
        self.waiting += 1
        self.most_waiting = max(self.waiting, self.most_waiting)
        try:
            await asyncio.Event().wait()
        finally:
            self.waiting -= 1


async def test_generations_that_are_silent_are_asked_at_the_same_time(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser_harness(tmp_path, site, check_seconds=600, hung_seconds=9) as harness:
        browser, mute = harness.browser(), Mute()
        async with leased(browser):
            browser.recycle()
            async with leased(browser):
                for engine in browser.engines:
                    monkeypatch.setattr(engine, "_cdp", mute)

                is_well = await browser.check()

        assert not is_well
        assert mute.most_waiting == 2


async def test_many_timed_out_requests_diagnose_their_session_once(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, diagnoses = asyncio.Event(), 0

    async def verify(engine: Engine) -> bool:
        nonlocal diagnoses
        diagnoses += 1
        await release.wait()
        return True

    # No periodic check, which would replace the browser for its time-outs.
    async with browser_harness(tmp_path, site, check_seconds=600) as harness:
        fetcher = harness.fetcher(browsing=BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=3))
        await harness.start()
        monkeypatch.setattr(harness.browser(), "verify", verify)

        for _ in range(2):
            await asyncio.gather(*(fetcher.fetch(harness.state("never")) for _ in range(4)), return_exceptions=True)
        at_one_time = diagnoses
        release.set()
        await until(lambda: not any(tab.is_suspect for tab in fetcher.sessions[0].tabs), 10)
        with pytest.raises(FetchError):
            await fetcher.fetch(harness.state("never"))

        assert at_one_time == 1
        await until(lambda: diagnoses == 2, 10)


@pytest.mark.req("FR-007")
async def test_processes_are_not_listed_and_directories_not_cleared_on_the_loop(
    harness: BrowserHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_the_loop: list[str] = []

    def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                on_the_loop.append(name)
            return work(*arguments, **options)

        return call

    for module in (closing, engine_module, processes):
        monkeypatch.setattr(
            module, "list_processes", watched(f"{module.__name__}.list_processes", processes.list_processes)
        )
    monkeypatch.setattr(shutil, "rmtree", watched("rmtree", shutil.rmtree))

    await harness.fetcher(browsing=PATIENT).fetch(harness.state())
    await harness.pool.check()
    await harness.pool.sweep()
    harness.pool.recycle("asked")
    await until(lambda: "browser.closed" in harness.events.names(), 15)

    assert on_the_loop == []


async def test_a_waiting_request_fails_at_once_when_the_browser_dies(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BrowserPolicy(page_seconds=30))
    await fetcher.fetch(harness.state())
    waiting = asyncio.ensure_future(fetcher.fetch(harness.state("never")))
    await asyncio.sleep(0.5)
    started = monotonic()

    os.kill(of_type(harness.engine(), "browser")[0].pid, signal.SIGKILL)
    with pytest.raises(FetchError):
        await waiting

    assert monotonic() - started < 5


@pytest.mark.req("FR-007")
async def test_closing_with_everything_halted_takes_less_than_ten_seconds(tmp_path: Path, site: Site) -> None:
    async with browser_harness(tmp_path, site, check_seconds=600) as harness:
        await harness.fetcher(browsing=PATIENT).fetch(harness.state())
        for process in harness.engine().processes():
            os.kill(process.pid, signal.SIGSTOP)


async def test_a_page_that_crashes_costs_its_page_only(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher(browsing=BROWSING)
    await fetcher.fetch(harness.state())
    engine, session = harness.engine(), fetcher.sessions[0]

    crashing = asyncio.ensure_future(crash(fetcher, harness.state("never").page))
    with pytest.raises(BrowserLost, match="crashed"):
        await fetcher.fetch(harness.state("never"))
    await crashing
    await fetcher.fetch(harness.state())

    assert harness.engine() is engine
    assert fetcher.sessions[0] is session
