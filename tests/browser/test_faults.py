"""Processes are killed and halted under a working pool: it notices, goes on, and leaves nothing behind."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import pytest

from longstop.errors import BrowserLost, FetchError
from longstop.fetching.browser.base import Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.policy import BrowserPolicy
from longstop.fetching.browser.processes import is_alive
from tests.browser.laboratory import Laboratory, crash, laboratory, of_type, until
from tests.browser.site import Site

#: Every fetch loads its page anew, and waits no longer than a moment.
BROWSING = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=4, fresh_seconds=0, probe_seconds=1)
#: On a busy machine one page takes its time, and that is nobody's fault.
PATIENT = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, fresh_seconds=0)
#: From the fault to the next good answer; the specification allows 30 s to notice and 10 s to mend.
RECOVERY_SECONDS = 15.0


@pytest.fixture
async def lab(tmp_path: Path, site: Site) -> AsyncIterator[Laboratory]:
    async with laboratory(tmp_path, site, hung_seconds=8) as opened:
        yield opened


async def recovered(fetcher: BrowserFetcher, lab: Laboratory) -> float:
    """Ask again and again, as a watch does; return how long it took until an answer came."""
    started = monotonic()
    while True:
        try:
            async with asyncio.timeout(RECOVERY_SECONDS):
                await fetcher.fetch(lab.state())
            return monotonic() - started
        except FetchError:
            assert monotonic() - started < RECOVERY_SECONDS
            await asyncio.sleep(0.2)


@pytest.mark.req("FR-004", "FR-021")
@pytest.mark.parametrize("kind", ["browser", "driver", "renderer", "gpu-process", "network"])
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
async def test_a_process_that_is_killed_or_halted_costs_one_source_a_moment_and_no_other(
    lab: Laboratory, kind: str, blow: signal.Signals
) -> None:
    hit, spared = lab.fetcher("crex", browsing=BROWSING), lab.fetcher("other", browsing=PATIENT)
    await lab.start()
    await recovered(hit, lab)
    await spared.fetch(lab.state())
    other = lab.engine("other")
    victims = of_type(lab.engine("crex"), kind)
    assert victims

    for victim in victims:
        os.kill(victim.pid, blow)
    seconds, page = await asyncio.gather(recovered(hit, lab), spared.fetch(lab.state()))

    assert page.status == 200
    assert lab.engine("other") is other
    assert seconds < RECOVERY_SECONDS
    await until(lambda: not any(is_alive(victim.identity) for victim in victims), 10)


@pytest.mark.req("FR-004")
@pytest.mark.parametrize("kind", ["browser", "driver"])
async def test_a_halted_browser_is_noticed_though_nobody_asks_it(lab: Laboratory, kind: str) -> None:
    await lab.fetcher(browsing=BROWSING).fetch(lab.state())
    engine = lab.engine()

    os.kill(of_type(engine, kind)[0].pid, signal.SIGSTOP)
    seconds = await until(lambda: "browser.failed" in lab.heard.names(), 30)
    await until(lambda: not engine.processes(), 10)

    assert seconds < 30


@pytest.mark.req("FR-004")
async def test_a_browser_that_runs_and_answers_nothing_is_given_up_in_time(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lab.fetcher(browsing=PATIENT).fetch(lab.state())
    engine = lab.engine()
    monkeypatch.setattr(engine, "_cdp", Mute())

    seconds = await until(lambda: "browser.failed" in lab.heard.names(), 30)
    await until(lambda: not engine.processes(), 10)

    # It hangs after eight seconds of silence here; what is above is the machine's.
    assert 3 < seconds < 8 + 6


class Mute:
    """A line to a browser on which no answer ever comes: no process is halted, and none has ended."""

    async def send(self, command: str) -> None:
        await asyncio.Event().wait()


async def test_who_waits_when_the_browser_dies_is_told_at_once(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BrowserPolicy(page_seconds=30))
    await fetcher.fetch(lab.state())
    waiting = asyncio.ensure_future(fetcher.fetch(lab.state("never")))
    await asyncio.sleep(0.5)
    started = monotonic()

    os.kill(of_type(lab.engine(), "browser")[0].pid, signal.SIGKILL)
    with pytest.raises(FetchError):
        await waiting

    assert monotonic() - started < 5


@pytest.mark.req("FR-007")
async def test_closing_with_everything_halted_takes_less_than_ten_seconds(tmp_path: Path, site: Site) -> None:
    async with laboratory(tmp_path, site, check_seconds=600) as lab:
        await lab.fetcher(browsing=BROWSING).fetch(lab.state())
        for process in lab.engine().processes():
            os.kill(process.pid, signal.SIGSTOP)


async def test_a_page_that_crashes_costs_its_page_only(lab: Laboratory) -> None:
    fetcher = lab.fetcher(browsing=BROWSING)
    await fetcher.fetch(lab.state())
    engine, session = lab.engine(), fetcher.sessions[0]

    crashing = asyncio.ensure_future(crash(fetcher, lab.state("never").page))
    with pytest.raises(BrowserLost, match="crashed"):
        await fetcher.fetch(lab.state("never"))
    await crashing
    await fetcher.fetch(lab.state())

    assert lab.engine() is engine
    assert fetcher.sessions[0] is session
