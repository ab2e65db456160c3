"""The DOM fallback: when a match's data cannot be read, its score is read from the rendered page.

A rendered page shows a score and a status, but no events. Stored events stay as they are, and a finding says so until a
poll of the data closes it.
"""

from typing import Any

from msgspec import Struct

from longstop.errors import FetchTimeout, LayoutPaused, ParseError, SourceError, UsageError, without_frames
from longstop.matches.source_client_and_poll_attempt import PollClient
from longstop.model.source_queries_and_answers import RENDERED, Observation, Query
from longstop.sports.base import Draft, MatchState, Sport
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed
from longstop.telemetry.events.sources import SelectorFallbackUsed

#: One time-out may be the network. A second one in a row means that the page no longer requests its data.
MANY_TIMEOUTS = 2


class Failures(Struct, kw_only=True):
    """Why a match's data could not be read lately."""

    #: Consecutive time-outs.
    timeouts: int = 0
    #: By field of the rendered page, the selector that matched last.
    selectors: dict[str, int] = {}


class DomFallback:
    """Reads rendered pages of one source, and remembers the failures of each match that led there."""

    def __init__(self, sport: Sport[Any], bus: Bus) -> None:
        self._sport = sport
        self._bus = bus
        #: By match, until its data can be read again.
        self.failures: dict[int, Failures] = {}

    async def read(self, client: PollClient, state: MatchState, error: SourceError, *, can_render: bool) -> Observation:
        """Return what the rendered page shows; raise the error again when that is impossible or not allowed."""
        kind = self._sport.dom_board
        if kind is None or not (self._is_needed(state, error) and can_render):
            raise error
        try:
            board = await client.ask(Query(resource=RENDERED, source_id=state.feed.source_id), kind)
        except SourceError as failure:
            self._bus.emit(resource_failed(state, RENDERED, failure))
            raise error from failure
        return Observation(captured_at=client.now(), view=board, replaced=without_frames(error), keys=state.keys)

    def diff(self, state: MatchState, observation: Observation) -> Draft:
        """Return what to store for a rendered page; raise the error that led to it when the page does not fit."""
        try:
            draft = self._sport.diff_dom(state, observation.view)
        except (SourceError, UsageError) as failure:
            self._bus.emit(resource_failed(state, RENDERED, failure))
            raise (observation.replaced or failure) from failure
        self._report_selectors(state, observation.view.selectors)
        return draft

    def _is_needed(self, state: MatchState, error: SourceError) -> bool:
        """Return whether the data cannot be read although the site serves the page: no refusal, and no 404."""
        failures = self.failures.setdefault(state.row.match_id, Failures())
        if not isinstance(error, FetchTimeout):
            failures.timeouts = 0
            return isinstance(error, ParseError | LayoutPaused)
        failures.timeouts += 1 + error.retries
        return failures.timeouts >= MANY_TIMEOUTS

    def _report_selectors(self, state: MatchState, selectors: dict[str, int]) -> None:
        """Report fields that only a fallback selector found; once while that stays the same."""
        row = state.row
        failures = self.failures.setdefault(row.match_id, Failures())
        for field, nth in selectors.items():
            if nth and nth != failures.selectors.get(field):
                self._bus.emit(SelectorFallbackUsed(source=row.ref.source, ref=str(row.ref), field=field, selector=nth))
        failures.selectors = dict(selectors)


def resource_failed(state: MatchState, resource: str, failure: Exception) -> ResourceFailed:
    """Return the report of a resource that could not be read."""
    return ResourceFailed(
        match_id=state.row.match_id,
        ref=str(state.row.ref),
        resource=resource,
        error_type=type(failure).__name__,
        error_message=str(failure),
    )
