"""Backs up a data directory while everything runs.

Each database is copied as a consistent snapshot; a reader of SQLite's write-ahead log does not block the writer. The
copy has a temporary name until its last byte is on disk. The manifest lists every file with size, checksum and schema.
"""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import msgspec
from msgspec import Struct

from longstop import __version__
from longstop.clock import Clock
from longstop.errors import StorageError, UsageError
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.connection import open_readable, rows
from longstop.storage.sqlite.files_and_errors import refuse_loss, translated
from longstop.storage.sqlite.load_sql_and_migrate import Database, migrations_of, pending, queries

MANIFEST = "manifest.json"
FORMAT = 1
#: The databases of a backup. The live view is not included: it is rebuilt.
DATABASES = {"matches.db": Database.MATCHES, "ops.db": Database.OPS}
#: Other files: the secret that signs tokens. The node id is not included: two directories are two nodes.
PLAIN = ("token-secret",)

_SQL = queries("migrations.sql")

#: A megabyte at a time with a pause in between, so that the writer's commits come first.
PAGES_PER_STEP = 256
PAUSE_SECONDS = 0.005

_PRIVATE_FILE = 0o600

_WRITING_FAILED = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


class BackupFile(Struct, frozen=True, kw_only=True):
    name: str
    size: int
    sha256: str
    #: File names of the applied migrations, if it is a database.
    schema: tuple[str, ...] = ()


class Manifest(Struct, frozen=True, kw_only=True):
    format: int
    #: The version of Longstop that wrote the backup.
    version: str
    created_at: datetime
    node: str
    files: tuple[BackupFile, ...]

    @property
    def has_all_databases(self) -> bool:
        """Return whether operators' orders are included; a directory that never ran a scraper has none."""
        return DATABASES.keys() <= {kept.name for kept in self.files}


def back_up(directory: DataDirectory, target: Path, clock: Clock) -> Manifest:
    """Copy the files that cannot be rebuilt into a new folder; return its manifest."""
    for name in DATABASES:
        refuse_loss(directory.path / name)  # a backup without the orders of operators would lift them when restored
    if not directory.matches_db.exists():
        raise UsageError(f"nothing to back up: {directory.path} has no matches.db. Check --data")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} already exists: choose a new directory for each backup")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # It is private, and removed at the end unless it has become the target.
        with TemporaryDirectory(prefix=f".{target.name}.partial-", dir=target.parent) as draft:
            manifest = _fill(Path(draft), directory, clock)
            Path(draft).rename(target)
            sync(target.parent)
            return manifest
    except OSError as error:
        raise StorageError(
            f"cannot write the backup {target}: {error.strerror or error}. Choose another disk"
        ) from error


def _fill(draft: Path, directory: DataDirectory, clock: Clock) -> Manifest:
    created_at = clock.now()
    for name in DATABASES:
        if (directory.path / name).exists():
            copy_database(directory.path / name, draft / name)
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


def copy_database(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of a database while others write to it."""
    with _translated(source), closing(open_readable(source)) as live, closing(apsw.Connection(str(target))) as copy:
        # One transaction for the whole copy: otherwise every commit would restart it.
        live.execute("BEGIN")
        live.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        with copy.backup("main", live, "main") as backup:
            while not backup.done:
                backup.step(PAGES_PER_STEP)
                time.sleep(PAUSE_SECONDS)
        # The copy must be a single file, without a write-ahead log.
        copy.pragma("journal_mode", "DELETE")
    target.chmod(_PRIVATE_FILE)
    sync(target)


@contextmanager
def _translated(source: Path) -> Iterator[None]:
    """Report write errors as those of the copy: the source is never written."""
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
    """Copy a file that never changes."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as copy, source.open("rb") as original:
        shutil.copyfileobj(original, copy)
        copy.flush()
        os.fsync(copy.fileno())


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- the manifest ---------------------------------------------------------------------------------------------------


def describe(path: Path) -> BackupFile:
    """Return the manifest entry of a file."""
    schema = _schema(path) if path.name in DATABASES else ()
    return BackupFile(name=path.name, size=path.stat().st_size, sha256=digest(path), schema=schema)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def verified(folder: Path) -> Manifest:
    """Return the manifest of a backup; raise if a file is missing, changed, or of an unknown schema."""
    manifest = _read(folder)
    for kept in manifest.files:
        path = folder / kept.name
        if not path.is_file():
            raise StorageError(f"the backup {folder} is incomplete: {kept.name} is missing. Restore another backup")
        if path.stat().st_size != kept.size or digest(path) != kept.sha256:
            raise StorageError(f"{folder / kept.name} has changed since the backup was written. Restore another backup")
        if kept.name in DATABASES:
            _check(path, DATABASES[kept.name])
    return manifest


def _read(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        if not folder.exists():
            raise UsageError(f"the backup {folder} does not exist: check the path") from None
        raise StorageError(
            f"{folder} is not a complete backup: {MANIFEST} is missing. Pass a folder that longstop backup has written"
        ) from None
    except msgspec.MsgspecError as error:
        raise StorageError(f"cannot read {path}: {error}. Restore another backup") from error
    if manifest.format != FORMAT:
        raise StorageError(
            f"the backup {folder} has the unknown format {manifest.format}: install a newer version of Longstop"
        )
    named = [kept.name for kept in manifest.files]
    if len(set(named)) != len(named) or not {"matches.db"} <= set(named) <= {*DATABASES, *PLAIN}:
        raise StorageError(f"{path} lists unknown files, or not all files of a backup. Restore another backup")
    return manifest


def _check(path: Path, database: Database) -> None:
    with translated(path), closing(open_readable(path)) as connection:
        pending(connection, migrations_of(database))
        verdict = connection.pragma("quick_check", 1)
    if verdict != "ok":
        raise StorageError(f"{path} is damaged ({verdict}). Restore another backup")


def _schema(path: Path) -> tuple[str, ...]:
    with translated(path), closing(open_readable(path)) as connection:
        try:
            return tuple(step["name"] for step in rows(connection, _SQL["applied_migrations"]))
        except apsw.SQLError:
            return ()  # the file was created only now
