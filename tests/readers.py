"""Readers that hold what a test gives them, with builders for the records they hold."""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.server import Stores
from longstop.clock import Clock, Moment
from longstop.errors import StorageError
from longstop.model.data_finding import StoredFinding
from longstop.model.event import Event, EventKey, Op, StoredEvent
from longstop.model.match import MatchRef, MatchRow, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.model.recovery import Recovery
from longstop.model.scraper_report import NodeBeat
from longstop.model.snapshot import Snapshot, canonical, checksum
from longstop.sports.cricket.model import CricketKind, Delivery, Overs, Runs
from longstop.storage.base import MAX_MATCH_ID, UNLIMITED, HotReader, HotRow, MatchFilter, MatchReader
from longstop.storage.sqlite.operations_tables import SqliteAudit, SqliteCommands, SqliteHealthLog

T = TypeVar("T")

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
#: `NOW` on both clocks of a `ManualClock`.
MOMENT = Moment(NOW, NOW.timestamp())
PAYLOAD = canonical({"matchId": 1, "title": "Reds v Blues — “final”", "innings": []})


class ManualClock:
    """A clock that tests advance."""

    def __init__(self, moment: datetime = NOW) -> None:
        self.moment = moment
        self._leapt = 0.0

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp() - self._leapt

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def leap(self, seconds: float) -> None:
        """Set the wall clock, and only that, ahead or back."""
        self.moment += timedelta(seconds=seconds)
        self._leapt += seconds


class MemoryReader:
    """The store's reading side; `broken` makes every call fail as a lost disk would."""

    def __init__(self, *matches: MatchRow) -> None:
        self.rows = {match.match_id: match for match in matches}
        self.stored: dict[int, list[StoredEvent]] = {}
        self.kept: dict[int, list[Snapshot]] = {}
        self.found: dict[int, list[StoredFinding]] = {}
        self.broken: Exception | None = None

    async def find(self, ref: MatchRef) -> MatchRow | None:
        self._check()
        return next((match for match in self.rows.values() if match.ref == ref), None)

    async def match(self, match_id: int) -> MatchRow | None:
        self._check()
        return self.rows.get(match_id)

    async def matches(self, wanted: MatchFilter) -> list[MatchRow]:
        self._check()
        chosen = (self.rows[match_id] for match_id in sorted(self.rows) if match_id > wanted.after_id)
        return [match for match in chosen if _is_wanted(match, wanted)][: wanted.limit]

    async def events_after(self, match_id: int, seq: int, limit: int) -> list[StoredEvent]:
        self._check()
        return [stored for stored in self.stored.get(match_id, []) if stored.seq > seq][:limit]

    async def current_events(self, match_id: int, seq: int = 0, limit: int = UNLIMITED) -> list[StoredEvent]:
        self._check()
        latest = {stored.event.key: stored for stored in self.stored.get(match_id, [])}.values()
        return sorted((stored for stored in latest if stored.seq > seq), key=lambda stored: stored.seq)[:limit]

    async def snapshots(self, match_id: int, limit: int = UNLIMITED) -> list[Snapshot]:
        self._check()
        return self.kept.get(match_id, [])[:limit]

    async def snapshot_bytes(self, match_id: int) -> int:
        self._check()
        return sum(len(each.payload) for each in self.kept.get(match_id, []))

    async def findings(self, match_id: int, limit: int = UNLIMITED) -> list[StoredFinding]:
        self._check()
        return self.found.get(match_id, [])[:limit]

    async def count_findings(self, match_id: int) -> int:
        self._check()
        return len(self.found.get(match_id, []))

    async def count_open_findings(self, match_id: int) -> int:
        self._check()
        return sum(each.closed_at is None for each in self.found.get(match_id, []))

    async def with_open_findings(self, first_id: int, last_id: int) -> set[int]:
        self._check()
        found = {match_id for match_id, each in self.found.items() if any(one.closed_at is None for one in each)}
        return {match_id for match_id in found if first_id <= match_id <= last_id}

    async def aclose(self) -> None:
        self.broken = StorageError("closed")

    def _check(self) -> None:
        if self.broken is not None:
            raise self.broken


class MemoryHot:
    """The hot view's reading side."""

    def __init__(self, *rows: HotRow, beats: Sequence[NodeBeat] = ()) -> None:
        self.held = {row.record.match_id: row for row in rows}
        self.heard = list(beats)
        self.broken: Exception | None = None

    async def row(self, match_id: int) -> HotRow | None:
        self._check()
        return self.held.get(match_id)

    async def records(self, first: int = 1, last: int = MAX_MATCH_ID) -> Sequence[MonitoringRecord]:
        self._check()
        return [row.record for match_id, row in sorted(self.held.items()) if first <= match_id <= last]

    async def beats(self) -> Sequence[NodeBeat]:
        self._check()
        return self.heard

    async def aclose(self) -> None:
        self.broken = StorageError("closed")

    def _check(self) -> None:
        if self.broken is not None:
            raise self.broken


