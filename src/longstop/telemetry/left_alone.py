"""The sink that knows who is left alone now, and why: open breakers, pages that cannot be read, sites that rest."""

from datetime import timedelta

from longstop.clock import Clock
from longstop.model.breaker import BreakerNote
from longstop.telemetry.events import (
    BreakerClosed,
    BreakerOpened,
    BreakerProbing,
    LayoutBroken,
    LayoutMended,
    MatchMoved,
    SourceRests,
    Telemetry,
)

#: Beyond, only the number is told.
MAX_NOTED = 1_000

_Key = tuple[str, str]


class LeftAlone:
    """Remembers what was opened and not closed again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notes: dict[_Key, BreakerNote] = {}
        #: When the rests are over, by the clock that never jumps.
        self._rests: dict[_Key, float] = {}

    def take(self, event: Telemetry) -> None:
        match event:
            case BreakerOpened():
                self._note(event.scope, event.subject, "open", event.reason, event.seconds)
            case BreakerProbing():
                self._note(event.scope, event.subject, "half_open", "", None)
            case LayoutBroken():
                reason = f"{event.failures} pages in a row could not be read"
                self._note("layout", f"{event.source} {event.resource}", "open", reason, None)
            case SourceRests():
                self._note("rest", event.source, "open", "the site has asked for it", event.seconds)
                self._rests["rest", event.source] = self._clock.monotonic() + event.seconds
            case BreakerClosed():
                self._notes.pop((event.scope, event.subject), None)
            case LayoutMended():
                self._notes.pop(("layout", f"{event.source} {event.resource}"), None)
            case MatchMoved(after="archived"):
                self._notes.pop(("match", event.ref), None)
            case _:
                pass

    def notes(self) -> tuple[BreakerNote, ...]:
        """Return who is left alone now; a rest that is over is forgotten."""
        now = self._clock.monotonic()
        over = [key for key, until in self._rests.items() if until <= now]
        for key in over:
            del self._rests[key]
            self._notes.pop(key, None)
        return tuple(self._notes.values())

    def _note(self, scope: str, subject: str, state: str, reason: str, seconds: float | None) -> None:
        now, known = self._clock.now(), self._notes.get((scope, subject))
        if known is None and len(self._notes) >= MAX_NOTED:
            return
        self._notes[scope, subject] = BreakerNote(
            scope=scope,
            subject=subject,
            state=state,
            since=known.since if known else now,
            until=None if seconds is None else now + timedelta(seconds=seconds),
            reason=reason or (known.reason if known else ""),
        )
