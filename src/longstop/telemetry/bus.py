"""The bus: passes each event to every sink. Also the events that many modules emit in the same way."""

import sys
from collections.abc import Sequence
from typing import Any, Protocol

from longstop.exhaustion import exhausted
from longstop.resilience.breaker import BreakerState, Transition
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import PollPostponed, TaskFailed
from longstop.telemetry.events.sources import CircuitClosed, CircuitHalfOpened, CircuitOpened
from longstop.text import printable


class Sink(Protocol):
    """Turns events into something else: log lines, counters, rows."""

    def take(self, event: Telemetry) -> None: ...


class Bus:
    """Passes events to sinks. A sink that raises is reported once on stderr and never stops the caller."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self._sinks = tuple(sinks)
        self._reported: set[int] = set()

    def emit(self, event: Telemetry) -> None:
        for sink in self._sinks:
            try:
                sink.take(event)
            except Exception as error:  # whatever a sink raises, the caller continues
                self._report(sink, error)

    def _report(self, sink: Sink, error: Exception) -> None:
        if id(sink) not in self._reported:
            self._reported.add(id(sink))
            print(printable(f"telemetry sink {type(sink).__name__} failed: {error!r}"), file=sys.stderr)


def failure_of(error: Exception, task: str) -> PollPostponed | TaskFailed:
    """Return the event for background work that failed and is retried: exhaustion is not a bug."""
    found = exhausted(error)
    return PollPostponed(resource=found.resource, subject=task) if found else TaskFailed.by(error, task=task)


def report_breaker(
    bus: Bus, scope: str, transition: Transition, *, last: str = "", match_id: int | None = None
) -> None:
    """Emit the event for a transition; `last` describes the failure that caused it."""
    about: dict[str, Any] = {"scope": scope, "subject": transition.subject, "match_id": match_id}
    match transition.to:
        case BreakerState.OPEN:
            bus.emit(CircuitOpened(**about, reason=transition.explained(last), seconds=transition.seconds))
        case BreakerState.HALF_OPEN:
            bus.emit(CircuitHalfOpened(**about))
        case BreakerState.CLOSED:
            bus.emit(CircuitClosed(**about, rejected=transition.rejected))
