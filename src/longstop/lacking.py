"""What this machine has run out of, where the errors of others do not say it, and blame somebody else."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from longstop.errors import ResourcesExhausted
from longstop.resilience.lacks import ROOM, lack_in, lack_named_in, names_a_reason

#: Less than this is no room: a browser's profile begins with more.
LEAST_ROOM_BYTES = 1 << 20
_SAID_CHARACTERS = 200


def exhausted(error: BaseException) -> ResourcesExhausted | None:
    """Return our error for a foreign one that comes of a lack of our own; `None` where nothing is known to lack."""
    what = lack_in(error) or lack_of_descriptors()
    return ResourcesExhausted(what) if what else None


def exhausted_at_start(error: BaseException) -> ResourcesExhausted | None:
    """Return the same for a program that did not start: it needs processes and room, too."""
    text = str(error)
    what = lack_in(error) or lack_named_in(text)
    if what is None and not names_a_reason(text):
        what = lack_of_descriptors() or lack_of_room()
    return ResourcesExhausted(what, said=_first_line(text)) if what else None


def own_lack(error: Exception) -> ResourcesExhausted | None:
    """Return our error for what the system raises for a lack of our own; `None` for all else."""
    what = lack_in(error) if isinstance(error, OSError | MemoryError | RuntimeError) else None
    if what is None:
        return None
    lack = ResourcesExhausted(what)
    lack.__cause__ = error
    return lack


@contextmanager
def own_lacks() -> Iterator[None]:
    """Turn what the system raises for a lack of our own into our error; all else passes as it is."""
    try:
        yield
    except Exception as error:
        lack = own_lack(error)
        if lack is None:
            raise
        raise lack from error


def lack_of_descriptors() -> str | None:
    """Try to open a file: libraries in C fail without one, and do not say why."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return lack_in(error)
    return None


def lack_of_room() -> str | None:
    """Look whether temporary files have any room left."""
    try:
        free = shutil.disk_usage(tempfile.gettempdir()).free
    except OSError as error:
        return lack_in(error)
    return ROOM if free < LEAST_ROOM_BYTES else None


def _first_line(text: str) -> str:
    """Return the beginning of a foreign text, without any address in it: that may be secret."""
    line = text.splitlines()[0] if text else ""
    return re.sub(r"\w+://\S+", "(an address)", line)[:_SAID_CHARACTERS]
