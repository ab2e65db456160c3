"""Screenshots of pages that could not be parsed. They are taken in the background; a failed one is ignored."""

import asyncio
from collections.abc import Awaitable, Callable

from longstop.clock import Clock
from longstop.errors import LongstopError
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import ScreenshotSaved
from longstop.watching.source_and_layout_breakers import ErrorPageStore

#: From the request to the saved file.
SCREENSHOT_SECONDS = 10.0

#: Returns a PNG of the open page at an address; `None` when no such page is open.
TakeScreenshot = Callable[[str], Awaitable[bytes | None]]


class Screenshots:
    """Takes screenshots for one source, one at a time. A request during another one is dropped."""

    def __init__(self, source: str, *, take: TakeScreenshot, store: ErrorPageStore, clock: Clock, bus: Bus) -> None:
        self._source = source
        self._take = take
        self._store = store
        self._clock = clock
        self._bus = bus
        self._task: asyncio.Task[None] | None = None

    def request(self, name: str, address: str) -> None:
        """Start a screenshot of the open page at an address, and return at once."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._save(name, address), name=f"screenshot of {self._source}")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _save(self, name: str, address: str) -> None:
        try:
            async with asyncio.timeout(SCREENSHOT_SECONDS):
                screenshot = await self._take(address)
                if screenshot is None:
                    return
                path = await asyncio.to_thread(self._store.keep, name, screenshot, self._clock.now())
        except (TimeoutError, LongstopError):
            return  # optional: the parse error that it illustrates is reported anyway
        except Exception as error:
            self._bus.emit(failure_of(error, f"screenshot of {self._source}"))
            return
        if path is not None:
            self._bus.emit(ScreenshotSaved(source=self._source, page=path))
