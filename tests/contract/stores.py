"""What the store suites share: builders, and the implementations that go through them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from longstop.clock import Clock
from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.snapshot import Provenance, canonical, checksum
from longstop.sports.cricket.model import CricketKind, Delivery, Overs, Runs
from longstop.storage.base import (
    AuditStore,
    CommandStore,
    ErrorStore,
    HealthLogStore,
    HotReader,
    HotWriter,
    MatchReader,
    MatchStore,
    MatchUpdate,
    PauseStore,
    SnapshotDraft,
)
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from longstop.storage.sqlite.operations_tables import (
    SqliteAudit,
    SqliteCommands,
    SqliteErrors,
    SqliteHealthLog,
    SqlitePauses,
)

NOW = datetime(2026, 3, 7, 14, 0, 0, 123_000, tzinfo=UTC)
REF = MatchRef("crex", "11HD")


class MatchBackend(Protocol):
    """One place for matches, opened as often as a test likes."""

    async def open_store(self) -> MatchStore: ...

    def open_reader(self) -> MatchReader: ...


class HotBackend(Protocol):
    """One hot view. Its writers may wait with writing until they are closed: then nothing depends on timing."""

    def open_writer(self) -> HotWriter: ...

    def open_reader(self) -> HotReader: ...


class OpsBackend(Protocol):
    """One set of operations tables."""

    def open_errors(self) -> ErrorStore: ...

    def open_audit(self) -> AuditStore: ...

    def open_commands(self, clock: Clock, boot: str | None = "this boot") -> CommandStore: ...

    def open_health_log(self) -> HealthLogStore: ...

    def open_pauses(self) -> PauseStore: ...


class SqliteFiles:
    """The store on SQLite, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "matches.db"

    async def open_store(self) -> MatchStore:
        return await SqliteMatchStore.open(self.path)

    def open_reader(self) -> MatchReader:
        return SqliteMatchReader(self.path)


class SqliteFilesReadInline(SqliteFiles):
    """The same, with reads that run on the caller's loop."""

    def open_reader(self) -> MatchReader:
        return SqliteMatchReader(self.path, inline_ms=5_000)


class SqliteHot:
    """The hot view on SQLite. Its timer never fires: only closing writes."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "hot.db"

    def open_writer(self) -> HotWriter:
        return SqliteHotWriter(self.path, on_failure=_raise, flush_every_seconds=3600)

    def open_reader(self) -> HotReader:
        return SqliteHotReader(self.path)


class SqliteHotReadInline(SqliteHot):
    """The same, with reads that run on the caller's loop."""

    def open_reader(self) -> HotReader:
        return SqliteHotReader(self.path, inline_ms=5_000)


class SqliteOps:
    """The operations tables on SQLite."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "ops.db"

    def open_errors(self) -> ErrorStore:
        return SqliteErrors(self.path)

    def open_audit(self) -> AuditStore:
        return SqliteAudit(self.path)

    def open_commands(self, clock: Clock, boot: str | None = "this boot") -> CommandStore:
        return SqliteCommands(self.path, clock, lambda: boot)

    def open_health_log(self) -> HealthLogStore:
        return SqliteHealthLog(self.path)

    def open_pauses(self) -> PauseStore:
        return SqlitePauses(self.path)


#: A second implementation joins its suite here.
MATCHES: Mapping[str, Callable[[Path], MatchBackend]] = {"sqlite": SqliteFiles, "sqlite inline": SqliteFilesReadInline}
HOT_VIEWS: Mapping[str, Callable[[Path], HotBackend]] = {"sqlite": SqliteHot, "sqlite inline": SqliteHotReadInline}
OPERATIONS: Mapping[str, Callable[[Path], OpsBackend]] = {"sqlite": SqliteOps}


def _raise(error: Exception) -> None:
    raise error


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def delivery_key(over: int, nth: int, innings: int = 1) -> EventKey:
    return EventKey(CricketKind.DELIVERY, (innings, over, nth))


def delivery(batter_runs: int = 0) -> Delivery:
    return Delivery(label=Overs(0, 1), runs=Runs(batter=batter_runs), batter="p1", bowler="p2")


def event(
    key: EventKey | None = None,
    *,
    rev: int = 1,
    op: Op = Op.INSERT,
    content: Struct | None = None,
    position: int | None = 1,
) -> Event:
    return Event(
        key=key or delivery_key(0, 1),
        rev=rev,
        op=op,
        content=content or delivery(),
        source_event_id="1001",
        position=None if op is Op.VOID else position,
    )


def draft(**payload: Any) -> SnapshotDraft:
    body = canonical(payload)
    provenance = {"score": Provenance(source="crex", confidence=0.9, at=NOW)}
    return SnapshotDraft(checksum=checksum(body), payload=body, provenance=provenance, update_latency_ms=7)


def update(match_id: int, *events: Event, epoch: int = 1, **changes: Any) -> MatchUpdate:
    fields: dict[str, Any] = {
        "scraper_id": "node-a",
        "captured_at": NOW,
        "phase": Phase.ACTIVE,
        "status": MatchStatus.LIVE,
        "title": "Red v Blue",
        "start_at": NOW,
        "snapshot": None,
        "findings": (),
        "players": {},
        "teams": {},
        "source": "crex",
    }
    return MatchUpdate(match_id=match_id, epoch=epoch, events=events, **{**fields, **changes})


async def owned_match(store: MatchStore, ref: MatchRef = REF, sport: str = "cricket") -> int:
    """Return the id of a match that node-a has just taken, at epoch 1."""
    match = await store.register(ref, "Red v Blue", NOW, NOW, sport=sport)
    await store.claim(match.match_id, "node-a")
    return match.match_id
