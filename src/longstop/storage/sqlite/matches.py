"""The match store on SQLite: `SqliteMatchStore` writes `matches.db`, `SqliteMatchReader` reads it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw
import msgspec
from msgspec.structs import replace

from longstop.clock import from_iso, iso_or_none, to_iso
from longstop.errors import EpochLost, StorageError, StoreDamaged
from longstop.model.data_finding import Finding, StoredFinding
from longstop.model.event import Event, EventKey, Op, StoredEvent, content_hash
from longstop.model.match import MatchRef, MatchRow, MatchStatus, Phase, move
from longstop.model.snapshot import SNAPSHOTS_KEPT, Snapshot, checksum
from longstop.model.source_queries_and_answers import Keys
from longstop.sports.base import EventKind
from longstop.sports.registry import sport_named
from longstop.storage.base import UNLIMITED, MatchBase, MatchFilter, MatchUpdate, Receipt, SnapshotDraft
from longstop.storage.sqlite.connection import (
    ReadOnlyDatabase,
    Row,
    Synchronous,
    columns_of,
    first_or_none,
    open_writable,
    records,
    row,
    rows,
    to_record,
)
from longstop.storage.sqlite.load_sql_and_migrate import Database, queries
from longstop.storage.sqlite.writer import Writer

_SQL = queries("matches/queries.sql")
T = TypeVar("T")

#: Columns that identify a version, so that comparing needs no decoding.
_SAMENESS = ("op", "source_event_id", "content_hash")


class SqliteMatchStore:
    """Writes matches. A call that has returned survives a power cut."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open the file; create and migrate it as needed; raise if it cannot be used."""
        writer = Writer(path, lambda: open_writable(path, Database.MATCHES, Synchronous.FULL))
        try:
            await writer.run(lambda _connection: None)
        except BaseException:
            await writer.aclose()
            raise
        return cls(writer)

    async def register(
        self, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, *, sport: str
    ) -> MatchRow:
        return await self._writer.run(lambda connection: _register(connection, ref, title, start_at, now, sport))

    async def link(self, ref: MatchRef, match_id: int) -> None:
        await self._writer.run(lambda connection: _link(connection, ref, match_id))

    async def claim(self, match_id: int, node: str) -> MatchRow:
        return await self._writer.run(lambda connection: _match(connection, "claim", match_id=match_id, owner=node))

    async def load(self, match_id: int) -> MatchBase:
        return await self._writer.run(lambda connection: _load(connection, match_id))

    async def unfinished(self) -> dict[int, tuple[MatchRef, ...]]:
        found = await self._writer.run(lambda connection: rows(connection, _SQL["unfinished"]))
        by_match = groupby(found, key=itemgetter("match_id"))
        return {match_id: tuple(map(_ref, feeds)) for match_id, feeds in by_match}

    async def save_update(self, update: MatchUpdate) -> Receipt:
        return await self._writer.run(lambda connection: _save_update(connection, update))

    async def check(self) -> None:
        await self._writer.check()

    async def aclose(self) -> None:
        await self._writer.aclose()


class SqliteMatchReader:
    """Reads committed data without waiting for the writer; empty until the file exists."""

    def __init__(self, path: Path, inline_ms: int | None = None) -> None:
        self._file = ReadOnlyDatabase(path, Database.MATCHES, inline_ms)

    async def find(self, ref: MatchRef) -> MatchRow | None:
        bindings = {"source": ref.source, "source_id": ref.source_id}
        return first_or_none(await self._file.rows(_SQL["match_of_ref"], bindings, match_row))

    async def match(self, match_id: int) -> MatchRow | None:
        return first_or_none(await self._file.rows(_SQL["match"], {"match_id": match_id}, match_row))

    async def matches(self, wanted: MatchFilter) -> list[MatchRow]:
        return await self._file.rows(_SQL["matches"], columns_of(wanted), match_row)

    async def events_after(self, match_id: int, seq: int, limit: int) -> list[StoredEvent]:
        bindings = {"match_id": match_id, "seq": seq, "limit": limit}
        return await self._file.rows(_SQL["events_after"], bindings, stored_event)

    async def current_events(self, match_id: int, seq: int = 0, limit: int = UNLIMITED) -> list[StoredEvent]:
        bindings = {"match_id": match_id, "seq": seq, "limit": limit}
        return await self._file.rows(_SQL["current_events_after"], bindings, stored_event)

    async def snapshots(self, match_id: int, limit: int = UNLIMITED) -> list[Snapshot]:
        return await self._file.rows(_SQL["snapshots"], {"match_id": match_id, "limit": limit}, snapshot)

    async def snapshot_bytes(self, match_id: int) -> int:
        return await self._count("snapshot_bytes", match_id)

    async def findings(self, match_id: int, limit: int = UNLIMITED) -> list[StoredFinding]:
        return await self._file.rows(_SQL["findings"], {"match_id": match_id, "limit": limit}, stored_finding)

    async def count_findings(self, match_id: int) -> int:
        return await self._count("count_findings", match_id)

    async def count_open_findings(self, match_id: int) -> int:
        return await self._count("count_open_findings", match_id)

    async def _count(self, statement: str, match_id: int) -> int:
        return sum(await self._file.rows(_SQL[statement], {"match_id": match_id}, itemgetter("number")))

    async def with_open_findings(self, first_id: int, last_id: int) -> set[int]:
        bindings = {"first_id": first_id, "last_id": last_id}
        return set(await self._file.rows(_SQL["with_open_findings"], bindings, itemgetter("match_id")))

    async def aclose(self) -> None:
        await self._file.aclose()


