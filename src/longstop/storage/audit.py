"""The audit on SQLite: what was done without a person, in `ops.db`; any process writes it, anybody reads it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from longstop.clock import from_iso, to_iso
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.storage.migrate import Database
from longstop.storage.queries import Row, queries
from longstop.storage.readonly import ReadOnlyDatabase
from longstop.storage.reopened import ReopenedDatabase

_SQL = queries("ops/queries.sql")

#: So many are kept: of every kind the newest, so that a storm of one does not push out the others.
KEPT = 100
#: Of the same kind and subject, so many; the last of them counts the older ones.
KEPT_OF_THE_SAME = 10


class RecoveryWriter:
    """Writes entries; one of the same id is written over."""

    def __init__(self, path: Path) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)

    def write(self, recoveries: Iterable[Recovery]) -> None:
        """Write all or none, and let go of what is too much."""
        with self._file.transaction() as connection:
            for recovery in recoveries:
                connection.execute(_SQL["put_recovery"], _columns(recovery))
            connection.execute(_SQL["count_same_recoveries"], {"kept": KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_same_recoveries"], {"kept": KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_recoveries"], {"kept": KEPT})

    def give_up(self, process: str, observed: str) -> None:
        """Close what a process has begun and not seen through; for its next life, before that writes anything."""
        with self._file.transaction() as connection:
            connection.execute(_SQL["give_up_recoveries"], {"process": process, "observed": observed})

    def close(self) -> None:
        self._file.close()


class RecoveryReader:
    """Reads entries while others write them, and when nothing runs."""

    def __init__(self, path: Path) -> None:
        self._file = ReadOnlyDatabase(path, Database.OPS)

    def recoveries(self, limit: int = KEPT) -> list[Recovery]:
        """Return the newest first."""
        return [_recovery(each) for each in self._file.rows(_SQL["recoveries"], {"limit": limit})]

    def close(self) -> None:
        self._file.close()


def _columns(recovery: Recovery) -> dict[str, Any]:
    after = recovery.pids_after
    return {
        "id": recovery.id,
        "kind": recovery.kind.value,
        "trigger": recovery.trigger,
        "subject": recovery.subject,
        "process": recovery.process,
        "began_at": to_iso(recovery.began_at),
        "duration_seconds": recovery.duration_seconds,
        "pids_before": msgspec.json.encode(recovery.pids_before).decode(),
        "pids_after": None if after is None else msgspec.json.encode(after).decode(),
        "outcome": recovery.outcome.value,
        "observed": recovery.observed,
        "count": recovery.count,
    }


def _recovery(row: Row) -> Recovery:
    return Recovery(
        id=row["id"],
        kind=RecoveryKind(row["kind"]),
        trigger=row["trigger"],
        subject=row["subject"],
        process=row["process"],
        began_at=from_iso(row["began_at"]),
        duration_seconds=row["duration_seconds"],
        pids_before=_pids(row["pids_before"]) or (),
        pids_after=_pids(row["pids_after"]),
        outcome=RecoveryOutcome(row["outcome"]),
        observed=row["observed"],
        count=row["count"],
    )


def _pids(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else msgspec.json.decode(text, type=tuple[int, ...])
