"""The two pipes between the supervisor and each child: the lifeline and the heartbeat.

The lifeline shows a child that its supervisor is gone, also after `kill -9`. Only the supervisor has the write end, and
never writes; its death closes the pipe. (`PR_SET_PDEATHSIG` does not fit: it fires when the *thread* that forked ends.)

The heartbeat shows the supervisor that the child's event loop runs: one byte a second. A pipe depends on no disk, port
or wall clock, so a full disk or a firewall cannot make a child look dead.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from longstop.errors import SettingsError
from longstop.settings import BEAT_FD_VARIABLE, PARENT_FD_VARIABLE

#: Seconds between SIGTERM and SIGKILL for a child whose supervisor is gone.
ORPHAN_GRACE = 10.0
HEARTBEAT_SECONDS = 1.0
_READ_SIZE = 65536


@contextmanager
def lifeline() -> Iterator[int]:
    """Open the lifeline of all children; yield the end that they read."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


def parent_fd(environ: Mapping[str, str]) -> int | None:
    """Return the lifeline; `None` for a process that runs without a supervisor."""
    return _inherited_fd(environ, PARENT_FD_VARIABLE)


def watch_parent(environ: Mapping[str, str], *, grace: float = ORPHAN_GRACE) -> None:
    """Send SIGTERM to this process when its supervisor is gone, and SIGKILL if it has not ended in time.

    This runs in a thread: a blocked event loop must not keep an orphan alive. Without a supervisor it does nothing.
    """
    if (fd := parent_fd(environ)) is not None:
        threading.Thread(target=_watch, args=(fd, grace), name="watch-parent", daemon=True).start()


def _watch(fd: int, grace: float) -> None:
    while os.read(fd, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os.kill(os.getpid(), signal.SIGKILL)


class HeartbeatPipe:
    """The supervisor's side of the heartbeat of one child process."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        for end in (self._read_end, self.write_end):
            # A slow reader must not block the writer, nor the reverse.
            os.set_blocking(end, False)

    def has_beaten(self) -> bool:
        """Return whether a heartbeat has come since the last call."""
        with suppress(BlockingIOError):
            return bool(os.read(self._read_end, _READ_SIZE))
        return False

    def close(self) -> None:
        os.close(self._read_end)
        os.close(self.write_end)


@contextmanager
def sending_heartbeats(environ: Mapping[str, str]) -> Iterator[None]:
    """Send heartbeats from the running event loop, if there is a supervisor."""
    fd = _inherited_fd(environ, BEAT_FD_VARIABLE)
    if fd is None:
        yield
        return
    task = asyncio.create_task(_send_heartbeats(fd), name="heartbeat")
    try:
        yield
    finally:
        task.cancel()


async def _send_heartbeats(fd: int) -> None:
    while True:
        with suppress(BlockingIOError, BrokenPipeError):  # without a reader: the lifeline decides what to do
            os.write(fd, b".")
        await asyncio.sleep(HEARTBEAT_SECONDS)


def _inherited_fd(environ: Mapping[str, str], variable: str) -> int | None:
    """Return the file descriptor that the supervisor passed in a variable; `None` without one."""
    text = environ.get(variable)
    if text is None:
        return None
    try:
        fd = int(text)
        os.fstat(fd)
    except (ValueError, OverflowError, OSError) as error:
        raise SettingsError(f"{variable} is {text!r}: unset it, only the supervisor sets it") from error
    return fd