def _register(
    connection: apsw.Connection, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, sport: str
) -> MatchRow:
    names = {"source": ref.source, "source_id": ref.source_id}
    known = _record(connection, "match_of_ref", names, match_row)
    if known is not None:
        return known
    first = {"phase": Phase.DISCOVERED.value, "status": MatchStatus.UPCOMING.value, "created_at": to_iso(now)}
    shown = {"title": title, "start_at": iso_or_none(start_at), "sport": sport}
    [added] = rows(connection, _SQL["add_match"], {**names, **first, **shown})
    connection.execute(_SQL["add_ref"], {**names, "match_id": added["match_id"]})
    return match_row(added)


def _link(connection: apsw.Connection, ref: MatchRef, match_id: int) -> None:
    names = {"source": ref.source, "source_id": ref.source_id}
    known = row(connection, _SQL["match_of_ref"], names)
    if known is None:
        _match(connection, "match", match_id=match_id)
        if any(each["source"] == ref.source for each in rows(connection, _SQL["feeds"], {"match_id": match_id})):
            raise StorageError(f"match {match_id} already has a feed of {ref.source}: {ref} cannot be added")
        connection.execute(_SQL["add_ref"], {**names, "match_id": match_id})
    elif known["match_id"] != match_id:
        raise StorageError(
            f"{ref} already belongs to match {known['match_id']}: it cannot be added to match {match_id}"
        )


def _match(connection: apsw.Connection, statement: str, **columns: Any) -> MatchRow:
    """Return the match of a statement, or raise if there is none."""
    found = _record(connection, statement, columns, match_row)
    if found is None:
        raise StorageError(f"there is no match {columns['match_id']}")
    return found


def _records(connection: apsw.Connection, statement: str, columns: Row, decode: Callable[[Row], T]) -> list[T]:
    return records(connection, _SQL[statement], columns, decode)


def _record(connection: apsw.Connection, statement: str, columns: Row, decode: Callable[[Row], T]) -> T | None:
    return first_or_none(_records(connection, statement, columns, decode))


def _load(connection: apsw.Connection, match_id: int) -> MatchBase:
    of_match = {"match_id": match_id}
    names = rows(connection, _SQL["names"], of_match)
    return MatchBase(
        match=_match(connection, "match", match_id=match_id),
        events=tuple(_records(connection, "current_events", of_match, stored_event)),
        snapshot=_newest_snapshot(connection, match_id),
        open_findings=tuple(_records(connection, "open_findings", of_match, partial(to_record, Finding))),
        players={each["key"]: each["name"] for each in names if each["kind"] == "player"},
        teams={each["key"]: each["name"] for each in names if each["kind"] == "team"},
        feeds=tuple(map(_ref, rows(connection, _SQL["feeds"], of_match))),
        ids=_ids(_records(connection, "event_ids", of_match, _event_id)),
        keys=_keys(rows(connection, _SQL["match_keys"], of_match)),
    )


def _event_id(row: Row) -> tuple[str, EventKey, str]:
    return row["source"], EventKey.parse(row["key"]), row["source_event_id"]


def _ids(found: list[tuple[str, EventKey, str]]) -> dict[str, dict[EventKey, str]]:
    ids: dict[str, dict[EventKey, str]] = {}
    for source, key, source_event_id in found:
        ids.setdefault(source, {})[key] = source_event_id
    return ids


