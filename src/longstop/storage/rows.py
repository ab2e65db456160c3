"""Between rows and records: how the store spells what the model says."""

from datetime import datetime
from typing import Any

import msgspec

from longstop.clock import from_iso, to_iso
from longstop.errors import StorageError
from longstop.model.event import Content, Event, EventKey, Op, StoredEvent, content_hash
from longstop.model.match import MatchRef, MatchStatus, Phase, Sport
from longstop.model.snapshot import Provenance, Snapshot
from longstop.storage.base import Finding, FindingKind, MatchRow, StoredFinding
from longstop.storage.queries import Row

_content: msgspec.json.Decoder[Content] = msgspec.json.Decoder(Content)
_provenance = msgspec.json.Decoder(dict[str, Provenance])


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else to_iso(moment)


def moment(text: str | None) -> datetime | None:
    return None if text is None else from_iso(text)


def match_row(row: Row) -> MatchRow:
    return MatchRow(
        match_id=row["match_id"],
        ref=MatchRef(row["source"], row["source_id"]),
        phase=Phase(row["phase"]),
        status=MatchStatus(row["status"]),
        title=row["title"],
        start_at=moment(row["start_at"]),
        owner=row["owner"],
        epoch=row["epoch"],
        seq=row["seq"],
        created_at=from_iso(row["created_at"]),
        updated_at=moment(row["updated_at"]),
        completed_at=moment(row["completed_at"]),
        sport=Sport(row["sport"]),
    )


def stored_event(row: Row) -> StoredEvent:
    event = Event(
        key=EventKey.parse(row["key"]),
        rev=row["rev"],
        op=Op(row["op"]),
        content=_content_of(row),
        source_event_id=row["source_event_id"],
        position=row["position"],
    )
    return StoredEvent(event=event, seq=row["seq"], epoch=row["epoch"], captured_at=from_iso(row["captured_at"]))


def _content_of(row: Row) -> Content:
    try:
        return _content.decode(row["content"])
    except msgspec.DecodeError as error:
        raise StorageError(f"event {row['key']} of match {row['match_id']} cannot be read: {error}") from error


def event_columns(event: Event) -> dict[str, Any]:
    """Return the columns that the event itself decides; the rest is given by the transaction."""
    return {
        "key": str(event.key),
        "rev": event.rev,
        "kind": event.key.kind.value,
        "innings": event.key.innings,
        "over": event.key.over,
        "nth": event.key.nth,
        "side": event.key.side,
        "position": event.position,
        "op": event.op.value,
        "source_event_id": event.source_event_id,
        "content": msgspec.json.encode(event.content).decode(),
        "content_hash": content_hash(event.content, event.position),
    }


def snapshot(row: Row) -> Snapshot:
    return Snapshot(
        match_id=row["match_id"],
        sequence=row["sequence"],
        checksum=row["checksum"],
        payload=row["payload"],
        provenance=_provenance.decode(row["provenance"]),
        created_at=from_iso(row["created_at"]),
        scraper_id=row["scraper_id"],
        update_latency_ms=row["update_latency_ms"],
        data_source=row["data_source"],
    )


def finding(row: Row) -> Finding:
    return Finding(kind=FindingKind(row["kind"]), place=row["place"], detail=row["detail"])


def stored_finding(row: Row) -> StoredFinding:
    return StoredFinding(finding=finding(row), opened_at=from_iso(row["opened_at"]), closed_at=moment(row["closed_at"]))
