"""Detects that the machine is out of file descriptors, processes, memory or temporary space.

System and library errors are mapped to `ResourcesExhausted` where they enter. Neither a site nor the store is at fault
then: the poll is postponed, and no breaker counts it.
"""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from longstop.errors import ResourcesExhausted


class MachineResource(StrEnum):
    DESCRIPTORS = "file descriptors"
    PROCESSES = "processes"
    MEMORY = "memory"
    TEMPORARY_SPACE = "room for temporary files"


#: With less free space than this there is none: a new browser profile takes more.
MIN_TEMPORARY_BYTES = 1 << 20
_DETAIL_CHARACTERS = 200

_BY_ERRNO = {
    errno.EMFILE: MachineResource.DESCRIPTORS,
    errno.ENFILE: MachineResource.DESCRIPTORS,
    errno.EAGAIN: MachineResource.PROCESSES,
    errno.ENOMEM: MachineResource.MEMORY,
    errno.ENOSPC: MachineResource.TEMPORARY_SPACE,
}
#: Other programs print a system error by its name, its text or its number.
_BY_TEXT = {
    text: resource
    for number, resource in _BY_ERRNO.items()
    for text in (
        errno.errorcode[number],
        os.strerror(number),
        f"[Errno {number}]",
        f"shared object file: Error {number}",
    )
}
_TEXTS = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in _BY_TEXT))
#: Python's message when the system refuses a thread. Threads count as processes there.
_NO_THREAD = "can't start new thread"


def exhausted_resource(error: BaseException) -> MachineResource | None:
    if isinstance(error, MemoryError):
        return MachineResource.MEMORY
    if isinstance(error, RuntimeError):
        return MachineResource.PROCESSES if str(error) == _NO_THREAD else None
    return _BY_ERRNO.get(error.errno or 0) if isinstance(error, OSError) else None


def exhausted(error: BaseException) -> ResourcesExhausted | None:
    """Map a library's error. Libraries in C fail without a descriptor and do not report why, so one is tried."""
    resource = exhausted_resource(error) or _descriptors_exhausted()
    return ResourcesExhausted(resource) if resource else None


def exhausted_at_launch(error: BaseException) -> ResourcesExhausted | None:
    """Map the error of a program that did not start, by its output; if that names no resource, check the machine."""
    text = str(error)
    resource = (
        exhausted_resource(error) or resource_named_in(text) or _descriptors_exhausted() or temporary_space_exhausted()
    )
    return ResourcesExhausted(resource, detail=first_line(text)) if resource else None


def mapped(error: Exception) -> Exception:
    """Return `ResourcesExhausted` for a system error that reports exhaustion, any other error unchanged."""
    resource = exhausted_resource(error)
    return ResourcesExhausted(resource) if resource else error


@contextmanager
def mapping_exhaustion() -> Iterator[None]:
    """Raise `ResourcesExhausted` for system errors that report exhaustion; other errors pass unchanged."""
    try:
        yield
    except Exception as error:
        if (found := mapped(error)) is error:
            raise
        raise found from error


def resource_named_in(text: str) -> MachineResource | None:
    """Return the resource that the output of another program reports as exhausted."""
    found = _TEXTS.search(text)
    return _BY_TEXT[found[0]] if found else None


def temporary_space_exhausted() -> MachineResource | None:
    """Return `TEMPORARY_SPACE` if the temporary directory is full."""
    try:
        free = shutil.disk_usage(tempfile.gettempdir()).free
    except OSError as error:
        return exhausted_resource(error)
    return MachineResource.TEMPORARY_SPACE if free < MIN_TEMPORARY_BYTES else None


def _descriptors_exhausted() -> MachineResource | None:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return exhausted_resource(error)
    return None


def first_line(text: str) -> str:
    """Return the start of a foreign text without URLs, which may contain secrets."""
    line = text.splitlines()[0] if text else ""
    return re.sub(r"\w+://\S+", "(URL)", line)[:_DETAIL_CHARACTERS]