def _keys(found: list[Row]) -> dict[str, Keys]:
    maps: dict[str, dict[str, dict[str, str]]] = {}
    for each in found:
        maps.setdefault(each["source"], {"player": {}, "team": {}})[each["kind"]][each["key"]] = each["canonical"]
    return {source: Keys(players=kinds["player"], teams=kinds["team"]) for source, kinds in maps.items()}


# --- one accepted poll: everything below runs inside one transaction of the writer ---------------------------------


def _save_update(connection: apsw.Connection, update: MatchUpdate) -> Receipt:
    """Store what is new in an update and return the stored records; write nothing if nothing is new."""
    before = _owned(connection, update)
    changes = connection.total_changes()
    events, seq = _save_events(connection, update, before)
    taken = None if update.snapshot is None else _save_snapshot(connection, update, update.snapshot)
    _save_findings(connection, update)
    _save_names(connection, update.match_id, "player", update.players)
    _save_names(connection, update.match_id, "team", update.teams)
    _save_feed(connection, update)
    is_changed = connection.total_changes() > changes
    return Receipt(match=_save_match(connection, update, before, seq, is_changed), events=events, snapshot=taken)


def _newest_snapshot(connection: apsw.Connection, match_id: int) -> Snapshot | None:
    return _record(connection, "newest_snapshot", {"match_id": match_id}, snapshot)


def _owned(connection: apsw.Connection, update: MatchUpdate) -> MatchRow:
    match = _match(connection, "match", match_id=update.match_id)
    if update.epoch != match.epoch:
        raise EpochLost(
            f"match {match.match_id} is at epoch {match.epoch}, owned by {match.owner}: epoch {update.epoch} is stale"
        )
    return match


def _save_events(
    connection: apsw.Connection, update: MatchUpdate, before: MatchRow
) -> tuple[tuple[StoredEvent, ...], int]:
    """Return the stored events and the highest sequence number."""
    saved, seq = [], before.seq
    captured_at = to_iso(update.captured_at)
    for event in update.events:
        columns = {"match_id": update.match_id, **event_columns(event, before.sport)}
        stored = _stored_before(connection, columns, before.sport)
        if stored is None:
            seq += 1
            _add_version(connection, columns | {"seq": seq, "epoch": update.epoch, "captured_at": captured_at})
            stored = StoredEvent(event=event, seq=seq, epoch=update.epoch, captured_at=from_iso(captured_at))
        saved.append(stored)
    return tuple(saved), seq


def _stored_before(connection: apsw.Connection, columns: Row, sport: str) -> StoredEvent | None:
    """Return the version if it is already stored, so that an update can be repeated."""
    found = row(connection, _SQL["version"], columns)
    if found is None:
        return None
    if any(found[name] != columns[name] for name in _SAMENESS):
        problem = "match {match_id} already has another revision {rev} of {key}: versions are immutable"
        raise StorageError(problem.format(**columns))
    return stored_event(found, sport)


def _add_version(connection: apsw.Connection, columns: Row) -> None:
    current = row(connection, _SQL["current_rev"], columns)
    latest = 0 if current is None else current["rev"]
    if columns["rev"] != latest + 1:
        problem = "match {match_id} has {key} at revision {latest}: revision {rev} does not follow"
        raise StorageError(problem.format(**columns, latest=latest))
    connection.execute(_SQL["add_version"], columns)
    connection.execute(_SQL["move_event"], columns)


def _save_snapshot(connection: apsw.Connection, update: MatchUpdate, draft: SnapshotDraft) -> Snapshot:
    newest = _newest_snapshot(connection, update.match_id)
    if newest is not None and newest.checksum == draft.checksum:
        return newest
    columns = columns_of(draft) | {
        "match_id": update.match_id,
        "sequence": 1 if newest is None else newest.sequence + 1,
        "provenance": msgspec.json.encode(draft.provenance).decode(),
        "created_at": to_iso(update.captured_at),
        "scraper_id": update.scraper_id,
    }
    [added] = rows(connection, _SQL["add_snapshot"], columns)
    connection.execute(_SQL["prune_snapshots"], {**columns, "kept": SNAPSHOTS_KEPT})
    return snapshot(added)


def _save_findings(connection: apsw.Connection, update: MatchUpdate) -> None:
    """Close findings that are no longer listed, and open new ones."""
    named = {(finding.kind, finding.place): finding for finding in update.findings}
    at = to_iso(update.captured_at)
    for stored in rows(connection, _SQL["open_findings"], {"match_id": update.match_id}):
        if (stored["kind"], stored["place"]) not in named:
            connection.execute(_SQL["close_finding"], {"finding_id": stored["finding_id"], "closed_at": at})
    for finding in named.values():
        columns = columns_of(finding) | {"match_id": update.match_id, "opened_at": at}
        to_record(Finding, columns)  # a kind that only a plug-in knows would make the match unreadable
        connection.execute(_SQL["open_finding"], columns)


