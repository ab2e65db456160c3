"""A backup put back into a data directory that nobody uses. What was there before is moved aside, never deleted."""

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import StorageError, UsageError
from longstop.storage.backup import copy_plain, sync
from longstop.storage.directory import DataDirectory
from longstop.storage.manifest import DATABASES, PLAIN, Manifest, digest, verified
from longstop.storage.sqlite.connection import Synchronous, open_writable, translated
from longstop.storage.sqlite.schema import Database, queries

#: By so much epochs and sequence numbers are raised: more than a match is taken over, or has events, between a backup
#: and its return. Who wrote after the backup can then write no more, and who read then misses nothing that comes now.
GENERATION_STEP = 1_000_000
#: Whoever holds one of these is at work in the directory.
ROLES = ("supervisor", "scraper")

_SQL = queries("matches/queries.sql")
_BESIDE = ("", "-wal", "-shm", "-journal")
_SUFFIX = ".restored"


class _Mark(Struct, frozen=True, kw_only=True):
    """What a restore has found when it began: one that is cut off is done again with the same, not with its own."""

    #: The folder for what was there before, and the files that are of it.
    aside: str
    files: tuple[str, ...]


class Restored(Struct, frozen=True, kw_only=True):
    manifest: Manifest
    #: Where the files are that were there before; `None` when there were none.
    aside: Path | None


def restore(folder: Path, data: Path, clock: Clock, *, force: bool = False) -> Restored:
    """Put a backup's files into a data directory; raise, with nothing changed, where anything speaks against it."""
    manifest = verified(folder)
    directory = DataDirectory.open(data)
    with _unused(directory):
        is_again = directory.restoring.exists()
        if not force and not is_again and (directory.matches_db.exists() or directory.ops_db.exists()):
            raise UsageError(f"{data} is not empty: take an empty directory, or move its files aside with --force")
        try:
            return _put(folder, manifest, directory, clock)
        except OSError as error:
            raise StorageError(f"{data} cannot be restored: {error.strerror or error}") from error


@contextmanager
def _unused(directory: DataDirectory) -> Iterator[None]:
    with ExitStack() as stack:
        for role in ROLES:
            stack.enter_context(directory.lock(role, is_restoring=True))
        yield


def _put(folder: Path, manifest: Manifest, directory: DataDirectory, clock: Clock) -> Restored:
    drafts = [_draft(folder, directory.path, kept.name, kept.sha256) for kept in manifest.files]
    _begin_generation(_draft_of(directory.path / "matches.db"))
    # From here to the end the directory is neither the old nor the new one, and nobody may start in it.
    mark = _read_mark(directory.restoring) or _leave_mark(directory, clock)
    aside = _move_aside(directory, mark)
    _clear(directory, spared=drafts)
    for draft in drafts:
        draft.rename(draft.with_name(draft.name.removesuffix(_SUFFIX)))
    # A mark that is gone says that all of this is on the disk.
    sync(directory.path)
    directory.restoring.unlink()
    sync(directory.path)
    return Restored(manifest=manifest, aside=aside)


def _clear(directory: DataDirectory, spared: Collection[Path]) -> None:
    """Remove what is left of a restore that was cut off, or of an API that runs alone: it belongs to no backup."""
    for name in (*DATABASES, *PLAIN):
        path = directory.path / name
        _remove(path)
        if (draft := _draft_of(path)) not in spared:
            draft.unlink(missing_ok=True)


def _read_mark(path: Path) -> _Mark | None:
    """Return what the restore that was cut off here had found; `None` where none was."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Mark)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise StorageError(f"{path} cannot be read ({error}): restore into another directory") from error


def _leave_mark(directory: DataDirectory, clock: Clock) -> _Mark:
    """Write down what is there now, whole or not at all."""
    found = tuple(path.name for each in (*DATABASES, *PLAIN) for path in _with_logs(directory.path / each))
    mark = _Mark(aside=_free_name(directory.path, f"before-restore-{clock.now():%Y%m%dT%H%M%SZ}"), files=found)
    draft = _draft_of(directory.restoring)
    draft.write_bytes(msgspec.json.encode(mark))
    sync(draft)
    draft.rename(directory.restoring)
    sync(directory.path)
    return mark


def _free_name(folder: Path, name: str) -> str:
    names = (f"{name}-{number}" if number > 1 else name for number in count(1))
    return next(each for each in names if not (folder / each).exists())


def _draft_of(path: Path) -> Path:
    return path.with_name(path.name + _SUFFIX)


def _draft(folder: Path, data: Path, name: str, sha256: str) -> Path:
    """Copy a file of the backup beside its place, and make sure that it is what it was."""
    draft = _draft_of(data / name)
    _remove(draft)
    copy_plain(folder / name, draft)
    if digest(draft) != sha256:
        raise StorageError(f"{name} was not copied whole: the disk may be failing")
    return draft


def _begin_generation(path: Path) -> None:
    connection = open_writable(path, Database.MATCHES, Synchronous.FULL)
    try:
        with translated(path):
            connection.execute(_SQL["begin_generation"], {"step": GENERATION_STEP})
            # Its name is about to change: nothing may be left in a log of the old name.
            connection.pragma("journal_mode", "DELETE")
    finally:
        connection.close()
    sync(path)


def _move_aside(directory: DataDirectory, mark: _Mark) -> Path | None:
    """Move what the backup replaces into a folder of its own; the live view is of the old store, and built again."""
    _remove(directory.hot_db)
    if not mark.files:
        return None
    aside = directory.path / mark.aside
    aside.mkdir(mode=0o700, exist_ok=True)
    for name in mark.files:
        # One that is there was moved before the cut; what stands in its place is of the backup.
        if not os.path.lexists(aside / name):
            with suppress(FileNotFoundError):  # a log, which goes with the last one who has its database open
                (directory.path / name).rename(aside / name)
    sync(aside)
    return aside


def _with_logs(path: Path) -> list[Path]:
    beside = (path.with_name(path.name + suffix) for suffix in _BESIDE)
    return [each for each in beside if os.path.lexists(each)]


def _remove(path: Path) -> None:
    for each in _with_logs(path):
        each.unlink()
