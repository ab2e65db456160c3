"""JSON documents of the data routes: a match with its age, events, snapshots, findings. Pure functions."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from longstop.clock import Moment, iso_or_none, to_iso
from longstop.model.data_finding import StoredFinding
from longstop.model.event import StoredEvent
from longstop.model.match import MatchRow, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState, Unreliability
from longstop.model.snapshot import Snapshot
from longstop.sports.base import Sport
from longstop.sports.registry import sport_named
from longstop.storage.base import HotRow


class MatchView(Struct, frozen=True, kw_only=True):
    """A payload with its age and sync state."""

    match: MatchRow
    #: `None` when the match is not watched: then its age counts from the last change.
    record: MonitoringRecord | None
    payload: bytes
    checksum: str
    sequence: int
    captured_at: datetime
    scraper_id: str

    @property
    def polled_at(self) -> datetime:
        """Return when the last accepted poll was; the age counts from here."""
        return (self.record.last_poll_at if self.record else None) or self.captured_at

    @property
    def sync(self) -> SyncState:
        return sync_of(self.match, self.record)

    def age_at(self, now: Moment) -> float:
        return shown_age(now.seconds_since(self.polled_at, self.record.last_poll_monotonic if self.record else None))


def from_hot(match: MatchRow, row: HotRow) -> MatchView | None:
    """Return the view from the live row; `None` while the row has no payload."""
    return None if row.payload is None else MatchView(match=match, **asdict(row))


def from_store(match: MatchRow, snapshot: Snapshot, record: MonitoringRecord | None) -> MatchView:
    return MatchView(
        match=match,
        record=record,
        payload=snapshot.payload,
        checksum=snapshot.checksum,
        sequence=snapshot.sequence,
        captured_at=snapshot.created_at,
        scraper_id=snapshot.scraper_id,
    )


#: Older data of a match is stale, or data older than two of its poll intervals.
STALE_SECONDS = 60.0


def unreliability(
    match: MatchRow, record: MonitoringRecord | None, age: float | None, *, has_findings: bool
) -> tuple[Unreliability, ...]:
    """Return why a match of this age may not be as it is served; empty if it is reliable.

    An archived match is not polled: only its findings count.
    """
    if record is None:
        if match.phase is not Phase.ARCHIVED:
            return (Unreliability.STALE,)
        return (Unreliability.GAP_OPEN,) if has_findings else ()
    is_stale = age is None or age >= max(STALE_SECONDS, 2 * (record.interval_seconds or 0.0))
    return (*((Unreliability.STALE,) if is_stale else ()), *record.unreliability)


def sync_of(match: MatchRow, record: MonitoringRecord | None) -> SyncState:
    """Return the sync state. Without a live record a match is unwatched, unless it is archived."""
    if record is not None:
        return record.sync
    return SyncState.IN_SYNC if match.phase is Phase.ARCHIVED else SyncState.UNWATCHED


def shown_age(seconds: float) -> float:
    """Return an age rounded to milliseconds, never negative (two clocks may differ)."""
    return max(0.0, round(seconds, 3))


def record_age(record: MonitoringRecord | None, now: Moment) -> float | None:
    """Return the seconds since the last accepted poll; `None` before the first."""
    age = record.age_at(now) if record else None
    return None if age is None else shown_age(age)


# --- as JSON ----------------------------------------------------------------------------------------------------------


def data_path(sport: str) -> str:
    """Return the path prefix of a sport's routes."""
    return f"/{sport}-data"


def match_path(match: MatchRow | MonitoringRecord) -> str:
    return f"{data_path(match.sport)}/match-info/{match.match_id}"


def metadata(view: MatchView, open_findings: int, now: Moment) -> dict[str, Any]:
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
        **_reliability(unreliability(view.match, view.record, view.age_at(now), has_findings=open_findings > 0)),
    }


def _reliability(reasons: Sequence[Unreliability]) -> dict[str, Any]:
    return {"reliable": not reasons, "reliability_reasons": [reason.value for reason in reasons]}


def splice_metadata(payload: bytes, about: dict[str, Any]) -> bytes:
    """Insert `_metadata` before the final brace, so that the stored bytes need not be decoded."""
    comma = b"" if payload == b"{}" else b","
    return b"".join((payload[:-1], comma, b'"_metadata":', msgspec.json.encode(about), b"}"))


