"""Restores a backup into a data directory that is not in use. Existing files are moved aside, never deleted."""

import os
from collections.abc import Collection
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock
from longstop.errors import StorageError, UsageError
from longstop.model.command_and_standing_order import StandingKind
from longstop.storage.backup import DATABASES, PLAIN, Manifest, copy_plain, digest, sync, verified
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.connection import Synchronous, complete_file, open_writable
from longstop.storage.sqlite.files_and_errors import files_of, translated
from longstop.storage.sqlite.load_sql_and_migrate import Database, queries
from longstop.storage.sqlite.operations_tables import check_operations

#: Epochs and sequence numbers are raised by this much: more than a match can gain between backup and restore. So a
#: writer from after the backup is rejected, and a client that read then misses no new event.
GENERATION_STEP = 1_000_000
#: The locks of processes that use the directory.
ROLES = ("supervisor", "scraper")

_SQL = queries("matches/queries.sql")
_SUFFIX = ".restored"


Order = tuple[StandingKind, str]


class _Mark(Struct, frozen=True, kw_only=True):
    """What a restore found when it started. An interrupted restore is repeated with the same values."""

    #: The folder for existing files, and the files to move there.
    aside: str
    files: tuple[str, ...]


class Restored(Struct, frozen=True, kw_only=True):
    manifest: Manifest
    #: Where the previous files are; `None` if there were none.
    aside: Path | None
    #: The orders in force before, by kind and subject, and after; `None` if they could not be read.
    orders_before: frozenset[Order] | None = None
    orders_after: frozenset[Order] | None = None


def restore(folder: Path, data: Path, clock: Clock, *, force: bool = False) -> Restored:
    """Restore a backup into a data directory; raise before anything changes if that is not possible."""
    manifest = verified(folder)
    directory = DataDirectory.open(data)
    with ExitStack() as stack:
        for role in ROLES:
            stack.enter_context(directory.lock(role, is_restoring=True))
        is_again = directory.restoring.exists()
        if not force and not is_again and (directory.matches_db.exists() or directory.ops_db.exists()):
            raise UsageError(f"{data} is not empty: choose an empty directory, or pass --force to move its files aside")
        before = _orders(directory.ops_db)
        try:
            done = _put(folder, manifest, directory, clock)
            return replace(done, orders_before=before, orders_after=_orders(directory.ops_db))
        except OSError as error:
            raise StorageError(
                f"cannot restore into {data}: {error.strerror or error}. Then run longstop restore again"
            ) from error


def _put(folder: Path, manifest: Manifest, directory: DataDirectory, clock: Clock) -> Restored:
    drafts = [_draft(folder, directory.path, kept.name, kept.sha256) for kept in manifest.files]
    _begin_generation(_draft_of(directory.path / "matches.db"))
    # From here the directory is neither the old nor the new one: the mark keeps processes from starting in it.
    mark = _read_mark(directory.restoring) or _write_mark(directory, clock)
    aside = _move_aside(directory, mark)
    _clear(directory, spared=drafts)
    directory.databases.unlink(missing_ok=True)
    for draft in drafts:
        draft.rename(draft.with_name(draft.name.removesuffix(_SUFFIX)))
    if manifest.has_all_databases:
        directory.remember_databases()
    # Removing the mark says that everything is on disk.
    sync(directory.path)
    directory.restoring.unlink()
    sync(directory.path)
    return Restored(manifest=manifest, aside=aside)


def _orders(path: Path) -> frozenset[Order] | None:
    """Return the orders in a file; `None` if they cannot be read."""
    try:
        orders = frozenset((order.kind, order.subject) for order in check_operations(path))
        complete_file(path)  # a reader leaves a log, which would be moved aside
        return orders
    except StorageError:
        return None


def _clear(directory: DataDirectory, spared: Collection[Path]) -> None:
    """Remove files of an interrupted restore, or of an API that runs alone."""
    for name in (*DATABASES, *PLAIN):
        path = directory.path / name
        _remove(path)
        if (draft := _draft_of(path)) not in spared:
            draft.unlink(missing_ok=True)


def _read_mark(path: Path) -> _Mark | None:
    """Return the mark of an interrupted restore; `None` if there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Mark)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"cannot read {path}, the mark of an interrupted restore ({error}). Restore into another directory"
        ) from error


def _write_mark(directory: DataDirectory, clock: Clock) -> _Mark:
    """Record the existing files atomically."""
    found = tuple(path.name for each in (*DATABASES, *PLAIN) for path in files_of(directory.path / each))
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
    """Copy a file of the backup next to its destination, and verify its checksum."""
    draft = _draft_of(data / name)
    _remove(draft)
    copy_plain(folder / name, draft)
    if digest(draft) != sha256:
        raise StorageError(
            f"{name} was not copied correctly from {folder}: the disk may be failing. Check it, and try again"
        )
    return draft


def _begin_generation(path: Path) -> None:
    with translated(path), closing(open_writable(path, Database.MATCHES, Synchronous.FULL)) as connection:
        connection.execute(_SQL["begin_generation"], {"step": GENERATION_STEP})
        # The file is renamed next: nothing may remain in a log with the old name.
        connection.pragma("journal_mode", "DELETE")
    sync(path)


def _move_aside(directory: DataDirectory, mark: _Mark) -> Path | None:
    """Move replaced files into a folder. The live view belongs to the old store and is rebuilt."""
    _remove(directory.hot_db)
    if not mark.files:
        return None
    aside = directory.path / mark.aside
    aside.mkdir(mode=0o700, exist_ok=True)
    for name in mark.files:
        # If it is there, it was moved before the interruption; its replacement belongs to the backup.
        if not os.path.lexists(aside / name):
            with suppress(FileNotFoundError):  # a log, which SQLite removes with the last connection
                (directory.path / name).rename(aside / name)
    sync(aside)
    return aside


def _remove(path: Path) -> None:
    for each in files_of(path):
        each.unlink()
