"""What a backup holds, and whether it still does: every file with its size, its checksum and its schema."""

from datetime import datetime
from hashlib import file_digest
from pathlib import Path

import apsw
import msgspec
from msgspec import Struct

from longstop.errors import StorageError
from longstop.storage.sqlite.connection import open_readable, rows, translated
from longstop.storage.sqlite.schema import Database, migrations_of, pending, queries

MANIFEST = "manifest.json"
FORMAT = 1
#: The databases of a backup. The live view is left out: it is built again.
DATABASES = {"matches.db": Database.MATCHES, "ops.db": Database.OPS}
#: Small files: what signs tokens. Not what a node is called: two directories are two nodes.
PLAIN = ("token-secret",)

_SQL = queries("migrations.sql")


class KeptFile(Struct, frozen=True, kw_only=True):
    name: str
    size: int
    sha256: str
    #: The steps that the schema of a database has taken, by their file names.
    schema: tuple[str, ...] = ()


class Manifest(Struct, frozen=True, kw_only=True):
    format: int
    #: The version of Longstop that made the backup.
    version: str
    created_at: datetime
    node: str
    files: tuple[KeptFile, ...]


def describe(path: Path) -> KeptFile:
    """Return what a file is now."""
    schema = _schema(path) if path.name in DATABASES else ()
    return KeptFile(name=path.name, size=path.stat().st_size, sha256=digest(path), schema=schema)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def verified(folder: Path) -> Manifest:
    """Return the manifest of a backup whose files are all what they were, and of a schema that we know."""
    manifest = _read(folder)
    for kept in manifest.files:
        path = folder / kept.name
        if not path.is_file():
            raise StorageError(f"the backup {folder} lacks {kept.name}: take another one")
        if path.stat().st_size != kept.size or digest(path) != kept.sha256:
            raise StorageError(f"{kept.name} of the backup {folder} is not what it was: take another one")
        if kept.name in DATABASES:
            with translated(path):
                _check(path, DATABASES[kept.name])
    return manifest


def _read(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise StorageError(f"{folder} is no whole backup: it has no {MANIFEST}") from None
    except msgspec.MsgspecError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    if manifest.format != FORMAT:
        raise StorageError(f"the backup {folder} has the unknown format {manifest.format}: install a newer version")
    named = [kept.name for kept in manifest.files]
    if len(set(named)) != len(named) or not {"matches.db"} <= set(named) <= {*DATABASES, *PLAIN}:
        raise StorageError(f"{path} names files that are not of a backup, or not all of them")
    return manifest


def _check(path: Path, database: Database) -> None:
    connection = open_readable(path)
    try:
        pending(connection, migrations_of(database))
        verdict = connection.pragma("quick_check", 1)
    finally:
        connection.close()
    if verdict != "ok":
        raise StorageError(f"{path.name} of the backup is damaged ({verdict}): take another one")


def _schema(path: Path) -> tuple[str, ...]:
    with translated(path):
        connection = open_readable(path)
        try:
            return tuple(step["name"] for step in rows(connection, _SQL["applied_migrations"]))
        except apsw.SQLError:
            return ()  # a file that has only just been made
        finally:
            connection.close()