def _save_names(connection: apsw.Connection, match_id: int, kind: str, learnt: Mapping[str, str]) -> None:
    for key, name in learnt.items():
        connection.execute(_SQL["learn_name"], {"match_id": match_id, "kind": kind, "key": key, "name": name})


def _save_feed(connection: apsw.Connection, update: MatchUpdate) -> None:
    """Store the source's ids and keys of events, players and teams of other sources."""
    feed = {"match_id": update.match_id, "source": update.source}
    for key, source_event_id in update.ids.items():
        connection.execute(_SQL["learn_event_id"], {**feed, "key": str(key), "source_event_id": source_event_id})
    for kind, keys in (("player", update.keys.players), ("team", update.keys.teams)):
        for theirs, canonical in keys.items():
            connection.execute(_SQL["learn_key"], {**feed, "kind": kind, "key": theirs, "canonical": canonical})


def _save_match(
    connection: apsw.Connection, update: MatchUpdate, before: MatchRow, seq: int, is_changed: bool
) -> MatchRow:
    phase = move(before.phase, update.phase)
    after = replace(before, phase=phase, status=update.status, title=update.title, start_at=update.start_at)
    if not is_changed and columns_of(after) == columns_of(before):
        return before
    completed_at = _completed_at(before, update)
    # The age after a restart counts from here: a pause is not a poll.
    updated_at = update.captured_at if update.source else before.updated_at
    after = replace(after, seq=seq, updated_at=updated_at, completed_at=completed_at)
    return _match(connection, "save_match", **columns_of(after))


def _completed_at(before: MatchRow, update: MatchUpdate) -> datetime | None:
    if update.phase is Phase.COMPLETED:
        return before.completed_at or update.captured_at
    return before.completed_at if update.phase is Phase.ARCHIVED else None


# --- conversion of rows and records -----------------------------------------------------------------------------------


def match_row(row: Row) -> MatchRow:
    return to_record(MatchRow, row | {"ref": _ref(row)})


def _ref(row: Row) -> MatchRef:
    return MatchRef(row["source"], row["source_id"])


def stored_event(row: Row, sport: str | None = None) -> StoredEvent:
    """Return an event version; a row joined with its match has the sport."""
    # The bytes that were hashed, so that no version of Longstop encodes them in another way.
    position = "null" if row["position"] is None else row["position"]
    if sha256(f"[{row['content']},{position}]".encode()).hexdigest() != row["content_hash"]:
        raise StoreDamaged("the content does not have its hash")
    event = Event(
        key=EventKey.parse(row["key"]),
        rev=row["rev"],
        op=Op(row["op"]),
        content=_decoder(sport or row["sport"], row["kind"]).decode(row["content"]),
        source_event_id=row["source_event_id"],
        position=row["position"],
        source=row["source"],
    )
    return StoredEvent(event=event, seq=row["seq"], epoch=row["epoch"], captured_at=from_iso(row["captured_at"]))


@cache
def _decoder(sport: str, kind: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(sport_named(sport).kinds[kind].content)


@cache
def _kind(sport: str, kind: str) -> EventKind:
    try:
        return sport_named(sport).kinds[kind]
    except KeyError:
        raise StorageError(f"{sport} has no events of kind {kind!r}") from None


def event_columns(event: Event, sport: str) -> Row:
    """Return the columns that depend on the event alone."""
    # The columns are older than sport plug-ins: other fields are in the key only.
    fields = _kind(sport, event.key.kind).fields
    if len(fields) != len(event.key.numbers):
        raise StorageError(f"{event.key} is not a key of {sport}: {event.key.kind} has {len(fields)} numbers")
    numbers = dict(zip(fields, event.key.numbers, strict=True))
    return columns_of(event) | {
        "key": str(event.key),
        "kind": event.key.kind,
        **{name: numbers.get(name, 0) for name in ("innings", "over", "nth")},
        "side": event.key.side,
        "content": msgspec.json.encode(event.content).decode(),
        "content_hash": content_hash(event.content, event.position),
    }


def snapshot(row: Row) -> Snapshot:
    found = to_record(Snapshot, row | {"provenance": msgspec.json.decode(row["provenance"])})
    if checksum(found.payload) != found.checksum:
        raise StoreDamaged("the payload does not have its checksum")
    return found


def stored_finding(row: Row) -> StoredFinding:
    return to_record(StoredFinding, row | {"finding": row})
