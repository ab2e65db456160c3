"""When a match's data cannot be had, its score is read from the page as its script has drawn it.

That page shows a score and a status, and no events. So the events stay as they are, and a finding says so until a poll
of the data closes it.
"""

from typing import Any

from longstop.errors import FetchTimeout, LayoutPaused, ParseError, SourceError, UsageError
from longstop.matches.client import PollClient
from longstop.model.observation import Coverage, Observation
from longstop.sports.base import MatchState, Sport
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed
from longstop.telemetry.events.sources import SelectorFallbackUsed

#: A single time-out is the network's; the second in a row says that the page does not ask any more.
MANY_TIMEOUTS = 2


class DomFallback:
    """Reads the drawn pages of one source, and remembers for each match what led there."""

    def __init__(self, sport: Sport[Any], bus: Bus) -> None:
        self._sport = sport
        self._bus = bus
        #: Matches whose data could not be had last time.
        self.troubled: set[int] = set()
        #: Time-outs in a row, by match.
        self._timeouts: dict[int, int] = {}
        #: Which selectors served last, by match and field.
        self._served: dict[int, dict[str, int]] = {}

    def settle(self, state: MatchState) -> None:
        """Take note that the data could be had."""
        self.troubled.discard(state.row.match_id)
        self._timeouts.pop(state.row.match_id, None)
        self._served.pop(state.row.match_id, None)

    async def read(self, client: PollClient, state: MatchState, error: SourceError, *, can_draw: bool) -> Observation:
        """Return what the drawn page shows; raise the error again where that may not or cannot be."""
        kind = self._sport.dom_board
        self.troubled.add(state.row.match_id)
        if kind is None or not (self._is_called_for(state, error) and can_draw):
            raise error
        try:
            board: Any = await client.drawn(state.feed.source_id, kind)
            self._sport.diff_dom(state, board)
        except (SourceError, UsageError) as failure:
            self._note_failure(state, failure)
            raise error from failure
        self._note_selectors(state, board.selectors)
        return Observation(
            feed=state.feed, captured_at=client.now(), view=board, coverage=Coverage.DOM, keys=state.keys
        )

    def _is_called_for(self, state: MatchState, error: SourceError) -> bool:
        """Return whether the data cannot be had though the site lets us in: no refusal, and no page that is gone."""
        if not isinstance(error, FetchTimeout):
            self._timeouts.pop(state.row.match_id, None)
            return isinstance(error, ParseError | LayoutPaused)
        times = self._timeouts.get(state.row.match_id, 0) + 1 + error.retries
        self._timeouts[state.row.match_id] = times
        return times >= MANY_TIMEOUTS

    def _note_failure(self, state: MatchState, failure: SourceError | UsageError) -> None:
        self._bus.emit(
            ResourceFailed(
                match_id=state.row.match_id,
                ref=str(state.row.ref),
                resource="drawn",
                error_type=type(failure).__name__,
                error_message=str(failure),
            )
        )

    def _note_selectors(self, state: MatchState, selectors: dict[str, int]) -> None:
        """Report which fields are not where they should be; once, as long as they stay there."""
        row = state.row
        before = self._served.get(row.match_id, {})
        for field, nth in selectors.items():
            if nth and nth != before.get(field):
                self._bus.emit(SelectorFallbackUsed(source=row.ref.source, ref=str(row.ref), field=field, selector=nth))
        self._served[row.match_id] = dict(selectors)
