"""Out of file descriptors, processes cannot be listed; what could not be closed is closed when there are some again."""

import errno
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from longstop.errors import ResourcesExhausted
from longstop.fetching.browser import closing
from longstop.fetching.browser import engine as engine_module
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.process import processes
from longstop.process.processes import Process, command_line, is_alive
from longstop.telemetry.bus import Bus
from tests.browser.harness import BrowserHarness, RecordedEvents, descendants, nothing_left_since, until
from tests.browser.site import Site

read_all = processes.list_processes


class DescriptorShortage:
    """Makes every listing of processes fail, as if the machine were out of descriptors."""

    def __init__(self) -> None:
        #: How many listings still succeed; `None` for all.
        self.listings_left: int | None = None
        #: Whether drivers are stopped by the first failing listing, so that they do not exit when asked.
        self.halts_drivers = False

    def list_processes(self) -> list[Process]:
        if self.listings_left is None:
            return read_all()
        self.listings_left -= 1
        if self.listings_left >= 0:
            return read_all()
        for driver in drivers() if self.halts_drivers else ():
            os.kill(driver.pid, signal.SIGSTOP)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def drivers() -> list[Process]:
    return [each for each in read_all() if each.parent == os.getpid() and "run-driver" in command_line(each.pid)]


@pytest.fixture
def shortage(monkeypatch: pytest.MonkeyPatch) -> DescriptorShortage:
    shortage_ = DescriptorShortage()
    for module in (engine_module, closing, processes):
        monkeypatch.setattr(module, "list_processes", shortage_.list_processes)
    return shortage_


@pytest.fixture
async def harness(tmp_path: Path, site: Site, shortage: DescriptorShortage) -> AsyncIterator[BrowserHarness]:
    """A pool without periodic checks, so that the test controls each listing."""
    heard, before = RecordedEvents(), descendants()
    plan = PoolPlan(registry=tmp_path / "browsers.json", node=f"node-{uuid4().hex[:12]}", environment=dict(os.environ))
    opened = BrowserHarness(BrowserPool(plan, Bus([heard])), site, heard)
    yield opened
    shortage.listings_left = None
    await opened.aclose()
    await nothing_left_since(before)


@pytest.mark.req("FR-007", "NFR-009")
@pytest.mark.parametrize("halts_drivers", [False, True], ids=["willing", "halted"])
async def test_a_start_without_descriptors_is_postponed_and_its_driver_is_killed_when_they_are_back(
    harness: BrowserHarness, shortage: DescriptorShortage, halts_drivers: bool
) -> None:
    browser = harness.browser()
    shortage.halts_drivers, shortage.listings_left = halts_drivers, 1

    with pytest.raises(ResourcesExhausted):
        await harness.start()
    unclosed, left = browser.engines, drivers()
    shortage.listings_left = None
    await harness.pool.check()

    await until(lambda: not browser.engines, 10)
    assert len(unclosed) == 1
    assert len(left) == halts_drivers
    assert not any(is_alive(each.identity) for each in left)


@pytest.mark.req("FR-007")
async def test_a_browser_that_could_not_be_closed_is_closed_when_descriptors_are_back(
    harness: BrowserHarness, shortage: DescriptorShortage
) -> None:
    before = descendants()
    await harness.start()
    engine, browser = harness.engine(), harness.browser()
    shortage.halts_drivers, shortage.listings_left = True, 0

    harness.pool.recycle("asked")
    await until(lambda: "poll.postponed" in harness.events.names(), 15)
    unclosed = browser.engines
    shortage.listings_left = None
    await harness.pool.check()
    await until(lambda: "browser.closed" in harness.events.names(), 10)

    assert unclosed == (engine,)
    assert browser.engines == ()
    await nothing_left_since(before)


async def test_a_pool_without_descriptors_is_closed_as_far_as_it_goes(
    harness: BrowserHarness, shortage: DescriptorShortage
) -> None:
    await harness.start()
    shortage.listings_left = 0

    await harness.pool.aclose()

    assert harness.events.names().count("poll.postponed") == 2  # the browser's processes, and the dead among them
    assert not [each for each in descendants() if each.state != "Z"]
