"""Pictures of pages that could not be read: taken by and by, one at a time, and never anybody's trouble."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from longstop.errors import BrowserLost
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import PollPostponed, ScreenshotSaved, TaskFailed
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.camera import PICTURE_SECONDS, Camera
from tests.memory import MemorySink

PNG = b"\x89PNG picture"


class Album:
    def __init__(self, path: str | None = "storage/errors/crex/1.png") -> None:
        self.path = path
        self.kept: list[tuple[str, str, bytes]] = []

    def keep(self, source: str, name: str, picture: bytes, now: datetime) -> str | None:
        self.kept.append((source, name, picture))
        return self.path


class Studio:
    """A camera, its album, and what was told."""

    def __init__(self, picture: Callable[[str], Awaitable[bytes | None]], album: Album | None = None) -> None:
        self.album = album or Album()
        self.sink = MemorySink()
        self.camera = Camera("crex", picture=picture, album=self.album, clock=VirtualClock(), bus=Bus([self.sink]))


@pytest.mark.req("FR-019")
async def test_a_picture_is_kept_and_told() -> None:
    asked: list[str] = []

    async def picture(address: str) -> bytes:
        asked.append(address)
        return PNG

    studio = Studio(picture)
    studio.camera.take("crex-live", "https://crex.com/match")
    await until_told(studio)

    assert asked == ["https://crex.com/match"]
    assert studio.album.kept == [("crex", "crex-live", PNG)]
    assert studio.sink.events == [ScreenshotSaved(source="crex", page="storage/errors/crex/1.png")]


async def until_told(studio: Studio) -> None:
    async with asyncio.timeout(5):
        while not studio.sink.events:  # noqa: ASYNC110 - the album works in a thread
            await asyncio.sleep(0)


def test_a_wish_that_comes_while_one_is_taken_is_dropped() -> None:
    asked: list[str] = []

    async def picture(address: str) -> None:
        asked.append(address)
        await asyncio.sleep(1)

    async def scenario() -> None:
        camera = Studio(picture).camera
        for moment in range(4):
            camera.take("crex-live", f"page {moment}")
            await asyncio.sleep(0.6)

    run_virtual(scenario())

    assert asked == ["page 0", "page 2"]


def test_a_browser_that_does_not_answer_is_not_waited_for_long() -> None:
    async def picture(_address: str) -> bytes:
        await asyncio.Event().wait()
        return PNG

    async def scenario() -> list[str]:
        studio = Studio(picture)
        studio.camera.take("crex-live", "page")
        await asyncio.sleep(PICTURE_SECONDS + 1)
        return [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert run_virtual(scenario()) == []


@pytest.mark.parametrize("answer", [None, BrowserLost("crashed")], ids=["nothing", "an error"])
def test_a_picture_that_cannot_be_had_is_no_trouble(answer: Exception | None) -> None:
    async def picture(_address: str) -> None:
        if answer is not None:
            raise answer

    async def scenario() -> Studio:
        studio = Studio(picture)
        studio.camera.take("crex-live", "page")
        await asyncio.sleep(1)
        return studio

    studio = run_virtual(scenario())

    assert (studio.album.kept, studio.sink.events) == ([], [])


@pytest.mark.parametrize(
    ("error", "told"),
    [(ZeroDivisionError(), TaskFailed), (RuntimeError("can't start new thread"), PollPostponed)],
    ids=["a bug", "a lack"],
)
def test_what_goes_wrong_in_the_taking_is_told_and_ends_nothing(error: Exception, told: type) -> None:
    async def picture(_address: str) -> bytes:
        raise error

    async def scenario() -> Studio:
        studio = Studio(picture)
        studio.camera.take("crex-live", "page")
        await asyncio.sleep(1)
        return studio

    assert [type(event) for event in run_virtual(scenario()).sink.events] == [told]


def test_a_camera_that_is_closed_gives_up_its_picture() -> None:
    async def picture(_address: str) -> bytes:
        await asyncio.sleep(5)
        return PNG

    async def scenario() -> tuple[Studio, float]:
        studio = Studio(picture)
        await studio.camera.aclose()
        studio.camera.take("crex-live", "page")
        await asyncio.sleep(1)
        await studio.camera.aclose()
        return studio, asyncio.get_running_loop().time()

    studio, ended = run_virtual(scenario())

    assert (studio.album.kept, ended) == ([], 1.0)
