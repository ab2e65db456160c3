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
from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.pool import BrowserPool, PoolPlan
from longstop.process import processes
from longstop.process.processes import Process, command_line, is_alive
from longstop.telemetry.bus import Bus
from tests.browser.laboratory import Laboratory, RecordedEvents, descendants, nothing_left_since, until
from tests.browser.site import Site

read_all = processes.list_processes


class Scarcity:
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
def scarcity(monkeypatch: pytest.MonkeyPatch) -> Scarcity:
    scarce = Scarcity()
    for module in (engine_module, closing, processes):
        monkeypatch.setattr(module, "list_processes", scarce.list_processes)
    return scarce


@pytest.fixture
async def lab(tmp_path: Path, site: Site, scarcity: Scarcity) -> AsyncIterator[Laboratory]:
    """A pool without periodic checks, so that the test controls each listing."""
    heard, before = RecordedEvents(), descendants()
    plan = PoolPlan(registry=tmp_path / "browsers.json", node=f"node-{uuid4().hex[:12]}", environment=dict(os.environ))
    opened = Laboratory(BrowserPool(plan, Bus([heard])), site, heard)
    yield opened
    scarcity.listings_left = None
    await opened.aclose()
    await nothing_left_since(before)


@pytest.mark.req("FR-007", "NFR-009")
@pytest.mark.parametrize("halts_drivers", [False, True], ids=["willing", "halted"])
async def test_a_start_without_descriptors_is_postponed_and_its_driver_is_killed_when_they_are_back(
    lab: Laboratory, scarcity: Scarcity, halts_drivers: bool
) -> None:
    browser = lab.pool.browser("crex", BrowserKind.SHELL)
    scarcity.halts_drivers, scarcity.listings_left = halts_drivers, 1

    with pytest.raises(ResourcesExhausted):
        await lab.start()
    unclosed, left = browser.engines, drivers()
    scarcity.listings_left = None
    await lab.pool.check()

    await until(lambda: not browser.engines, 10)
    assert len(unclosed) == 1
    assert len(left) == halts_drivers
    assert not any(is_alive(each.identity) for each in left)


@pytest.mark.req("FR-007")
async def test_a_browser_that_could_not_be_closed_is_closed_when_descriptors_are_back(
    lab: Laboratory, scarcity: Scarcity
) -> None:
    before = descendants()
    await lab.start()
    engine, browser = lab.engine(), lab.pool.browser("crex", BrowserKind.SHELL)
    scarcity.halts_drivers, scarcity.listings_left = True, 0

    lab.pool.recycle("asked")
    await until(lambda: "poll.postponed" in lab.events.names(), 15)
    unclosed = browser.engines
    scarcity.listings_left = None
    await lab.pool.check()
    await until(lambda: "browser.closed" in lab.events.names(), 10)

    assert unclosed == (engine,)
    assert browser.engines == ()
    await nothing_left_since(before)


async def test_a_pool_without_descriptors_is_closed_as_far_as_it_goes(lab: Laboratory, scarcity: Scarcity) -> None:
    await lab.start()
    scarcity.listings_left = 0

    await lab.pool.aclose()

    assert lab.events.names().count("poll.postponed") == 2  # the browser's processes, and the dead among them
    assert not [each for each in descendants() if each.state != "Z"]
