"""A store, a hot view, a sink and pauses in memory: they keep what they are given and show it to the test."""

import asyncio
from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec

from longstop.errors import EpochLost, LongstopError, StorageError
from longstop.model.data_finding import Finding
from longstop.model.event import EventKey, StoredEvent
from longstop.model.match import MatchRef, MatchRow, MatchStatus, Phase, move
from longstop.model.request_pause import RequestPause
from longstop.model.scraper_report import NodeBeat
from longstop.model.snapshot import Snapshot
from longstop.model.source_queries_and_answers import Keys
from longstop.storage.base import HotRow, MatchBase, MatchUpdate, Receipt, SnapshotDraft
from longstop.telemetry.events import Telemetry


class MemoryStore:
    """A `MatchStore` that follows the rules of the real one: epochs, revisions that follow each other, all or none."""

    def __init__(self) -> None:
        self.rows: dict[int, MatchRow] = {}
        self.refs: dict[MatchRef, int] = {}
        #: By match and source: ids of others' events, and how the source's keys map.
        self.ids: dict[int, dict[str, dict[EventKey, str]]] = {}
        self.keys: dict[int, dict[str, Keys]] = {}
        #: Every version ever stored, in order.
        self.history: dict[int, list[StoredEvent]] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.findings: dict[int, tuple[Finding, ...]] = {}
        self.players: dict[int, dict[str, str]] = {}
        self.teams: dict[int, dict[str, str]] = {}
        #: Every call of `save_update` that was accepted.
        self.updates: list[MatchUpdate] = []
        #: Raised by the next `save_update`, once.
        self.next_failure: LongstopError | None = None

    async def register(
        self, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, *, sport: str
    ) -> MatchRow:
        if ref in self.refs:
            return self.rows[self.refs[ref]]
        match_id = self.refs[ref] = len(self.rows) + 1
        self.rows[match_id] = MatchRow(
            match_id=match_id,
            ref=ref,
            phase=Phase.DISCOVERED,
            status=MatchStatus.UPCOMING,
            title=title,
            start_at=start_at,
            owner=None,
            epoch=0,
            seq=0,
            created_at=now,
            updated_at=None,
            completed_at=None,
            sport=sport,
        )
        return self.rows[match_id]

    async def link(self, ref: MatchRef, match_id: int) -> None:
        if any(each.source == ref.source for each in self._feeds(match_id) if each != ref):
            raise StorageError(f"match {match_id} has a feed of {ref.source} already")
        if self.refs.setdefault(ref, match_id) != match_id:
            raise StorageError(f"{ref} is match {self.refs[ref]} already")

    def _feeds(self, match_id: int) -> tuple[MatchRef, ...]:
        return tuple(sorted(ref for ref, number in self.refs.items() if number == match_id))

    async def claim(self, match_id: int, node: str) -> MatchRow:
        row = self.rows[match_id]
        self.rows[match_id] = msgspec.structs.replace(row, owner=node, epoch=row.epoch + 1)
        return self.rows[match_id]

    async def load(self, match_id: int) -> MatchBase:
        return MatchBase(
            match=self.rows[match_id],
            events=tuple(self.current(match_id).values()),
            snapshot=self.snapshots.get(match_id),
            open_findings=self.findings.get(match_id, ()),
            players=dict(self.players.get(match_id, {})),
            teams=dict(self.teams.get(match_id, {})),
            feeds=self._feeds(match_id),
            ids={source: dict(ids) for source, ids in self.ids.get(match_id, {}).items()},
            keys=dict(self.keys.get(match_id, {})),
        )

    async def unfinished(self) -> dict[int, tuple[MatchRef, ...]]:
        return {number: self._feeds(number) for number, row in self.rows.items() if row.phase is not Phase.ARCHIVED}

    async def check(self) -> None: ...

    async def save_update(self, update: MatchUpdate) -> Receipt:
        failure, self.next_failure = self.next_failure, None
        if failure is not None:
            raise failure
        before = self.rows[update.match_id]
        if update.epoch != before.epoch:
            raise EpochLost(f"match {update.match_id} is at epoch {before.epoch}")
        stored = self._stored(update, before.seq)
        self.history.setdefault(update.match_id, []).extend(stored)
        self.rows[update.match_id] = _moved(before, update, before.seq + len(stored))
        self.findings[update.match_id] = update.findings
        self.players.setdefault(update.match_id, {}).update(update.players)
        self.teams.setdefault(update.match_id, {}).update(update.teams)
        if update.ids:
            self.ids.setdefault(update.match_id, {}).setdefault(update.source, {}).update(update.ids)
        if update.keys:
            self.keys.setdefault(update.match_id, {})[update.source] = update.keys
        self.updates.append(update)
        return Receipt(
            match=self.rows[update.match_id], events=stored, snapshot=self._keep_snapshot(update, update.snapshot)
        )

    async def aclose(self) -> None: ...

    def current(self, match_id: int) -> dict[EventKey, StoredEvent]:
        return {stored.event.key: stored for stored in self.history.get(match_id, [])}

    def _stored(self, update: MatchUpdate, seq: int) -> tuple[StoredEvent, ...]:
        current = self.current(update.match_id)
        for event in update.events:
            latest = current[event.key].event.rev if event.key in current else 0
            if event.rev != latest + 1:
                raise StorageError(f"{event.key} is at revision {latest}: revision {event.rev} does not follow")
        return tuple(
            StoredEvent(event=event, seq=seq + place, epoch=update.epoch, captured_at=update.captured_at)
            for place, event in enumerate(update.events, start=1)
        )

    def _keep_snapshot(self, update: MatchUpdate, draft: SnapshotDraft | None) -> Snapshot | None:
        if draft is None:
            return None
        before = self.snapshots.get(update.match_id)
        self.snapshots[update.match_id] = Snapshot(
            match_id=update.match_id,
            sequence=before.sequence + 1 if before else 1,
            checksum=draft.checksum,
            payload=draft.payload,
            provenance=draft.provenance,
            created_at=update.captured_at,
            scraper_id=update.scraper_id,
            update_latency_ms=draft.update_latency_ms,
        )
        return self.snapshots[update.match_id]


