"""Reports once that the machine ran out of a resource, and once that it recovered."""

import asyncio
from collections.abc import Collection

from longstop.clock import Clock
from longstop.exhaustion import exhausted
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import OutOfResources, PollPostponed, ResourcesRecovered, TaskFailed

#: A resource counts as recovered when nothing was postponed for so long. Loops try more often than that.
RECOVERED_AFTER_SECONDS = 15.0
CHECK_SECONDS = 5.0


class ExhaustionSink:
    """Remembers when work was last postponed for each resource."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._postponed_at: dict[str, float] = {}

    def take(self, event: Telemetry) -> None:
        if isinstance(event, PollPostponed):
            self._postponed_at[event.resource] = self._clock.monotonic()

    def now(self) -> tuple[str, ...]:
        """Return the exhausted resources in alphabetical order."""
        since = self._clock.monotonic() - RECOVERED_AFTER_SECONDS
        return tuple(sorted(resource for resource, at in self._postponed_at.items() if at > since))


class ExhaustionReporter:
    """Emits an event for every resource that ran out or recovered since the last report."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._reported: frozenset[str] = frozenset()

    def report(self, exhausted: Collection[str]) -> None:
        before, self._reported = self._reported, frozenset(exhausted)
        for resource in sorted(self._reported - before):
            self._bus.emit(OutOfResources(resource=resource))
        for resource in sorted(before - self._reported):
            self._bus.emit(ResourcesRecovered(resource=resource))

    async def run(self, sink: ExhaustionSink) -> None:
        """Report what the sink knows, until cancelled."""
        while True:
            self.report(sink.now())
            await asyncio.sleep(CHECK_SECONDS)


def failure_of(error: Exception, task: str) -> PollPostponed | TaskFailed:
    """Return the event for background work that failed and is retried: exhaustion is not a bug."""
    found = exhausted(error)
    return PollPostponed(resource=found.resource, subject=task) if found else TaskFailed.by(error, task=task)
