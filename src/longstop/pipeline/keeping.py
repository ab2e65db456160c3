"""Keeping what a look brought, whatever the sport: one transaction, and only when it is durable does it count."""

from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import EpochLost
from longstop.model.event import Event
from longstop.model.match import MatchStatus, Phase, move
from longstop.model.snapshot import Provenance, checksum
from longstop.pipeline.held import HeldMatch
from longstop.storage.base import Finding, MatchBase, MatchStore, MatchUpdate, Receipt, SnapshotDraft

#: How sure we are of what one source says while no other speaks.
ONLY_WITNESS = 1.0

Held = TypeVar("Held", bound=HeldMatch)


class Proposal(Struct, frozen=True, kw_only=True):
    """What a match should be stored as after a look."""

    status: MatchStatus
    title: str
    start_at: datetime | None
    #: In canonical spelling; `None` when the look showed nothing to serve.
    payload: bytes | None
    events: tuple[Event, ...]
    findings: tuple[Finding, ...]
    #: Newly learnt names.
    players: dict[str, str]
    teams: dict[str, str]
    seen_at: datetime


class Scribe:
    """Stores for one scraper."""

    def __init__(self, *, store: MatchStore, clock: Clock, scraper_id: str) -> None:
        self._store = store
        self._clock = clock
        self._scraper_id = scraper_id

    async def write(self, before: HeldMatch, proposal: Proposal) -> Receipt | None:
        """Store what is new; `None` when everything is as stored already."""
        update = self._update(before, proposal)
        return None if update is None else await self._store.save_update(update)

    async def base(self, state: HeldMatch) -> MatchBase:
        """Return the durable base of a match that is still ours: all that is left to go on from when a commit's outcome
        is unknown."""
        base = await self._store.load(state.row.match_id)
        if base.match.epoch != state.row.epoch:
            raise EpochLost(f"match {base.match.match_id} is at epoch {base.match.epoch}, owned by {base.match.owner}")
        return base

    async def put(self, state: Held, phase: Phase, status: MatchStatus) -> Held:
        """Store where a match stands in our care, and nothing else about it."""
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

    def _update(self, before: HeldMatch, proposal: Proposal) -> MatchUpdate | None:
        row = before.row
        snapshot = self._snapshot(before, proposal)
        phase = _phase(row.phase, proposal.status)
        told = (phase, proposal.status, proposal.title, proposal.start_at)
        is_news = (
            proposal.events
            or snapshot
            or set(proposal.findings) != set(before.findings)
            or told != (row.phase, row.status, row.title, row.start_at)
            or proposal.players
            or proposal.teams
        )
        if not is_news:
            return None
        return MatchUpdate(
            match_id=row.match_id,
            epoch=row.epoch,
            scraper_id=self._scraper_id,
            captured_at=proposal.seen_at,
            phase=phase,
            status=proposal.status,
            title=proposal.title,
            start_at=proposal.start_at,
            events=proposal.events,
            snapshot=snapshot,
            findings=proposal.findings,
            players=proposal.players,
            teams=proposal.teams,
        )

    def _snapshot(self, before: HeldMatch, proposal: Proposal) -> SnapshotDraft | None:
        """Return the snapshot to store; `None` when the payload is the stored one."""
        if proposal.payload is None:
            return None
        digest = checksum(proposal.payload)
        if before.snapshot is not None and digest == before.snapshot.checksum:
            return None
        said = Provenance(source=before.row.ref.source, confidence=ONLY_WITNESS, at=proposal.seen_at)
        return SnapshotDraft(
            checksum=digest,
            payload=proposal.payload,
            provenance={"*": said},
            update_latency_ms=round((self._clock.now() - proposal.seen_at).total_seconds() * 1000),
        )


def _phase(before: Phase, status: MatchStatus) -> Phase:
    return move(before, Phase.COMPLETED if status is MatchStatus.COMPLETED else Phase.ACTIVE)
