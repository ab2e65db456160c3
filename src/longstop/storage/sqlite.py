"""The store on SQLite: `SqliteMatchStore` for the scraper that writes, `SqliteMatchReader` for whoever reads."""

from datetime import datetime
from pathlib import Path
from typing import Self

import apsw

from longstop.clock import to_iso
from longstop.errors import StorageError
from longstop.model.event import StoredEvent
from longstop.model.match import MatchRef, MatchStatus, Phase, Sport
from longstop.model.snapshot import Snapshot
from longstop.storage.base import MatchBase, MatchFilter, MatchRow, MatchUpdate, Receipt, StoredFinding
from longstop.storage.connection import Synchronous, open_writable
from longstop.storage.migrate import Database
from longstop.storage.queries import queries, row, rows
from longstop.storage.readonly import ReadOnlyDatabase
from longstop.storage.rows import finding, iso, match_row, snapshot, stored_event, stored_finding
from longstop.storage.update import known_match, newest_snapshot, save_update
from longstop.storage.writer import Writer

_SQL = queries("matches/queries.sql")


class SqliteMatchStore:
    """The writing side. What it returned from survives a power cut."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open the file, made and migrated when needed; raise at once when it cannot be used."""
        writer = Writer(path, lambda: open_writable(path, Database.MATCHES, Synchronous.FULL))
        try:
            await writer.run(lambda _connection: None)
        except BaseException:
            await writer.aclose()
            raise
        return cls(writer)

    async def register(
        self, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, *, sport: Sport = Sport.CRICKET
    ) -> MatchRow:
        return await self._writer.run(lambda connection: _register(connection, ref, title, start_at, now, sport))

    async def claim(self, match_id: int, node: str) -> MatchRow:
        return await self._writer.run(lambda connection: _claim(connection, match_id, node))

    async def load(self, match_id: int) -> MatchBase:
        return await self._writer.run(lambda connection: _load(connection, match_id))

    async def unfinished(self) -> list[MatchRow]:
        found = await self._writer.run(lambda connection: rows(connection, _SQL["unfinished"]))
        return [match_row(each) for each in found]

    async def save_update(self, update: MatchUpdate) -> Receipt:
        return await self._writer.run(lambda connection: save_update(connection, update))

    async def aclose(self) -> None:
        await self._writer.aclose()


class SqliteMatchReader:
    """The reading side: sees what is committed, never waits for the writer, knows nothing until there is a file."""

    def __init__(self, path: Path, patience_ms: int | None = None) -> None:
        self._file = ReadOnlyDatabase(path, Database.MATCHES, patience_ms)

    def find(self, ref: MatchRef) -> MatchRow | None:
        found = self._file.rows(_SQL["match_of_ref"], {"source": ref.source, "source_id": ref.source_id})
        return match_row(found[0]) if found else None

    def match(self, match_id: int) -> MatchRow | None:
        found = self._file.rows(_SQL["match"], {"match_id": match_id})
        return match_row(found[0]) if found else None

    def matches(self, wanted: MatchFilter) -> list[MatchRow]:
        bindings = {
            "status": wanted.status and wanted.status.value,
            "phase": wanted.phase and wanted.phase.value,
            "source": wanted.source,
            "sport": wanted.sport and wanted.sport.value,
            "after_id": wanted.after_id,
            "limit": wanted.limit,
        }
        return [match_row(each) for each in self._file.rows(_SQL["matches"], bindings)]

    def events_after(self, match_id: int, seq: int, limit: int) -> list[StoredEvent]:
        found = self._file.rows(_SQL["events_after"], {"match_id": match_id, "seq": seq, "limit": limit})
        return [stored_event(each) for each in found]

    def current_events(self, match_id: int) -> list[StoredEvent]:
        return [stored_event(each) for each in self._file.rows(_SQL["current_events"], {"match_id": match_id})]

    def snapshots(self, match_id: int) -> list[Snapshot]:
        return [snapshot(each) for each in self._file.rows(_SQL["snapshots"], {"match_id": match_id})]

    def findings(self, match_id: int) -> list[StoredFinding]:
        return [stored_finding(each) for each in self._file.rows(_SQL["findings"], {"match_id": match_id})]

    def close(self) -> None:
        self._file.close()


def _register(
    connection: apsw.Connection, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, sport: Sport
) -> MatchRow:
    names = {"source": ref.source, "source_id": ref.source_id}
    known = row(connection, _SQL["match_of_ref"], names)
    if known is not None:
        return match_row(known)
    first = {"phase": Phase.DISCOVERED.value, "status": MatchStatus.UPCOMING.value, "created_at": to_iso(now)}
    told = {"title": title, "start_at": iso(start_at), "sport": sport.value}
    [added] = rows(connection, _SQL["add_match"], {**names, **first, **told})
    connection.execute(_SQL["add_ref"], {**names, "match_id": added["match_id"]})
    return match_row(added)


def _claim(connection: apsw.Connection, match_id: int, node: str) -> MatchRow:
    claimed = row(connection, _SQL["claim"], {"match_id": match_id, "owner": node})
    if claimed is None:
        raise StorageError(f"there is no match {match_id}")
    return match_row(claimed)


def _load(connection: apsw.Connection, match_id: int) -> MatchBase:
    of_match = {"match_id": match_id}
    names = rows(connection, _SQL["names"], of_match)
    return MatchBase(
        match=known_match(connection, match_id),
        events=tuple(stored_event(each) for each in rows(connection, _SQL["current_events"], of_match)),
        snapshot=newest_snapshot(connection, match_id),
        open_findings=tuple(finding(each) for each in rows(connection, _SQL["open_findings"], of_match)),
        players={each["key"]: each["name"] for each in names if each["kind"] == "player"},
        teams={each["key"]: each["name"] for each in names if each["kind"] == "team"},
    )
