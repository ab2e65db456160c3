"""Storing one accepted poll. Everything here runs inside one transaction of the writer."""

from collections.abc import Mapping
from datetime import datetime

import apsw
import msgspec

from longstop.clock import to_iso
from longstop.errors import EpochLost, StorageError
from longstop.model.event import StoredEvent
from longstop.model.match import Phase, move
from longstop.model.snapshot import SNAPSHOTS_KEPT, Snapshot
from longstop.storage.base import MatchRow, MatchUpdate, Receipt, SnapshotDraft
from longstop.storage.queries import Row, queries, row, rows
from longstop.storage.rows import event_columns, iso, match_row, snapshot, stored_event

_SQL = queries("matches/queries.sql")

#: What makes two versions the same one: comparing them needs no decoding.
_SAMENESS = ("op", "source_event_id", "content_hash")


def save_update(connection: apsw.Connection, update: MatchUpdate) -> Receipt:
    """Store what is new in an update and return the whole as stored; nothing new writes nothing."""
    before = _owned(connection, update)
    changes = connection.total_changes()
    events, seq = _save_events(connection, update, before.seq)
    taken = None if update.snapshot is None else _save_snapshot(connection, update, update.snapshot)
    _save_findings(connection, update)
    _save_names(connection, update.match_id, "player", update.players)
    _save_names(connection, update.match_id, "team", update.teams)
    is_changed = connection.total_changes() > changes
    return Receipt(match=_save_match(connection, update, before, seq, is_changed), events=events, snapshot=taken)


def known_match(connection: apsw.Connection, match_id: int) -> MatchRow:
    found = row(connection, _SQL["match"], {"match_id": match_id})
    if found is None:
        raise StorageError(f"there is no match {match_id}")
    return match_row(found)


def newest_snapshot(connection: apsw.Connection, match_id: int) -> Snapshot | None:
    found = row(connection, _SQL["newest_snapshot"], {"match_id": match_id})
    return None if found is None else snapshot(found)


def _owned(connection: apsw.Connection, update: MatchUpdate) -> MatchRow:
    match = known_match(connection, update.match_id)
    if update.epoch != match.epoch:
        raise EpochLost(
            f"match {match.match_id} is at epoch {match.epoch}, owned by {match.owner}: epoch {update.epoch} is refused"
        )
    return match


def _save_events(connection: apsw.Connection, update: MatchUpdate, seq: int) -> tuple[tuple[StoredEvent, ...], int]:
    """Return the events as stored and the highest sequence number given out."""
    saved = []
    for event in update.events:
        columns = {"match_id": update.match_id, **event_columns(event)}
        stored = _stored_before(connection, columns)
        if stored is None:
            seq += 1
            given = {"seq": seq, "epoch": update.epoch, "captured_at": to_iso(update.captured_at)}
            stored = _add_version(connection, columns | given)
        saved.append(stored)
    return tuple(saved), seq


def _stored_before(connection: apsw.Connection, columns: Row) -> StoredEvent | None:
    """Return the version if it is there already, so that sending an update twice does no harm."""
    found = row(connection, _SQL["version"], columns)
    if found is None:
        return None
    if any(found[name] != columns[name] for name in _SAMENESS):
        raise StorageError(
            "match {match_id} has another revision {rev} of {key}: a version never changes".format(**columns)
        )
    return stored_event(found)


def _add_version(connection: apsw.Connection, columns: Row) -> StoredEvent:
    current = row(connection, _SQL["current_rev"], columns)
    latest = 0 if current is None else current["rev"]
    if columns["rev"] != latest + 1:
        raise StorageError(
            "match {match_id} has {key} at revision {latest}: revision {rev} does not follow".format(
                **columns, latest=latest
            )
        )
    added = _returned(connection, "add_version", columns)
    connection.execute(_SQL["move_event"], columns)
    return stored_event(added)


def _save_snapshot(connection: apsw.Connection, update: MatchUpdate, draft: SnapshotDraft) -> Snapshot:
    newest = newest_snapshot(connection, update.match_id)
    if newest is not None and newest.checksum == draft.checksum:
        return newest
    sequence = 1 if newest is None else newest.sequence + 1
    columns = {
        "match_id": update.match_id,
        "sequence": sequence,
        "checksum": draft.checksum,
        "payload": draft.payload,
        "provenance": msgspec.json.encode(draft.provenance).decode(),
        "created_at": to_iso(update.captured_at),
        "scraper_id": update.scraper_id,
        "update_latency_ms": draft.update_latency_ms,
    }
    added = snapshot(_returned(connection, "add_snapshot", columns))
    too_old = {"match_id": update.match_id, "sequence": sequence - SNAPSHOTS_KEPT}
    connection.execute(_SQL["prune_snapshots"], too_old)
    return added


def _save_findings(connection: apsw.Connection, update: MatchUpdate) -> None:
    """Close what is no longer named, open what is new."""
    named = {(finding.kind, finding.place): finding for finding in update.findings}
    at = to_iso(update.captured_at)
    for stored in rows(connection, _SQL["open_findings"], {"match_id": update.match_id}):
        if (stored["kind"], stored["place"]) not in named:
            connection.execute(_SQL["close_finding"], {"finding_id": stored["finding_id"], "closed_at": at})
    for finding in named.values():
        columns = {"kind": finding.kind.value, "place": finding.place, "detail": finding.detail}
        connection.execute(_SQL["open_finding"], {"match_id": update.match_id, "opened_at": at, **columns})


def _save_names(connection: apsw.Connection, match_id: int, kind: str, learnt: Mapping[str, str]) -> None:
    for key, name in learnt.items():
        connection.execute(_SQL["learn_name"], {"match_id": match_id, "kind": kind, "key": key, "name": name})


def _save_match(
    connection: apsw.Connection, update: MatchUpdate, before: MatchRow, seq: int, is_changed: bool
) -> MatchRow:
    told = {
        "phase": move(before.phase, update.phase).value,
        "status": update.status.value,
        "title": update.title,
        "start_at": iso(update.start_at),
    }
    known = {"phase": before.phase, "status": before.status, "title": before.title, "start_at": iso(before.start_at)}
    if not is_changed and told == known:
        return before
    completed_at = _completed_at(before, update)
    given = {"match_id": update.match_id, "seq": seq, "updated_at": iso(update.captured_at)}
    return match_row(_returned(connection, "save_match", {**told, **given, "completed_at": iso(completed_at)}))


def _completed_at(before: MatchRow, update: MatchUpdate) -> datetime | None:
    if update.phase is Phase.COMPLETED:
        return before.completed_at or update.captured_at
    return before.completed_at if update.phase is Phase.ARCHIVED else None


def _returned(connection: apsw.Connection, name: str, columns: Row) -> Row:
    [returned] = rows(connection, _SQL[name], columns)
    return returned
