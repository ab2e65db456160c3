"""What the store suites share: builders, and the implementations that go through them."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from longstop.model.cricket import Delivery, Overs, Runs
from longstop.model.event import Content, Event, EventKey, EventKind, Op
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.snapshot import Provenance, canonical, checksum
from longstop.storage.base import MatchReader, MatchStore, MatchUpdate, SnapshotDraft
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore

NOW = datetime(2026, 3, 7, 14, 0, 0, 123_000, tzinfo=UTC)
REF = MatchRef("crex", "11HD")


class SqliteFiles:
    """The store on SQLite, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "matches.db"

    async def open_store(self) -> MatchStore:
        return await SqliteMatchStore.open(self.path)

    def open_reader(self) -> MatchReader:
        return SqliteMatchReader(self.path)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[MatchStore]:
        store = await self.open_store()
        try:
            yield store
        finally:
            await store.aclose()


#: A second implementation joins the suite here.
BACKENDS: Mapping[str, Callable[[Path], SqliteFiles]] = {"sqlite": SqliteFiles}


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def delivery_key(over: int, nth: int, innings: int = 1) -> EventKey:
    return EventKey(EventKind.DELIVERY, innings, over, nth)


def delivery(batter_runs: int = 0) -> Delivery:
    return Delivery(label=Overs(0, 1), runs=Runs(batter=batter_runs), batter="p1", bowler="p2")


def event(
    key: EventKey | None = None,
    *,
    rev: int = 1,
    op: Op = Op.INSERT,
    content: Content | None = None,
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
    }
    return MatchUpdate(match_id=match_id, epoch=epoch, events=events, **{**fields, **changes})


async def owned_match(store: MatchStore, ref: MatchRef = REF) -> int:
    """Return the id of a match that node-a has just taken, at epoch 1."""
    match = await store.register(ref, "Red v Blue", NOW, NOW)
    await store.claim(match.match_id, "node-a")
    return match.match_id
