"""What this machine lacks now: who misses something says so, and it is told once as long as it lasts."""

import asyncio
from collections.abc import Collection

from longstop.clock import Clock
from longstop.lacking import exhausted
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.base import Telemetry
from longstop.telemetry.events.processes import OutOfResources, PollPostponed, ResourcesRecovered, TaskFailed

#: What nobody has missed for so long is there again, unless a match still waits for it; loops try more often than that.
OVER_AFTER_SECONDS = 15.0
LOOK_SECONDS = 5.0


class Lacks:
    """The sink that remembers what was missed, and when for the last time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._missed: dict[str, float] = {}

    def take(self, event: Telemetry) -> None:
        if isinstance(event, PollPostponed):
            self._missed[event.resource] = self._clock.monotonic()

    def now(self) -> tuple[str, ...]:
        """Return what is lacking, in the order of the alphabet."""
        since = self._clock.monotonic() - OVER_AFTER_SECONDS
        return tuple(sorted(resource for resource, at in self._missed.items() if at > since))


class Shortage:
    """Tells what has begun to lack, once, and what is there again."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._told: frozenset[str] = frozenset()

    def tell(self, lacks: Collection[str]) -> None:
        before, self._told = self._told, frozenset(lacks)
        for resource in sorted(self._told - before):
            self._bus.emit(OutOfResources(resource=resource))
        for resource in sorted(before - self._told):
            self._bus.emit(ResourcesRecovered(resource=resource))

    async def follow(self, lacks: Lacks) -> None:
        """Tell what a sink knows, until cancelled."""
        while True:
            self.tell(lacks.now())
            await asyncio.sleep(LOOK_SECONDS)


def failure_of(error: Exception, task: str) -> PollPostponed | TaskFailed:
    """Return what to tell of work that failed and is tried again: a lack of this machine's is no bug."""
    lack = exhausted(error)
    return PollPostponed(resource=lack.resource, subject=task) if lack else TaskFailed.by(error, task=task)
