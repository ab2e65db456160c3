"""Screenshots of unparsable pages: taken in the background, one at a time; failures are ignored."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from longstop.errors import BrowserLost
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import PollPostponed, ScreenshotSaved, TaskFailed
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.screenshots import SCREENSHOT_SECONDS, Screenshots
from tests.memory import MemorySink

PNG = b"\x89PNG picture"


class Store:
    def __init__(self, path: str | None = "storage/errors/crex/1.png") -> None:
        self.path = path
        self.kept: list[tuple[str, bytes]] = []

    def keep(self, name: str, picture: bytes, now: datetime) -> str | None:
        self.kept.append((name, picture))
        return self.path


class Setup:
    """Screenshots with a store, and the events they emit."""

    def __init__(self, take: Callable[[str], Awaitable[bytes | None]], store: Store | None = None) -> None:
        self.store = store or Store()
        self.sink = MemorySink()
        self.screenshots = Screenshots("crex", take=take, store=self.store, clock=VirtualClock(), bus=Bus([self.sink]))


@pytest.mark.req("FR-019")
async def test_a_screenshot_is_saved_and_reported() -> None:
    asked: list[str] = []

    async def take(address: str) -> bytes:
        asked.append(address)
        return PNG

    setup = Setup(take)
    setup.screenshots.request("crex-live", "https://crex.com/match")
    await until_reported(setup)

    assert asked == ["https://crex.com/match"]
    assert setup.store.kept == [("crex-live", PNG)]
    assert setup.sink.events == [ScreenshotSaved(source="crex", page="storage/errors/crex/1.png")]


async def until_reported(setup: Setup) -> None:
    async with asyncio.timeout(5):
        while not setup.sink.events:  # noqa: ASYNC110 - the store works in a thread
            await asyncio.sleep(0)


def test_a_request_during_another_one_is_dropped() -> None:
    asked: list[str] = []

    async def take(address: str) -> None:
        asked.append(address)
        await asyncio.sleep(1)

    async def scenario() -> None:
        screenshots = Setup(take).screenshots
        for moment in range(4):
            screenshots.request("crex-live", f"page {moment}")
            await asyncio.sleep(0.6)

    run_virtual(scenario())

    assert asked == ["page 0", "page 2"]


def test_a_browser_that_hangs_is_given_up() -> None:
    async def take(_address: str) -> bytes:
        await asyncio.Event().wait()
        return PNG

    async def scenario() -> list[str]:
        setup = Setup(take)
        setup.screenshots.request("crex-live", "page")
        await asyncio.sleep(SCREENSHOT_SECONDS + 1)
        return [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert run_virtual(scenario()) == []


@pytest.mark.parametrize("answer", [None, BrowserLost("crashed")], ids=["nothing", "an error"])
def test_a_failed_screenshot_is_ignored(answer: Exception | None) -> None:
    async def take(_address: str) -> None:
        if answer is not None:
            raise answer

    async def scenario() -> Setup:
        setup = Setup(take)
        setup.screenshots.request("crex-live", "page")
        await asyncio.sleep(1)
        return setup

    setup = run_virtual(scenario())

    assert (setup.store.kept, setup.sink.events) == ([], [])


@pytest.mark.parametrize(
    ("error", "reported"),
    [(ZeroDivisionError(), TaskFailed), (RuntimeError("can't start new thread"), PollPostponed)],
    ids=["a bug", "exhausted"],
)
def test_an_unexpected_error_is_reported(error: Exception, reported: type) -> None:
    async def take(_address: str) -> bytes:
        raise error

    async def scenario() -> Setup:
        setup = Setup(take)
        setup.screenshots.request("crex-live", "page")
        await asyncio.sleep(1)
        return setup

    assert [type(event) for event in run_virtual(scenario()).sink.events] == [reported]


def test_closing_cancels_the_screenshot_in_progress() -> None:
    async def take(_address: str) -> bytes:
        await asyncio.sleep(5)
        return PNG

    async def scenario() -> tuple[Setup, float]:
        setup = Setup(take)
        await setup.screenshots.aclose()
        setup.screenshots.request("crex-live", "page")
        await asyncio.sleep(1)
        await setup.screenshots.aclose()
        return setup, asyncio.get_running_loop().time()

    setup, ended = run_virtual(scenario())

    assert (setup.store.kept, ended) == ([], 1.0)