class MemoryRecoveries:
    """The audit's reading side."""

    def __init__(self, *recoveries: Recovery) -> None:
        self.held = list(recoveries)
        self.broken: Exception | None = None

    async def recent(self, limit: int = 100) -> list[Recovery]:
        if self.broken is not None:
            raise self.broken
        return self.held[:limit]

    async def aclose(self) -> None:
        self.broken = StorageError("closed")


async def a_health_cache(
    reader: MatchReader, hot: HotReader, clock: Clock, recoveries: MemoryRecoveries | None = None
) -> HealthCache:
    """Return a health cache that has polled once."""
    health_cache = HealthCache(
        reader=reader,
        hot=hot,
        audit=recoveries or MemoryRecoveries(),
        clock=clock,
        started=Moment(clock.now(), clock.monotonic() - 300),
    )
    await health_cache.poll()
    return health_cache


def a_node_of(matches: MatchReader, hot: HotReader, clock: Clock, **more: Any) -> Stores:
    """Return what an API reads; no other file exists."""
    nowhere = Path("/nonexistent/ops.db")
    others = {"commands": SqliteCommands(nowhere, clock), "health_log": SqliteHealthLog(nowhere)}
    return Stores(
        **{"matches": matches, "hot": hot, "admin_matches": matches, "large_matches": matches, **others, **more}
    )


def apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a loop of its own, also where another one is running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def audited(data: Path) -> list[Recovery]:
    """Return the audit of a data directory, the newest first."""

    async def read() -> list[Recovery]:
        async with aclosing(SqliteAudit(data / "ops.db")) as audit:
            return await audit.recent()

    return apart(read())


def a_match(
    match_id: int = 1,
    *,
    source: str = "crex",
    phase: Phase = Phase.ACTIVE,
    status: MatchStatus = MatchStatus.LIVE,
) -> MatchRow:
    return MatchRow(
        match_id=match_id,
        ref=MatchRef(source, f"M{match_id}"),
        phase=phase,
        status=status,
        title=f"Match {match_id}",
        start_at=NOW - timedelta(hours=1),
        owner="node-1",
        epoch=1,
        seq=0,
        created_at=NOW - timedelta(hours=2),
        updated_at=None,
        completed_at=None,
        sport="cricket",
    )


def a_record(
    match_id: int = 1,
    *,
    polled: float | None = 1.5,
    status: MatchStatus = MatchStatus.LIVE,
    phase: Phase = Phase.ACTIVE,
    sync: SyncState = SyncState.IN_SYNC,
) -> MonitoringRecord:
    """Return a record whose last poll was this many seconds before `NOW`."""
    return MonitoringRecord(
        match_id=match_id,
        ref=MatchRef("crex", f"M{match_id}"),
        phase=phase,
        status=status,
        sync=sync,
        last_poll_at=None if polled is None else NOW - timedelta(seconds=polled),
        sport="cricket",
    )


def a_hot_row(record: MonitoringRecord | None = None, payload: bytes | None = PAYLOAD) -> HotRow:
    return HotRow(
        record=record or a_record(),
        sequence=7 if payload else None,
        checksum=checksum(payload) if payload else None,
        payload=payload,
        captured_at=NOW - timedelta(seconds=20) if payload else None,
        scraper_id="node-1",
    )


def a_snapshot(match_id: int = 1, payload: bytes = PAYLOAD) -> Snapshot:
    return Snapshot(
        match_id=match_id,
        sequence=7,
        checksum=checksum(payload),
        payload=payload,
        provenance={},
        created_at=NOW - timedelta(seconds=40),
        scraper_id="node-1",
        update_latency_ms=12,
    )


def a_beat(node: str = "node-1", *, ago: float = 1, errors: int = 0) -> NodeBeat:
    return NodeBeat(
        node=node,
        pid=4711,
        started_at=NOW - timedelta(minutes=10),
        beat_at=NOW - timedelta(seconds=ago),
        uptime_seconds=600.0,
        rss_bytes=64 * 1024 * 1024,
        errors_last_minute=errors,
    )


def a_ball(seq: int, nth: int, *, rev: int = 1, op: Op = Op.INSERT, position: int | None = None) -> StoredEvent:
    """Return the nth delivery of the first over, worth one run."""
    event = Event(
        key=EventKey(CricketKind.DELIVERY, (1, 0, nth)),
        rev=rev,
        op=op,
        content=Delivery(label=Overs(0, nth), runs=Runs(batter=1)),
        source_event_id=str(100 + nth),
        position=None if op is Op.VOID else position or nth,
    )
    return StoredEvent(event=event, seq=seq, epoch=1, captured_at=NOW)


def _is_wanted(match: MatchRow, wanted: MatchFilter) -> bool:
    return (
        wanted.status in (None, match.status)
        and wanted.phase in (None, match.phase)
        and wanted.source in (None, match.ref.source)
        and wanted.sport in (None, match.sport)
    )


_reader: MatchReader = MemoryReader()
_hot: HotReader = MemoryHot()
