"""The files of a database on disk: their errors in our words, whether one was lost, whether one was replaced."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from longstop.errors import ResourcesExhausted, StorageError, StoreDamaged
from longstop.exhaustion import MachineResource, exhausted
from longstop.storage.directory import REMEMBERED

_CANNOT_BE_REBUILT = ("matches", "ops")
#: How long to wait for other readers before a shortened log begins again.
_CHECKPOINT_PATIENCE_MS = 1_000
#: What an error means, and what to do about it.
_MEANINGS: Mapping[type[apsw.Error], tuple[str, str]] = {
    apsw.FullError: ("the disk is full", ""),
    apsw.IOError: ("the disk failed", "check the disk, and that it is a file that this user may read and write"),
    apsw.CorruptError: ("the file is damaged", ""),
    apsw.NotADBError: ("not an SQLite file", ""),
    # Our statements are constant: one that fails does not find the tables that it needs.
    apsw.SQLError: ("the file is damaged", ""),
    apsw.BusyError: ("another process has locked the file", ""),
    apsw.CantOpenError: ("the file cannot be opened", "check that it is a file that this user may read and write"),
    apsw.ReadOnlyError: ("the file cannot be written", "check the permissions of the file and its directory"),
}

_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)
#: Errors that may be caused by an exhausted resource.
_MAY_BE_EXHAUSTION = (apsw.CantOpenError, apsw.IOError)


def as_storage_error(error: apsw.Error, path: Path) -> StorageError:
    if isinstance(error, apsw.NoMemError):
        return ResourcesExhausted(MachineResource.MEMORY)
    exhaustion = exhausted(error) if isinstance(error, _MAY_BE_EXHAUSTION) else None
    if exhaustion is not None:
        return exhaustion
    meaning, advice = _MEANINGS.get(type(error), ("SQLite refused", ""))
    if path.is_dir():
        return damaged(path, "a directory, not a file")
    cause = f"{meaning} ({type(error).__name__}: {error})"
    if isinstance(error, _DAMAGE):
        return damaged(path, cause)
    failure = StorageError(f"{path}: {cause}{'; ' if advice else ''}{advice}")
    failure.cause = f"{path.name}: {meaning}"
    return failure


def damaged(path: Path, cause: str) -> StoreDamaged:
    """Return the error for a file that cannot be used: the file, the cause, and what to do."""
    folder = path.parent
    advice = (
        f"stop everything and run `longstop restore BACKUP --data {folder} --force`, or start without it: move it away"
        f" and delete {folder / REMEMBERED}"
    )
    if not _is_needed(path):
        advice = "the scraper rebuilds it"
    return StoreDamaged(f"{path}: {cause}; {advice}", cause=f"{path.name}: {cause}")


def _is_needed(path: Path) -> bool:
    return path.name.partition(".")[0] in _CANNOT_BE_REBUILT


def had_tables(path: Path) -> bool:
    """Return whether a file cannot be rebuilt, and its directory has had it with all its tables."""
    return _is_needed(path) and (path.parent / REMEMBERED).exists()


def refuse_loss(path: Path) -> None:
    """Raise if a database that cannot be rebuilt is missing or empty, though its directory has had it."""
    if had_tables(path) and file_identity(path) is None:
        raise damaged(path, "the file is empty" if path.exists() else "the file is missing")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate errors of SQLite into a `StorageError` that names the file."""
    try:
        yield
    except apsw.Error as error:
        raise as_storage_error(error, path) from error


class FileState(NamedTuple):
    """Device, inode and size of a file."""

    device: int
    inode: int
    size: int

    @property
    def identity(self) -> tuple[int, int]:
        return self.device, self.inode


def file_state(path: Path) -> FileState | None:
    """Return what identifies a file; `None` if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path.name}: cannot access the file ({error.strerror})") from error
    return FileState(found.st_dev, found.st_ino, found.st_size)


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, to detect that it was replaced; `None` if it is missing or empty."""
    state = file_state(path)
    return state.identity if state is not None and state.size else None


def _identity(path: Path) -> tuple[int, int] | None:
    state = file_state(path)
    return state and state.identity


def beside(path: Path, suffix: str) -> Path:
    """Return a file that SQLite keeps next to a database: its log (`-wal`) or its shared memory (`-shm`)."""
    return path.with_name(path.name + suffix)


class OpenFiles:
    """A database and its log, as one writer has opened them: notices that another program has changed them.

    SQLite would go on in files that no one can open any more.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shared_memory = _identity(beside(path, "-shm"))
        self.note()

    def note(self) -> None:
        """Take the files as they are now: after opening them, and after each transaction of their only writer."""
        self._known = {each: file_state(each) for each in (self._path, beside(self._path, "-wal"))}
        self._changes = _change_counter(self._path)

    def is_shared_memory_lost(self) -> bool:
        """Return whether other processes have no part in ours: they would not see what is written."""
        return _identity(beside(self._path, "-shm")) != self._shared_memory

    def problem(self, *, has_log: bool = True) -> str:
        """Return what has happened to the files; empty if nothing. Without `has_log` the log may be a new one.

        A file that is shorter after a checkpoint or VACUUM of another program is the same file.
        """
        shorter = ""
        for path, before in self._known.items():
            now = file_state(path)
            if before is None or now == before or not (has_log or path == self._path):
                continue
            if now is None:
                return f"{path.name} was deleted while it was in use"
            if now.identity != before.identity:
                return f"{path.name} was replaced while it was in use"
            if now.size < before.size:
                shorter = shorter or path.name
        if not shorter:
            return ""
        # Without the shared memory no one knows what the log had.
        if (has_log and self.is_shared_memory_lost()) or not self._is_whole():
            return f"{shorter} was shortened while it was in use"
        self.note()
        return ""

    def _is_whole(self) -> bool:
        """Return whether everything that was committed is there; then the log begins again."""
        # An older copy in place of a longer file has counted fewer changes.
        if _change_counter(self._path) < self._changes:
            return False
        try:
            # It has read nothing yet, and finds the missing part of a log by the shared memory.
            with closing(apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
                connection.set_busy_timeout(_CHECKPOINT_PATIENCE_MS)
                if connection.pragma("quick_check", 1) != "ok":
                    return False
                # Otherwise the next commit might be appended where the beginning of the log is missing.
                is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
                return not is_busy
        except apsw.Error:
            return False


def _change_counter(path: Path) -> int:
    """Return the number in the header of a database that grows whenever its size changes."""
    try:
        with path.open("rb") as file:
            return int.from_bytes(file.read(28)[24:])
    except OSError:
        return 0


def files_of(path: Path) -> list[Path]:
    """Return the existing files of a database: itself, and the logs that SQLite writes next to it."""
    candidates = (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal"))
    return [each for each in candidates if os.path.lexists(each)]
