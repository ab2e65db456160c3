"""Without a file descriptor no process can be looked at; what could not be closed is closed when there are some."""

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
from tests.browser.laboratory import Heard, Laboratory, descendants, nobody_left_since, until
from tests.browser.site import Site

read_all = processes.list_processes


class Scarcity:
    """Lets every look at the processes fail for want of a descriptor, while it lasts."""

    def __init__(self) -> None:
        #: How many looks still succeed; `None` while nothing lacks.
        self.looks_left: int | None = None
        #: Whether drivers are halted by the first look that fails, so that they do not end when asked.
        self.halts_drivers = False

    def list_processes(self) -> list[Process]:
        if self.looks_left is None:
            return read_all()
        self.looks_left -= 1
        if self.looks_left >= 0:
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
    """A pool after which nobody looks but the test: each look is counted."""
    heard, before = Heard(), descendants()
    plan = PoolPlan(registry=tmp_path / "browsers.json", node=f"node-{uuid4().hex[:12]}", environment=dict(os.environ))
    opened = Laboratory(BrowserPool(plan, Bus([heard])), site, heard)
    yield opened
    scarcity.looks_left = None
    await opened.aclose()
    await nobody_left_since(before)


@pytest.mark.req("FR-007", "NFR-009")
@pytest.mark.parametrize("halts_drivers", [False, True], ids=["willing", "halted"])
async def test_a_start_without_descriptors_is_a_lack_of_ours_and_its_driver_is_ended_when_they_are_back(
    lab: Laboratory, scarcity: Scarcity, halts_drivers: bool
) -> None:
    browser = lab.pool.browser("crex", BrowserKind.SHELL)
    scarcity.halts_drivers, scarcity.looks_left = halts_drivers, 1

    with pytest.raises(ResourcesExhausted):
        await lab.start()
    unclosed, left = browser.engines, drivers()
    scarcity.looks_left = None
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
    scarcity.halts_drivers, scarcity.looks_left = True, 0

    lab.pool.recycle("asked")
    await until(lambda: "poll.postponed" in lab.heard.names(), 15)
    unclosed = browser.engines
    scarcity.looks_left = None
    await lab.pool.check()
    await until(lambda: "browser.closed" in lab.heard.names(), 10)

    assert unclosed == (engine,)
    assert browser.engines == ()
    await nobody_left_since(before)


async def test_a_pool_without_descriptors_is_closed_as_far_as_it_goes(lab: Laboratory, scarcity: Scarcity) -> None:
    await lab.start()
    scarcity.looks_left = 0

    await lab.pool.aclose()

    assert lab.heard.names().count("poll.postponed") == 2  # the browser's processes, and the dead among them
    assert not [each for each in descendants() if each.state != "Z"]
