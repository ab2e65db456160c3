"""The bus: one call for those who have something to say, any number of sinks that listen."""

import sys
from collections.abc import Sequence
from typing import Protocol

from longstop.telemetry.events import Telemetry


class Sink(Protocol):
    """Whoever turns events into something: a log line, a counter, a row."""

    def take(self, event: Telemetry) -> None: ...


class Bus:
    """Hands every event to every sink; a failing sink is named on stderr once and never stops the work."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self._sinks = tuple(sinks)
        self._complained: set[int] = set()

    def emit(self, event: Telemetry) -> None:
        for sink in self._sinks:
            try:
                sink.take(event)
            except Exception as error:  # a sink is foreign to the work: whatever it raises, the work goes on
                self._complain(sink, error)

    def _complain(self, sink: Sink, error: Exception) -> None:
        if id(sink) in self._complained:
            return
        self._complained.add(id(sink))
        print(f"telemetry sink {type(sink).__name__} fails: {error!r}", file=sys.stderr)
