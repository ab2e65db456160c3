"""The sink that knows who is left alone now, and why: open breakers, pages that cannot be read, sites that rest."""

from msgspec.structs import replace

from longstop.clock import Clock, Moment
from longstop.model.breaker import BreakerNote
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchPhaseChanged
from longstop.telemetry.events.sources import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    LayoutBroken,
    LayoutRecovered,
    SourceRateLimited,
)

#: Beyond, only the number is told.
MAX_NOTED = 1_000

_Key = tuple[str, str]


class LeftAlone:
    """Remembers what was opened and not closed again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notes: dict[_Key, BreakerNote] = {}
        #: When they are tried again, by the clock that never jumps.
        self._until: dict[_Key, float] = {}

    def take(self, event: Telemetry) -> None:
        match event:
            case CircuitOpened():
                self._note(event.scope, event.subject, "open", event.reason, event.seconds)
            case CircuitHalfOpened():
                self._note(event.scope, event.subject, "half_open", "", None)
            case LayoutBroken():
                reason = f"{event.failures} pages in a row could not be read"
                self._note("layout", f"{event.source} {event.resource}", "open", reason, None)
            case SourceRateLimited():
                self._note("rest", event.source, "open", "the site has asked for it", event.seconds)
            case CircuitClosed():
                self._notes.pop((event.scope, event.subject), None)
            case LayoutRecovered():
                self._notes.pop(("layout", f"{event.source} {event.resource}"), None)
            case MatchPhaseChanged(after="archived"):
                self._notes.pop(("match", event.ref), None)
            case _:
                pass

    def notes(self) -> tuple[BreakerNote, ...]:
        """Return who is left alone now; a rest that is over is forgotten."""
        now = Moment.of(self._clock)
        self._until = {key: until for key, until in self._until.items() if key in self._notes}
        for key in [key for key, until in self._until.items() if key[0] == "rest" and until <= now.monotonic]:
            del self._notes[key]
        return tuple(_timed(note, self._until.get(key), now) for key, note in self._notes.items())

    def _note(self, scope: str, subject: str, state: str, reason: str, seconds: float | None) -> None:
        key = (scope, subject)
        known = self._notes.get(key)
        if known is None and len(self._notes) >= MAX_NOTED:
            return
        self._until.pop(key, None)
        if seconds is not None:
            self._until[key] = self._clock.monotonic() + seconds
        self._notes[key] = BreakerNote(
            scope=scope,
            subject=subject,
            state=state,
            since=known.since if known else self._clock.now(),
            reason=reason or (known.reason if known else ""),
        )


def _timed(note: BreakerNote, until: float | None, now: Moment) -> BreakerNote:
    """Return a note with the time that is left, told anew each time: the wall clock may have been set meanwhile."""
    if until is None:
        return note
    left = max(0.0, round(until - now.monotonic, 3))
    return replace(note, until=now.on_the_wall(until), left_seconds=left)
