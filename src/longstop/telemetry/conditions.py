"""Which alerts are told: each condition once in a while, and its end only to those who heard of it. Pure."""

from collections import deque

import msgspec
from msgspec import Struct

from longstop.telemetry.alerts import Alert

#: The same condition is not told again within so many seconds.
QUIET_SECONDS = 600.0
#: Conditions that are remembered; beyond, the oldest is forgotten and may be told again.
MAX_CONDITIONS = 10_000
#: When so many alike went out within a minute, one more stands for all that follow: a site that is down is one trouble,
#: not a thousand matches'.
CROWD = 10
CROWD_SECONDS = 60.0


class Told(Struct, frozen=True, kw_only=True):
    """An alert that goes out, and how often it was held back before."""

    alert: Alert
    suppressed: int = 0


class _Condition(Struct):
    quiet_until: float
    #: Whether the last word that went out was of trouble.
    is_told: bool = True
    suppressed: int = 0
    #: The newest alert that came too soon: it goes out when the quiet time is over, unless the trouble is.
    held: Alert | None = None


class Conditions:
    """Remembers what was told. Moments are monotonic and given by the caller."""

    def __init__(self, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._quiet_seconds = quiet_seconds
        self._known: dict[str, _Condition] = {}
        #: The keys of those with something held back.
        self._holding: set[str] = set()
        #: When the latest alerts of each name went out.
        self._latest: dict[str, deque[float]] = {}

    def admit(self, alert: Alert, now: float) -> Told | None:
        """Return what goes out now, if anything."""
        known = self._known.get(alert.key)
        if alert.is_resolved:
            return self._end(alert, known)
        if known is None and self._is_crowded(alert, now):
            return self.admit(_for_all(alert), now)
        if known is None or now >= known.quiet_until:
            return self._tell(alert, known.suppressed if known else 0, now)
        known.suppressed += 1
        known.held = alert
        self._holding.add(alert.key)
        return None

    def overdue(self, now: float) -> list[Told]:
        """Return what was held back long enough, and is still true."""
        due = [each for each in map(self._known.__getitem__, self._holding) if now >= each.quiet_until]
        # The one that goes out was not held back after all.
        return [self._tell(each.held, each.suppressed - 1, now) for each in due if each.held is not None]

    def next_due(self) -> float | None:
        """Return when something held back goes out, at the earliest."""
        return min((self._known[key].quiet_until for key in self._holding), default=None)

    def forget(self, key: str) -> None:
        """Count a condition as never told: what was said of it has not arrived."""
        self._known.pop(key, None)
        self._holding.discard(key)

    def _is_crowded(self, alert: Alert, now: float) -> bool:
        latest = self._latest.get(alert.name, deque())
        return not alert.is_for_all and len(latest) == CROWD and now - latest[0] < CROWD_SECONDS

    def _tell(self, alert: Alert, suppressed: int, now: float) -> Told:
        self.forget(alert.key)
        self._latest.setdefault(alert.name, deque(maxlen=CROWD)).append(now)
        if len(self._known) >= MAX_CONDITIONS:
            self.forget(next(iter(self._known)))
        self._known[alert.key] = _Condition(quiet_until=now + self._quiet_seconds)
        return Told(alert=alert, suppressed=suppressed)

    def _end(self, alert: Alert, known: _Condition | None) -> Told | None:
        if known is None:
            return None
        known.held = None
        self._holding.discard(alert.key)
        was_told, known.is_told = known.is_told, False
        return Told(alert=alert) if was_told else None


def _for_all(alert: Alert) -> Alert:
    """Return an alert that stands for this one and all like it."""
    return msgspec.structs.replace(
        alert, key=f"{alert.name} (many)", title=f"{alert.title}, and more like it", is_for_all=True
    )
