"""Who may come in while memory is short: nobody new, and those go first of whom nobody has heard for long (EC6)."""

from collections.abc import Mapping

from longstop.clock import Clock
from longstop.supervision.admission import idle_ones
from longstop.supervision.room import Room
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import MemoryInsufficient


class Doorman:
    """Asks for room before matches are taken up; after a refusal not again for a minute."""

    def __init__(self, source: str, *, room: Room, clock: Clock, bus: Bus) -> None:
        self._source = source
        self._room = room
        self._clock = clock
        self._bus = bus
        #: Memory was short when it was last asked for; it is asked for again at this moment, monotonic.
        self.short_until = float("-inf")

    def lets_in(self, wanted: int) -> bool:
        """Return whether so many new matches may be taken up now."""
        now = self._clock.monotonic()
        if not wanted or now < self.short_until:
            return not wanted
        refusal = self._room.refusal()
        if refusal is None:
            return True
        self.short_until = now + refusal.retry_after_seconds
        self._bus.emit(
            MemoryInsufficient(
                source=self._source,
                wanted=wanted,
                available_bytes=refusal.available_bytes,
                needed_bytes=refusal.needed_bytes,
                seconds=refusal.retry_after_seconds,
            )
        )
        return False

    def show_out(self, active_at: Mapping[str, float]) -> list[str]:
        """Return which of the watches end now, by when each was last active; nobody while there is room."""
        now = self._clock.monotonic()
        return idle_ones(active_at, now) if now < self.short_until else []
