"""What this machine has run out of, by what an error says. Pure: nothing is tried here."""

import errno
import re

DESCRIPTORS = "file descriptors"
PROCESSES = "processes"
MEMORY = "memory"
ROOM = "room for temporary files"

_BY_ERRNO = {
    errno.EMFILE: DESCRIPTORS,
    errno.ENFILE: DESCRIPTORS,
    errno.EAGAIN: PROCESSES,
    errno.ENOMEM: MEMORY,
    errno.ENOSPC: ROOM,
}
#: Other programs write a system error as its name, in the C library's words, or as its number.
_BY_WORDS = {
    **{errno.errorcode[number]: what for number, what in _BY_ERRNO.items()},
    "Too many open files": DESCRIPTORS,
    "Resource temporarily unavailable": PROCESSES,
    "Cannot allocate memory": MEMORY,
    "No space left on device": ROOM,
}
_WORDS = re.compile(rf"\b({'|'.join(_BY_WORDS)})\b")
_NUMBER = re.compile(r"\[Errno (\d+)\]|shared object file: Error (\d+)")
#: What Python says when the system gives it no thread, which counts as a process there.
_NO_THREAD = "can't start new thread"
#: How a program says that it did not start for another reason. Whatever else goes wrong in its log does so always.
_OTHER_REASON = re.compile(
    r"\[Errno \d+\]|\bspawn \S+ E[A-Z]+|Executable doesn't exist|error while loading shared libraries"
    r"|missing dependencies|[Mm]issing X server|No usable sandbox|without --no-sandbox is not supported"
)


def lack_in(error: BaseException) -> str | None:
    """Return what an error of the system says is lacking."""
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, RuntimeError):
        return PROCESSES if str(error) == _NO_THREAD else None
    return _BY_ERRNO.get(error.errno or 0) if isinstance(error, OSError) else None


def lack_named_in(text: str) -> str | None:
    """Return what a text from another program says is lacking."""
    if (words := _WORDS.search(text)) is not None:
        return _BY_WORDS[words[1]]
    numbers = (int(found[1] or found[2]) for found in _NUMBER.finditer(text))
    return next((_BY_ERRNO[number] for number in numbers if number in _BY_ERRNO), None)


def names_a_reason(text: str) -> bool:
    """Return whether a program that did not start says why: whatever this machine may lack beside, it was not that."""
    return _OTHER_REASON.search(text) is not None