def _moved(row: MatchRow, update: MatchUpdate, seq: int) -> MatchRow:
    completed_at = {
        Phase.COMPLETED: row.completed_at or update.captured_at,
        Phase.ARCHIVED: row.completed_at,
    }.get(update.phase)
    return msgspec.structs.replace(
        row,
        phase=move(row.phase, update.phase),
        status=update.status,
        title=update.title,
        start_at=update.start_at,
        seq=seq,
        updated_at=update.captured_at if update.source else row.updated_at,
        completed_at=completed_at,
    )


class MemoryHot:
    """A `HotWriter` that keeps the newest row of each match."""

    def __init__(self) -> None:
        self.rows: dict[int, HotRow] = {}
        self.beats: list[NodeBeat] = []

    def put(self, row: HotRow) -> None:
        self.rows[row.record.match_id] = row

    def forget(self, match_id: int) -> None:
        self.rows.pop(match_id, None)

    def keep_only(self, match_ids: Collection[int]) -> None:
        self.rows = {match_id: row for match_id, row in self.rows.items() if match_id in match_ids}

    def beat(self, beat: NodeBeat) -> None:
        self.beats.append(beat)

    async def aclose(self) -> None:
        """There is nothing left to write."""


class MemorySink:
    """Keeps every event; `named` picks out those of one name."""

    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)

    def named(self, name: str) -> list[Telemetry]:
        return [event for event in self.events if event.name == name]


class MemoryPauses:
    """A `PauseStore` in memory that may fail or hang."""

    def __init__(self, *pauses: RequestPause) -> None:
        self.pauses = list(pauses)
        self.failure: Exception | None = None
        self.is_hung = False
        self.writes = 0

    async def read(self) -> list[RequestPause]:
        await self._reach()
        return list(self.pauses)

    async def replace(self, pauses: Iterable[RequestPause]) -> None:
        await self._reach()
        self.writes += 1
        self.pauses = list(pauses)

    async def aclose(self) -> None:
        pass

    async def _reach(self) -> None:
        if self.is_hung:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure
