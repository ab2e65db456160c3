"""How a child process notices that its supervisor is gone, also after a `kill -9`.

The supervisor alone holds the writing end of a pipe and never writes; each child holds the reading end. Whatever ends
the supervisor closes the pipe. (The kernel's own signal for this fires when the *thread* that forked ends, which is
not the same thing.)
"""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from longstop.errors import SettingsError
from longstop.settings import PARENT_FD_VARIABLE

#: Seconds between asking an orphan to stop and ending it.
ORPHAN_GRACE = 10.0


@contextmanager
def life_line_of_children() -> Iterator[int]:
    """Open the pipe whose end tells the children of ours; give the end that they read."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


def watch_parent_if_any(environ: Mapping[str, str]) -> None:
    """End this process with whoever started it, when that one handed a pipe down."""
    if (fd := parent_fd(environ)) is not None:
        watch_parent(fd)


def parent_fd(environ: Mapping[str, str]) -> int | None:
    """Return the pipe that ends with the supervisor; `None` for a process that somebody started by hand."""
    return handed_down(environ, PARENT_FD_VARIABLE)


def handed_down(environ: Mapping[str, str], variable: str) -> int | None:
    """Return the open file that the supervisor named in a variable; `None` without one."""
    text = environ.get(variable)
    if text is None:
        return None
    try:
        fd = int(text)
        os.fstat(fd)
    except (ValueError, OverflowError, OSError) as error:
        raise SettingsError(f"{variable} is {text!r}: leave it out, only the supervisor sets it") from error
    return fd


def watch_parent(fd: int, *, grace: float = ORPHAN_GRACE) -> threading.Thread:
    """Ask this process to stop (SIGTERM) when its supervisor is gone, and end it when it has not stopped in time.

    It watches in a thread of its own, so that a blocked event loop does not make an orphan immortal.
    """
    thread = threading.Thread(target=_watch, args=(fd, grace), name="watch-parent", daemon=True)
    thread.start()
    return thread


def _watch(fd: int, grace: float) -> None:
    while os.read(fd, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os.kill(os.getpid(), signal.SIGKILL)
