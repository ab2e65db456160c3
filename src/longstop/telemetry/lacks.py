"""The sink that knows what this machine lacks now."""

from longstop.clock import Clock
from longstop.telemetry.events.base import Telemetry
from longstop.telemetry.events.processes import MachineLacked

#: What nobody has missed for so long is there again: matches in play are tried more often than that.
OVER_AFTER_SECONDS = 15.0


class Lacks:
    """Remembers what was missed, and when for the last time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._missed: dict[str, float] = {}

    def take(self, event: Telemetry) -> None:
        if isinstance(event, MachineLacked):
            self._missed[event.resource] = self._clock.monotonic()

    def now(self) -> tuple[str, ...]:
        """Return what is lacking, in the order of the alphabet."""
        since = self._clock.monotonic() - OVER_AFTER_SECONDS
        return tuple(sorted(resource for resource, at in self._missed.items() if at > since))
