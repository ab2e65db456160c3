"""The secret that signs tokens: random, in a file that only its owner can read."""

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Self

from longstop.errors import UsageError

#: HS256 is as strong as its key, up to 32 bytes.
SECRET_BYTES = 32
_MAX_FILE_BYTES = 4096


class Secret:
    """A signing key that never shows itself in a log line or a traceback."""

    def __init__(self, key: bytes) -> None:
        if len(key) < SECRET_BYTES:
            raise UsageError(f"a signing secret needs at least {SECRET_BYTES} bytes, this one has {len(key)}")
        self.key = key

    def __repr__(self) -> str:
        return "Secret(…)"

    @classmethod
    def load_or_create(cls, path: Path) -> Self:
        """Return the secret of this file; a missing file is made first, whole or not at all."""
        try:
            if not os.path.lexists(path):
                _create(path)
            return cls(_read(path))
        except OSError as error:
            raise UsageError(f"the token secret {path} cannot be used: {_why(error)}") from error


def _create(path: Path) -> None:
    """Write a new secret beside the path and link it into place, so that nobody ever reads half of one."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(SECRET_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        _link_unless_there(draft, path)
    finally:
        draft.unlink()


def _link_unless_there(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return  # another process was first: its secret is the one to use


def _read(path: Path) -> bytes:
    # O_NONBLOCK so that a pipe put in the file's place is refused below instead of being waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        _refuse_unsafe(path, os.fstat(descriptor))
        text = file.read(_MAX_FILE_BYTES)
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError as error:
        raise UsageError(f"the token secret {path} is not hexadecimal: remove it and a new one is made") from error


def _refuse_unsafe(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"the token secret {path} is not a regular file")
    if status.st_mode & 0o077:
        raise UsageError(f"the token secret {path} is open to other users: run chmod 600 {path}, or remove it")


def _why(error: OSError) -> str:
    return "it is a symbolic link" if error.errno == errno.ELOOP else (error.strerror or type(error).__name__)
