"""What we hold true of a cricket match: the base that every look is compared with."""

from collections.abc import Mapping

from longstop.model.cricket import Delivery
from longstop.model.event import Event, EventKind
from longstop.pipeline.held import HeldMatch
from longstop.pipeline.tally import Difference
from longstop.sources.base import Board, Scorecard


class MatchState(HeldMatch, frozen=True, kw_only=True):
    """The durable base of a cricket match, and what this run has learnt about it since."""

    board: Board | None = None
    scorecard: Scorecard | None = None
    #: How far a scoreboard is known to be off, by innings, after the whole list was read.
    differences: Mapping[int, Difference] = {}

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

    def live(self, kind: EventKind) -> list[Event]:
        """Return the live events of a kind in the order of play."""
        events = [event for key, event in self.events.items() if key.kind is kind and event.is_live]
        return sorted(events, key=lambda event: (event.key.innings, event.position or event.key.over))
