"""Records as JSON: the one place that knows how an answer is spelled. All of it is pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from longstop.api.view import MatchView, record_age, sync_of
from longstop.clock import Moment, to_iso
from longstop.model.event import (
    NOT_CRITICAL,
    SIDED,
    Event,
    EventKey,
    EventKind,
    StoredEvent,
    is_football,
    order_of_play,
)
from longstop.model.match import MonitoringRecord, Sport, SyncState
from longstop.model.snapshot import Snapshot
from longstop.storage.base import MatchRow, StoredFinding

#: How many numbers of a key of cricket mean something: a result has none, a delivery has innings, over and nth.
_KEY_DEPTH = {
    EventKind.RESULT: 0,
    EventKind.INNINGS: 1,
    EventKind.OVER: 2,
    EventKind.INFERRED: 2,
    EventKind.DELIVERY: 3,
}
_NUMBERS = ("innings", "over", "nth")


def data_path(sport: Sport) -> str:
    """Return what the paths of a sport's routes begin with."""
    return f"/{sport}-data"


def match_path(match: MatchRow | MonitoringRecord) -> str:
    return f"{data_path(match.sport)}/match-info/{match.match_id}"


def iso_or_none(moment: datetime | None) -> str | None:
    return to_iso(moment) if moment else None


def metadata(view: MatchView, open_findings: int, now: Moment) -> dict[str, Any]:
    """Return what is said about a payload, beside it."""
    return {
        "scraped_at": to_iso(view.polled_at),
        "data_age_seconds": view.age_at(now),
        "captured_at": to_iso(view.captured_at),
        "sequence": view.sequence,
        "checksum": view.checksum,
        "scraper_id": view.scraper_id,
        "source": "scraper",
        "sync": view.sync.value,
        "phase": view.match.phase.value,
        "open_findings": open_findings,
    }


def splice_metadata(payload: bytes, about: dict[str, Any]) -> bytes:
    """Put `_metadata` before the payload's final brace; the stored bytes stay as they are."""
    comma = b"" if payload == b"{}" else b","
    return b"".join((payload[:-1], comma, b'"_metadata":', msgspec.json.encode(about), b"}"))


def age_headers(view: MatchView | None, now: Moment) -> dict[str, str]:
    """Return the headers that say how old an answer is; a match never read has no age, rather than a made-up one."""
    if view is None:
        return {"X-Data-Sync": SyncState.RECOVERING.value}
    return {
        "X-Data-Freshness": to_iso(view.polled_at),
        "X-Data-Age-Seconds": f"{view.age_at(now):.3f}",
        "X-Data-Sync": view.sync.value,
    }


def match_entry(match: MatchRow, record: MonitoringRecord | None, now: Moment) -> dict[str, Any]:
    """Return a match's line in the list."""
    polled_at = record.last_poll_at if record else None
    return {
        "matchId": match.match_id,
        "match_id": str(match.ref),
        "title": match.title,
        "status": match.status.value,
        "phase": match.phase.value,
        "start_time": iso_or_none(match.start_at),
        "data_age_seconds": record_age(record, now),
        "last_poll_at": iso_or_none(polled_at),
        "sync": sync_of(match, record).value,
        "url": match_path(match),
    }


def event_entry(stored: StoredEvent, source: str) -> dict[str, Any]:
    """Return one event version."""
    event = stored.event
    data: dict[str, Any] = msgspec.to_builtins(event.content)
    del data["kind"]
    return {
        "seq": stored.seq,
        "key": str(event.key),
        "kind": event.key.kind.value,
        "rev": event.rev,
        "op": event.op.value,
        **(_football_place(event.key) if is_football(event.content) else _cricket_place(event)),
        "critical": event.key.kind not in NOT_CRITICAL,
        "source": source,
        "source_event_id": event.source_event_id,
        "captured_at": to_iso(stored.captured_at),
        "data": data,
    }


def events_page(match: MatchRow, events: Sequence[StoredEvent], next_after: int, has_more: bool) -> dict[str, Any]:
    return {
        "matchId": match.match_id,
        "match_id": str(match.ref),
        "events": [event_entry(stored, match.ref.source) for stored in events],
        "next_after": next_after,
        "has_more": has_more,
    }


def history(match: MatchRow, kept: Sequence[Snapshot]) -> dict[str, Any]:
    return {
        "matchId": match.match_id,
        "match_id": str(match.ref),
        "snapshots": [snapshot_entry(snapshot) for snapshot in kept],
    }


def snapshot_entry(snapshot: Snapshot) -> dict[str, Any]:
    """Return one snapshot; its payload keeps the bytes that the checksum is of."""
    return {
        "sequence": snapshot.sequence,
        "checksum": snapshot.checksum,
        "created_at": to_iso(snapshot.created_at),
        "scraper_id": snapshot.scraper_id,
        "update_latency_ms": snapshot.update_latency_ms,
        "data_source": snapshot.data_source,
        "provenance": {
            field: {"source": said.source, "confidence": said.confidence, "at": to_iso(said.at)}
            for field, said in snapshot.provenance.items()
        },
        "payload": msgspec.Raw(snapshot.payload),
    }


def findings(match: MatchRow, found: Sequence[StoredFinding], limit: int) -> dict[str, Any]:
    """Return the first gaps and mismatches, and how many there are in all."""
    return {
        "matchId": match.match_id,
        "match_id": str(match.ref),
        "open": sum(stored.closed_at is None for stored in found),
        "total": len(found),
        "findings": [finding_entry(stored) for stored in found[:limit]],
    }


def finding_entry(stored: StoredFinding) -> dict[str, Any]:
    return {
        "kind": stored.finding.kind.value,
        "place": stored.finding.place,
        "detail": stored.finding.detail,
        "opened_at": to_iso(stored.opened_at),
        "closed_at": iso_or_none(stored.closed_at),
    }


def in_order_of_play(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Return the live ones as they happened: deliveries by position, then the over's end, the innings', the result."""
    return sorted((stored for stored in events if stored.event.is_live), key=lambda stored: order_of_play(stored.event))


def _cricket_place(event: Event) -> dict[str, Any]:
    key, depth = event.key, _KEY_DEPTH[event.key.kind]
    numbers = zip(_NUMBERS, (key.innings, key.over, key.nth), strict=True)
    said = {name: number if place < depth else None for place, (name, number) in enumerate(numbers)}
    return {**said, "position": event.position}


def _football_place(key: EventKey) -> dict[str, Any]:
    """Return side and number; a period has no side, and a result neither."""
    return {
        "side": key.side if key.kind in SIDED else None,
        "nth": None if key.kind is EventKind.RESULT else key.nth,
    }
