"""Beats on their way from a child to its supervisor: a byte a second through a pipe, written by the child's event loop.

A pipe needs no disk, no port and no clock on the wall: a child that does not write into it stands still, and a full
disk or a firewall costs nobody their life.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from longstop.settings import BEAT_FD_VARIABLE
from longstop.supervision.parent import handed_down

BEAT_SECONDS = 1.0
_MANY = 65536


class BeatLine:
    """The supervisor's side, for one life of one child."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        for end in (self._read_end, self.write_end):
            # Neither a supervisor that is slow to read nor a child that is slow to write may hold up the other.
            os.set_blocking(end, False)

    def has_beaten(self) -> bool:
        """Return whether a beat has come since this was last asked."""
        with suppress(BlockingIOError):
            return bool(os.read(self._read_end, _MANY))
        return False

    def close(self) -> None:
        os.close(self._read_end)
        os.close(self.write_end)


@contextmanager
def beating(environ: Mapping[str, str]) -> Iterator[None]:
    """Beat on the running loop meanwhile, when a supervisor listens."""
    fd = handed_down(environ, BEAT_FD_VARIABLE)
    if fd is None:
        yield
        return
    task = asyncio.create_task(_beat(fd), name="beat")
    try:
        yield
    finally:
        task.cancel()


async def _beat(fd: int) -> None:
    while True:
        with suppress(BlockingIOError, BrokenPipeError):  # nobody reads: whether we have to end is not decided here
            os.write(fd, b".")
        await asyncio.sleep(BEAT_SECONDS)
