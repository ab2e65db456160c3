"""What this machine has run out of, told from the errors of others: they seldom say it, and blame somebody else."""

import errno
import os
import re
import shutil
import tempfile

from longstop.errors import ResourcesExhausted

DESCRIPTORS = "file descriptors"
PROCESSES = "processes"
MEMORY = "memory"
ROOM = "room for temporary files"
#: Less than this is no room: a browser's profile begins with more.
LEAST_ROOM_BYTES = 1 << 20

_BY_ERRNO = {
    errno.EMFILE: DESCRIPTORS,
    errno.ENFILE: DESCRIPTORS,
    errno.EAGAIN: PROCESSES,
    errno.ENOMEM: MEMORY,
    errno.ENOSPC: ROOM,
}
_BY_NAME = {errno.errorcode[number]: what for number, what in _BY_ERRNO.items()}
_NAME = re.compile(rf"\b({'|'.join(_BY_NAME)})\b")


def exhausted(error: BaseException) -> ResourcesExhausted | None:
    """Return our error for a foreign one that comes of a lack of our own; `None` where nothing is known to lack."""
    what = lack_in(error) or lack_of_descriptors()
    return ResourcesExhausted(what) if what else None


def exhausted_at_start(error: BaseException) -> ResourcesExhausted | None:
    """Return the same for a program that did not start: it needs processes and room, too."""
    what = lack_in(error) or _named_in(str(error)) or lack_of_descriptors() or lack_of_room()
    return ResourcesExhausted(what) if what else None


def lack_in(error: BaseException) -> str | None:
    """Return what an error of the system says is lacking."""
    if isinstance(error, MemoryError):
        return MEMORY
    return _BY_ERRNO.get(error.errno or 0) if isinstance(error, OSError) else None


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


def _named_in(text: str) -> str | None:
    """Return what a text from another program says is lacking, by the system's name for it."""
    found = _NAME.search(text)
    return _BY_NAME[found[1]] if found else None
