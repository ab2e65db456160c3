"""The last resort: when a match's data cannot be had, its score is read from the page as the script has drawn it.

That page shows a score and a status, and no events. So the events stay as they are, and a finding says so until a
look by the data closes it.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from longstop.errors import FetchTimeout, LayoutHeld, ParseError, SourceError, UsageError
from longstop.pipeline.ask import Asker
from longstop.pipeline.drawn import Drawn
from longstop.pipeline.held import HeldMatch
from longstop.telemetry.events.base import Telemetry
from longstop.telemetry.events.matches import ResourceFailed
from longstop.telemetry.events.sources import SelectorFellBack

#: A single time-out is the network's; the second in a row says that the page does not ask any more.
MANY_TIMEOUTS = 2

DrawnKind = TypeVar("DrawnKind", bound=Drawn)
Laid = TypeVar("Laid")


class Hears(Protocol):
    """Whoever takes what there is to tell."""

    def emit(self, event: Telemetry) -> None: ...


class LastResort:
    """Goes to the drawn pages of one source, and remembers for each match what led there."""

    def __init__(self, bus: Hears) -> None:
        self._bus = bus
        #: Time-outs in a row, by match.
        self._timeouts: dict[int, int] = {}
        #: Which selectors served last, by match and field.
        self._served: dict[int, dict[str, int]] = {}

    def settle(self, state: HeldMatch) -> None:
        """Take note that the data could be had."""
        self._timeouts.pop(state.row.match_id, None)
        self._served.pop(state.row.match_id, None)

    async def read(
        self,
        asker: Asker,
        state: HeldMatch,
        error: SourceError,
        kind: type[DrawnKind],
        lay_over: Callable[[DrawnKind], Laid],
    ) -> Laid:
        """Return the match with what its drawn page shows; raise the error again where that may not or cannot be."""
        if not (self._is_called_for(state, error) and asker.can_draw):
            raise error
        try:
            drawn = await asker.drawn(state.row.ref.source_id, kind)
            laid = lay_over(drawn)
        except (SourceError, UsageError) as failure:
            self._tell_failure(state, failure)
            raise error from failure
        self._tell_selectors(state, drawn)
        return laid

    def _is_called_for(self, state: HeldMatch, error: SourceError) -> bool:
        """Return whether the data cannot be had though the site lets us in: no refusal, and no page that is gone."""
        if not isinstance(error, FetchTimeout):
            self._timeouts.pop(state.row.match_id, None)
            return isinstance(error, ParseError | LayoutHeld)
        times = self._timeouts.get(state.row.match_id, 0) + 1 + error.retries
        self._timeouts[state.row.match_id] = times
        return times >= MANY_TIMEOUTS

    def _tell_failure(self, state: HeldMatch, failure: SourceError | UsageError) -> None:
        self._bus.emit(
            ResourceFailed(
                match_id=state.row.match_id,
                ref=str(state.row.ref),
                resource="drawn",
                error_type=type(failure).__name__,
                error_message=str(failure),
            )
        )

    def _tell_selectors(self, state: HeldMatch, drawn: Drawn) -> None:
        """Tell which fields are not where they should be; once, as long as they stay there."""
        row = state.row
        before = self._served.get(row.match_id, {})
        for field, nth in drawn.selectors.items():
            if nth and nth != before.get(field):
                self._bus.emit(SelectorFellBack(source=row.ref.source, ref=str(row.ref), field=field, selector=nth))
        self._served[row.match_id] = dict(drawn.selectors)
