"""Damage to the files of a store, done to a data directory as a broken disk or a mistake does it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from bench.chaos.hostile_schedule import Damage

_HEADER = 100
#: The file that a damage strikes, which a refusal must name.
FILES = {
    Damage.HOT_BYTE: "hot.db",
    Damage.HOT_DELETED: "hot.db",
    Damage.OPS_HEADER: "ops.db",
    Damage.MATCHES_CUT: "matches.db",
    Damage.MATCHES_DELETED: "matches.db",
    Damage.MATCHES_EMPTIED: "matches.db",
    Damage.WAL_REMOVED: "matches.db",
}


def damage(data: Path, kind: Damage, *, left: float = 0.0) -> None:
    """Damage a file; `left` is the part of a cut file that remains."""
    path = data / FILES[kind]
    match kind:
        case Damage.HOT_BYTE:
            _settle(path)
            _change_byte(path)
        case Damage.OPS_HEADER:
            _settle(path)
            with path.open("r+b") as file:
                file.write(b"\xa5" * _HEADER)
        case Damage.MATCHES_CUT:
            _settle(path)
            with path.open("r+b") as file:
                file.truncate(int(path.stat().st_size * left))
        case Damage.MATCHES_DELETED:
            _settle(path)
            path.unlink()
        case Damage.MATCHES_EMPTIED:
            with path.open("r+b") as file:
                file.truncate(0)
        case Damage.WAL_REMOVED:
            path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
        case Damage.HOT_DELETED:
            for each in (path, *path.parent.glob(f"{path.name}-*")):
                each.unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Bring everything into the main file: what a log can repair is no damage."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA journal_mode=WAL")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _change_byte(path: Path) -> None:
    """Change one byte inside the JSON of the live view."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE views SET record = '[' || substr(record, 2)")
