"""Takes pictures of pages that could not be read. Nobody waits for one, and one that fails is no trouble."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, runtime_checkable

from longstop.clock import Clock
from longstop.errors import LongstopError
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ScreenshotSaved
from longstop.telemetry.exhaustion import failure_of

#: From the wish to the file.
PICTURE_SECONDS = 10.0

#: Returns a PNG of the page that is open at an address; `None` when none is.
TakePicture = Callable[[str], Awaitable[bytes | None]]


@runtime_checkable
class TakesPictures(Protocol):
    """A fetcher with pages that can be seen."""

    async def picture(self, address: str) -> bytes | None:
        """Return a PNG of the page that is open at an address; `None` when none is."""
        ...


class KeepsPictures(Protocol):
    """Where pictures are kept."""

    def keep(self, source: str, name: str, picture: bytes, now: datetime) -> str | None:
        """Keep a picture; return its path, or `None` when that could not be."""
        ...


class Camera:
    """One source's camera. It takes one picture at a time; a wish that comes meanwhile is dropped."""

    def __init__(self, source: str, *, picture: TakePicture, album: KeepsPictures, clock: Clock, bus: Bus) -> None:
        self._source = source
        self._picture = picture
        self._album = album
        self._clock = clock
        self._bus = bus
        self._task: asyncio.Task[None] | None = None

    def take(self, name: str, address: str) -> None:
        """Take a picture of the page that is open at an address, by and by."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._take(name, address), name=f"picture of {self._source}")

    async def aclose(self) -> None:
        """Give up the picture that is being taken."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _take(self, name: str, address: str) -> None:
        try:
            async with asyncio.timeout(PICTURE_SECONDS):
                picture = await self._picture(address)
                if picture is None:
                    return
                path = await asyncio.to_thread(self._album.keep, self._source, name, picture, self._clock.now())
        except (TimeoutError, LongstopError):
            return  # a picture is good to have; the error that it belongs to is told anyway
        except Exception as error:
            self._bus.emit(failure_of(error, f"picture of {self._source}"))
            return
        if path is not None:
            self._bus.emit(ScreenshotSaved(source=self._source, page=path))
