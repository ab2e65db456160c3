"""Stores the result of a poll in one transaction, for every sport."""

from datetime import datetime
from typing import TypeVar

from longstop.clock import Clock
from longstop.matches.reconcile import as_stored
from longstop.model.match import MatchStatus, Phase, move
from longstop.model.observation import Observation
from longstop.model.snapshot import Provenance, checksum
from longstop.sports.base import Draft, MatchState
from longstop.storage.base import MatchStore, MatchUpdate, Receipt, SnapshotDraft

#: The confidence in a source while there is no other to compare with.
SINGLE_SOURCE = 1.0

State = TypeVar("State", bound=MatchState)


class Committer:
    """Stores the polls of one scraper."""

    def __init__(self, *, store: MatchStore, clock: Clock, scraper_id: str) -> None:
        self._store = store
        self._clock = clock
        self._scraper_id = scraper_id

    async def commit(self, before: MatchState, draft: Draft, observation: Observation) -> Receipt | None:
        """Store what is new; return `None` when nothing changed."""
        row, source = before.row, before.feed.source
        snapshot = self._snapshot(before, draft, observation.captured_at, source)
        events = draft.events
        if before.stored is not None:
            events = as_stored(events, before.stored, source, row.ref.source)
        phase = move(row.phase, Phase.COMPLETED if draft.status is MatchStatus.COMPLETED else Phase.ACTIVE)
        about = (phase, draft.status, draft.title, draft.start_at)
        is_news = (
            draft.events
            or snapshot
            or set(draft.state.findings) != set(before.findings)
            or about != (row.phase, row.status, row.title, row.start_at)
            or draft.players
            or draft.teams
            or draft.ids
        )
        if not is_news:
            return None
        return await self._store.save_update(
            MatchUpdate(
                match_id=row.match_id,
                epoch=row.epoch,
                scraper_id=self._scraper_id,
                captured_at=observation.captured_at,
                phase=phase,
                status=draft.status,
                title=draft.title,
                start_at=draft.start_at,
                events=events,
                snapshot=snapshot,
                findings=draft.state.findings,
                players=dict(draft.players),
                teams=dict(draft.teams),
                source=source,
                ids=draft.ids,
                keys=observation.keys,
            )
        )

    async def move(self, state: State, phase: Phase, status: MatchStatus) -> State:
        """Store the phase of a match, and nothing else."""
        row = state.row
        update = MatchUpdate(
            match_id=row.match_id,
            epoch=row.epoch,
            scraper_id=self._scraper_id,
            captured_at=self._clock.now(),
            phase=move(row.phase, phase),
            status=status,
            title=row.title,
            start_at=row.start_at,
            events=(),
            snapshot=None,
            findings=state.findings,
            players={},
            teams={},
        )
        return state.after(await self._store.save_update(update))

    def _snapshot(self, before: MatchState, draft: Draft, captured_at: datetime, source: str) -> SnapshotDraft | None:
        """Return the snapshot to store; `None` when the payload did not change."""
        if draft.payload is None:
            return None
        digest = checksum(draft.payload)
        if before.snapshot is not None and digest == before.snapshot.checksum:
            return None
        return SnapshotDraft(
            checksum=digest,
            payload=draft.payload,
            provenance={"*": Provenance(source=source, confidence=SINGLE_SOURCE, at=captured_at)},
            update_latency_ms=round((self._clock.now() - captured_at).total_seconds() * 1000),
        )
