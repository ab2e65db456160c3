"""Large answers are read and encoded off the event loop, so that they do not delay others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import Response
from starlette.exceptions import HTTPException

from longstop.api.json_and_error_responses import RETRY_SOON
from longstop.api.open_connections_and_acceptor import MAX_UNSENT_BYTES
from longstop.daemon_thread import DaemonThread

T = TypeVar("T")

#: Answers in memory at once. They are encoded one after the other: threads share one interpreter.
AT_ONCE = 4
#: How long one may take, with its wait for the others. The connections bound how many wait.
SECONDS = 10.0
CHECKED_EVERY_SECONDS = 0.05
#: Up to this many records, or bytes of payloads, are read and encoded on the event loop: a change of thread takes
#: longer than that.
FEW, SMALL_BYTES = 50, 256 * 1024

_BUSY = "Too many large answers are requested, or the store cannot be read; try again in a few seconds."


class LargeAnswers:
    """Makes large answers, a few at a time. What reads for them must not answer on the event loop."""

    def __init__(self, unsent_bytes: Callable[[], int]) -> None:
        self._unsent_bytes = unsent_bytes
        self._thread = DaemonThread("encoder of large answers")
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def answer(self, read: Callable[[], Awaitable[T]], respond: Callable[[T], Response]) -> Response:
        """Return the response to what is read; raise 503 when that takes too long."""
        try:
            async with asyncio.timeout(SECONDS), self._slots:
                # Clients that do not read are cut off soon.
                while self._unsent_bytes() > MAX_UNSENT_BYTES:  # noqa: ASYNC110 - a socket sends no event for it
                    await asyncio.sleep(CHECKED_EVERY_SECONDS)
                found = await read()
                return await self._thread.run(lambda: respond(found))
        except TimeoutError as error:
            raise HTTPException(503, _BUSY, RETRY_SOON) from error
