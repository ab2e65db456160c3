"""What we hold true of a match: the base that every look is compared with."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from longstop.model.cricket import Delivery, Result
from longstop.model.event import Event, EventKey, EventKind
from longstop.model.match import SyncState
from longstop.model.snapshot import Snapshot
from longstop.pipeline.tally import Difference
from longstop.sources.base import Board, Scorecard
from longstop.storage.base import Finding, MatchBase, MatchRow, Receipt


class MatchState(Struct, frozen=True, kw_only=True):
    """The durable base of a match, and what this run has learnt about it since."""

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
    board: Board | None = None
    scorecard: Scorecard | None = None
    #: Steps back that one look has seen; the next look confirms or forgets them.
    suspects: frozenset[str] = frozenset()
    #: How far a scoreboard is known to be off, by innings, after the whole list was read.
    differences: Mapping[int, Difference] = {}

    @classmethod
    def from_base(cls, base: MatchBase) -> "MatchState":
        return cls(
            row=base.match,
            events={stored.event.key: stored.event for stored in base.events},
            snapshot=base.snapshot,
            findings=base.open_findings,
            players=base.players,
            teams=base.teams,
        )

    def after(self, receipt: Receipt) -> "MatchState":
        """Return the base once an update is durable, and not a moment earlier."""
        return msgspec.structs.replace(
            self,
            row=receipt.match,
            events={**self.events, **{stored.event.key: stored.event for stored in receipt.events}},
            snapshot=receipt.snapshot or self.snapshot,
        )

    @property
    def newest_innings(self) -> int:
        """Return the number of the latest innings with a delivery; 0 before the first."""
        return max((key.innings for key in self.events if key.kind is EventKind.DELIVERY), default=0)

    @property
    def has_unnamed(self) -> bool:
        """Return whether a name is missing that the site should know."""
        contents = (event.content for event in self.events.values() if event.is_live)
        keys = {key for each in contents if isinstance(each, Delivery) for key in (each.batter, each.bowler)}
        sides = {self.board.batting, self.board.bowling} if self.board else set()
        return bool((keys - {None}) - self.players.keys() or (sides - {""}) - self.teams.keys())

    @property
    def result(self) -> Result | None:
        """Return how the match ended, where that is stored."""
        contents = (event.content for event in self.live(EventKind.RESULT))
        return next((content for content in contents if isinstance(content, Result)), None)

    def live(self, kind: EventKind) -> list[Event]:
        """Return the live events of a kind in the order of play."""
        events = [event for key, event in self.events.items() if key.kind is kind and event.is_live]
        return sorted(events, key=lambda event: (event.key.innings, event.position or event.key.over))
