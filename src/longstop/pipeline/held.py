"""What we hold true of a match, whatever the sport: what the watching needs to know of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Self

import msgspec
from msgspec import Struct

from longstop.model.cricket import Result
from longstop.model.event import Event, EventKey, EventKind
from longstop.model.football import FootballResult
from longstop.model.match import Priority, SyncState, priority_of
from longstop.model.snapshot import Snapshot
from longstop.sources.base import Line
from longstop.storage.base import Finding, MatchBase, MatchRow, Receipt


class HeldMatch(Struct, frozen=True, kw_only=True):
    """The durable base of a match, and what this run has learnt about it since. Each sport's road adds its own."""

    row: MatchRow
    #: The latest version of every key, void ones included: the fold of what is stored.
    events: Mapping[EventKey, Event]
    #: The newest stored snapshot.
    snapshot: Snapshot | None
    findings: tuple[Finding, ...]
    players: Mapping[str, str]
    teams: Mapping[str, str]
    # What follows is memory only; a restart begins it anew, and full sync makes that harmless.
    sync: SyncState = SyncState.RECOVERING
    board: Line | None = None
    #: Steps back that one look has seen; the next look confirms or forgets them.
    suspects: frozenset[str] = frozenset()

    @classmethod
    def from_base(cls, base: MatchBase) -> Self:
        return cls(
            row=base.match,
            events={stored.event.key: stored.event for stored in base.events},
            snapshot=base.snapshot,
            findings=base.open_findings,
            players=base.players,
            teams=base.teams,
        )

    @classmethod
    def of(cls, held: "HeldMatch") -> Self:
        """Return a match as this sport holds it; one that was only just loaded has nothing but its durable base."""
        if isinstance(held, cls):
            return held
        return cls(
            row=held.row,
            events=held.events,
            snapshot=held.snapshot,
            findings=held.findings,
            players=held.players,
            teams=held.teams,
        )

    def after(self, receipt: Receipt) -> Self:
        """Return the base once an update is durable, and not a moment earlier."""
        return msgspec.structs.replace(
            self,
            row=receipt.match,
            events={**self.events, **{stored.event.key: stored.event for stored in receipt.events}},
            snapshot=receipt.snapshot or self.snapshot,
        )

    def priority(self, now: datetime) -> Priority:
        """Return how urgent a look is; what is far off is as little urgent as what is over."""
        priority = priority_of(self.row.status, self.row.start_at, now)
        return Priority.COMPLETED if priority is None else priority

    @property
    def has_unnamed(self) -> bool:
        """Return whether a name is missing that the site should know."""
        return False

    @property
    def result(self) -> Result | FootballResult | None:
        """Return how the match ended, where that is stored."""
        event = self.events.get(EventKey(EventKind.RESULT))
        return event.content if event and event.is_live and isinstance(event.content, Result | FootballResult) else None
