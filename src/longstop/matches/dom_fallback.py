"""The DOM fallback: when a match's data cannot be read, its score is read from the rendered page.

A rendered page shows a score and a status, but no events. Stored events stay as they are, and a finding says so until a
poll of the data closes it.
"""

from typing import Any

from longstop.errors import FetchTimeout, LayoutPaused, ParseError, SourceError, UsageError
from longstop.matches.client import PollClient
from longstop.model.observation import RENDERED, Coverage, Observation
from longstop.sports.base import Draft, MatchState, Sport
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed
from longstop.telemetry.events.sources import SelectorFallbackUsed

#: One time-out may be the network. A second one in a row means that the page no longer requests its data.
MANY_TIMEOUTS = 2
#: The key of the error that a fallback replaces, among the observation's absent resources.
_DATA = "data"


class DomFallback:
    """Reads rendered pages of one source, and remembers the failures of each match that led there."""

    def __init__(self, sport: Sport[Any], bus: Bus) -> None:
        self._sport = sport
        self._bus = bus
        #: Matches whose data could not be read at the last poll.
        self.troubled: set[int] = set()
        #: Consecutive time-outs, by match.
        self._timeouts: dict[int, int] = {}
        #: The selectors that matched last, by match and field.
        self._served: dict[int, dict[str, int]] = {}

    def settle(self, state: MatchState) -> None:
        """Note that the data could be read."""
        self.troubled.discard(state.row.match_id)
        self._timeouts.pop(state.row.match_id, None)
        self._served.pop(state.row.match_id, None)

    async def read(self, client: PollClient, state: MatchState, error: SourceError, *, can_render: bool) -> Observation:
        """Return what the rendered page shows; raise the error again when that is impossible or not allowed."""
        kind = self._sport.dom_board
        self.troubled.add(state.row.match_id)
        if kind is None or not (self._is_needed(state, error) and can_render):
            raise error
        try:
            board: Any = await client.rendered(state.feed.source_id, kind)
        except SourceError as failure:
            self._report_failure(state, failure)
            raise error from failure
        return Observation(
            feed=state.feed,
            captured_at=client.now(),
            view=board,
            coverage=Coverage.DOM,
            absent={_DATA: error},
            keys=state.keys,
        )

    def diff(self, state: MatchState, observation: Observation) -> Draft:
        """Return what to store for a rendered page; raise the error that led to it when the page does not fit."""
        try:
            draft = self._sport.diff_dom(state, observation.view)
        except (SourceError, UsageError) as failure:
            self._report_failure(state, failure)
            raise observation.absent[_DATA] from failure
        self._report_selectors(state, observation.view.selectors)
        return draft

    def _is_needed(self, state: MatchState, error: SourceError) -> bool:
        """Return whether the data cannot be read although the site serves the page: no refusal, and no 404."""
        if not isinstance(error, FetchTimeout):
            self._timeouts.pop(state.row.match_id, None)
            return isinstance(error, ParseError | LayoutPaused)
        times = self._timeouts.get(state.row.match_id, 0) + 1 + error.retries
        self._timeouts[state.row.match_id] = times
        return times >= MANY_TIMEOUTS

    def _report_failure(self, state: MatchState, failure: SourceError | UsageError) -> None:
        self._bus.emit(
            ResourceFailed(
                match_id=state.row.match_id,
                ref=str(state.row.ref),
                resource=RENDERED,
                error_type=type(failure).__name__,
                error_message=str(failure),
            )
        )

    def _report_selectors(self, state: MatchState, selectors: dict[str, int]) -> None:
        """Report fields that only a fallback selector found; once while that stays the same."""
        row = state.row
        before = self._served.get(row.match_id, {})
        for field, nth in selectors.items():
            if nth and nth != before.get(field):
                self._bus.emit(SelectorFallbackUsed(source=row.ref.source, ref=str(row.ref), field=field, selector=nth))
        self._served[row.match_id] = dict(selectors)
