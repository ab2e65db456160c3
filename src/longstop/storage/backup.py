"""A backup of a data directory while everything runs, whole or not at all.

Each database is copied as it was at one moment: a reader of SQLite's write-ahead log keeps nobody from writing. What
is copied stands under another name until the last byte is on the disk.
"""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import apsw
import msgspec

from longstop import __version__
from longstop.clock import Clock
from longstop.errors import StorageError, UsageError
from longstop.storage.directory import DataDirectory
from longstop.storage.manifest import DATABASES, FORMAT, MANIFEST, PLAIN, Manifest, describe
from longstop.storage.sqlite.connection import open_readable, translated

#: A megabyte at a time, and a breath in between: the writer's commits come first.
PAGES_PER_STEP = 256
BREATH_SECONDS = 0.005

_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600

_WRITING_FAILED = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)

Breathe = Callable[[], None]


def _breathe() -> None:
    time.sleep(BREATH_SECONDS)


def back_up(directory: DataDirectory, target: Path, clock: Clock, breathe: Breathe = _breathe) -> Manifest:
    """Copy what a node cannot build again into a new folder; return what is in it."""
    if not directory.matches_db.exists():
        raise UsageError(f"there are no matches in {directory.path}: nothing to back up")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is there already: take a new directory for each backup")
    try:
        with _draft(target) as draft:
            manifest = _fill(draft, directory, clock, breathe)
            if target.exists():
                target.rmdir()
            draft.rename(target)
            sync(target.parent)
            return manifest
    except OSError as error:
        raise StorageError(f"the backup {target} cannot be written: {error.strerror or error}") from error


def _fill(draft: Path, directory: DataDirectory, clock: Clock, breathe: Breathe) -> Manifest:
    created_at = clock.now()
    for name in DATABASES:
        if (directory.path / name).exists():
            copy_database(directory.path / name, draft / name, breathe)
    for name in PLAIN:
        with suppress(FileNotFoundError):
            copy_plain(directory.path / name, draft / name)
    manifest = Manifest(
        format=FORMAT,
        version=__version__,
        created_at=created_at,
        node=directory.node_id,
        files=tuple(describe(path) for path in sorted(draft.iterdir())),
    )
    path = draft / MANIFEST
    path.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    sync(path)
    sync(draft)
    return manifest


def copy_database(source: Path, target: Path, breathe: Breathe = _breathe) -> None:
    """Copy a database as it is at this moment, while others write it."""
    with _translated(source), closing(open_readable(source)) as live, closing(apsw.Connection(str(target))) as copy:
        # One transaction over the whole copy: without it every commit meanwhile would let it begin from the start.
        live.execute("BEGIN")
        live.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        with copy.backup("main", live, "main") as backup:
            while not backup.done:
                backup.step(PAGES_PER_STEP)
                breathe()
        # A copy is one file: nothing of it may stand in a log beside it.
        copy.pragma("journal_mode", "DELETE")
    target.chmod(_PRIVATE_FILE)
    sync(target)


@contextmanager
def _translated(source: Path) -> Iterator[None]:
    """Tell errors of the file that is read from those of its copy: the former is never written."""
    with translated(source):
        try:
            yield
        except apsw.FullError as error:
            raise OSError(errno.ENOSPC, "the disk is full") from error
        except apsw.IOError as error:
            if getattr(error, "extendedresult", None) not in _WRITING_FAILED:
                raise
            raise OSError(errno.EIO, "the disk failed") from error


def copy_plain(source: Path, target: Path) -> None:
    """Copy a file that is not changed once it is there."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as copy, source.open("rb") as original:
        shutil.copyfileobj(original, copy)
        copy.flush()
        os.fsync(copy.fileno())


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """Give a folder beside the target that is gone afterwards unless it became the target."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    draft = target.with_name(f"{_draft_prefix(target)}{uuid4().hex[:8]}")
    draft.mkdir(mode=_PRIVATE_FOLDER)
    with _held(draft):
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what a backup to the same place has left that was killed; one that still runs holds its folder."""
    for left in target.parent.glob(f"{_draft_prefix(target)}*"):
        with suppress(OSError), _held(left):
            shutil.rmtree(left)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _draft_prefix(target: Path) -> str:
    return f".{target.name}.partial-"