def age_headers(view: MatchView | None, now: Moment, *, has_findings: bool) -> dict[str, str]:
    """Return the headers with age and reliability. A match that was never polled has no age header."""
    if view is None:
        return {"X-Data-Sync": SyncState.RECOVERING.value, "X-Data-Reliable": "false"}
    age = view.age_at(now)
    reasons = unreliability(view.match, view.record, age, has_findings=has_findings)
    return {
        "X-Data-Freshness": to_iso(view.polled_at),
        "X-Data-Age-Seconds": f"{age:.3f}",
        "X-Data-Sync": view.sync.value,
        "X-Data-Reliable": "false" if reasons else "true",
    }


def _of_match(match: MatchRow) -> dict[str, Any]:
    return {"matchId": match.match_id, "match_id": str(match.ref)}


def match_entry(match: MatchRow, record: MonitoringRecord | None, now: Moment, *, has_findings: bool) -> dict[str, Any]:
    """Return a match as the list shows it."""
    polled_at = record.last_poll_at if record else None
    return {
        **_of_match(match),
        "title": match.title,
        "status": match.status.value,
        "phase": match.phase.value,
        "start_time": iso_or_none(match.start_at),
        "data_age_seconds": record_age(record, now),
        "last_poll_at": iso_or_none(polled_at),
        "sync": sync_of(match, record).value,
        **_reliability(unreliability(match, record, record_age(record, now), has_findings=has_findings)),
        "url": match_path(match),
    }


def event_entry(stored: StoredEvent, match: MatchRow) -> dict[str, Any]:
    return event_of(sport_named(match.sport), stored, match.ref.source)


def event_of(sport: Sport[Any], stored: StoredEvent, source: str) -> dict[str, Any]:
    """Return one event version; `source` is that of the match."""
    event = stored.event
    kind = sport.kinds[event.key.kind]
    numbers = dict(zip(kind.fields, event.key.numbers, strict=True))
    known = {**numbers, "side": event.key.side or None, "position": event.position}
    data: dict[str, Any] = msgspec.to_builtins(event.content)
    if tag := event.content.__struct_config__.tag_field:
        del data[tag]  # redundant: the entry has `kind`
    return {
        "seq": stored.seq,
        "key": str(event.key),
        "kind": event.key.kind,
        "rev": event.rev,
        "op": event.op.value,
        **{name: known.get(name) for name in sport.place},
        "critical": kind.is_critical,
        "source": event.source or source,
        "source_event_id": event.source_event_id,
        "captured_at": to_iso(stored.captured_at),
        "data": data,
    }


def events_page(match: MatchRow, events: Sequence[StoredEvent], next_after: int, has_more: bool) -> dict[str, Any]:
    return {
        **_of_match(match),
        "events": [event_entry(stored, match) for stored in events],
        "next_after": next_after,
        "has_more": has_more,
    }


def history(match: MatchRow, snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    return {**_of_match(match), "snapshots": [snapshot_entry(snapshot) for snapshot in snapshots]}


def snapshot_entry(snapshot: Snapshot) -> dict[str, Any]:
    """Return one snapshot. The payload keeps its exact bytes, which the checksum covers."""
    return {
        "sequence": snapshot.sequence,
        "checksum": snapshot.checksum,
        "created_at": to_iso(snapshot.created_at),
        "scraper_id": snapshot.scraper_id,
        "update_latency_ms": snapshot.update_latency_ms,
        "data_source": snapshot.data_source,
        "provenance": {
            field: {"source": origin.source, "confidence": origin.confidence, "at": to_iso(origin.at)}
            for field, origin in snapshot.provenance.items()
        },
        "payload": msgspec.Raw(snapshot.payload),
    }


def findings(match: MatchRow, found: Sequence[StoredFinding], open_count: int, total: int) -> dict[str, Any]:
    """Return some findings, and how many there are."""
    return {
        **_of_match(match),
        "open": open_count,
        "total": total,
        "findings": [finding_entry(stored) for stored in found],
    }


def finding_entry(stored: StoredFinding) -> dict[str, Any]:
    times = {"opened_at": to_iso(stored.opened_at), "closed_at": iso_or_none(stored.closed_at)}
    return asdict(stored.finding) | times


def in_order_of_play(events: Iterable[StoredEvent], match: MatchRow, *, with_voids: bool) -> list[StoredEvent]:
    """Return the events in the order of play: all, or only the live ones."""
    order = sport_named(match.sport).order
    shown = (stored for stored in events if with_voids or stored.event.is_live)
    return sorted(shown, key=lambda stored: order(stored.event))
