"""Which alerts are told: each condition once in a while, and its end only to those who heard of it. Pure."""

from collections import deque

import msgspec
from msgspec import Struct

from longstop.telemetry.alerts import Alert

#: The same condition is not told again within so many seconds.
QUIET_SECONDS = 600.0
#: Nor within so many of its end.
QUIET_AFTER_END = 60.0
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
        #: The keys, by name, for which one alert stands, each with what is still to be told of it.
        self._folded: dict[str, dict[str, Alert | None]] = {}
        #: Ends that came together with another one, and go out behind it.
        self._ends: list[Told] = []

    def admit(self, alert: Alert, now: float) -> Told | None:
        """Return what goes out now, if anything."""
        known = self._known.get(alert.key)
        if alert.is_resolved:
            return self._end(alert, now)
        if known is None and self._is_crowded(alert, now):
            return self._fold(alert, now)
        if known is None or now >= known.quiet_until:
            return self._tell(alert, known.suppressed if known else 0, now)
        known.suppressed += 1
        known.held = alert
        self._holding.add(alert.key)
        return None

    def overdue(self, now: float) -> list[Told]:
        """Return what was held back long enough, and is still true."""
        ends, self._ends = self._ends, []
        due = [each for each in map(self._known.__getitem__, self._holding) if now >= each.quiet_until]
        # The one that goes out was not held back after all.
        return ends + [self._tell(each.held, each.suppressed - 1, now) for each in due if each.held is not None]

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
        if alert.is_for_all:
            self._folded[alert.name] = dict.fromkeys(self._folded.get(alert.name, ()))
        return Told(alert=alert, suppressed=suppressed)

    def _fold(self, alert: Alert, now: float) -> Told | None:
        """Let one alert stand for this one and all like it."""
        told = self.admit(_for_all(alert), now)
        folded = self._folded.setdefault(alert.name, {})
        folded.pop(alert.key, None)
        folded[alert.key] = None if told else _for_all(alert)
        if len(folded) > MAX_CONDITIONS:
            del folded[next(iter(folded))]
        return told

    def _end(self, alert: Alert, now: float) -> Told | None:
        own, of_all = self._over(alert, now), self._unfold(alert, now)
        if own is not None and of_all is not None:
            self._ends.append(of_all)
        return own or of_all

    def _unfold(self, alert: Alert, now: float) -> Told | None:
        """Return the end of what stood for many, if this was the last of them."""
        folded = self._folded.get(alert.name, {})
        if alert.key not in folded:
            return None
        del folded[alert.key]
        if not folded:
            return self._over(_for_all(alert), now)
        self._hold_another(_many(alert), folded)
        return None

    def _hold_another(self, key: str, folded: dict[str, Alert | None]) -> None:
        """Hold back the newest of those that are still true and untold, and nothing when there are none."""
        if key not in self._holding:
            return
        newest = next((each for each in reversed(folded.values()) if each is not None), None)
        self._known[key].held = newest
        if newest is None:
            self._holding.discard(key)

    def _over(self, alert: Alert, now: float) -> Told | None:
        known = self._known.get(alert.key)
        if known is None:
            return None
        known.held = None
        self._holding.discard(alert.key)
        was_told, known.is_told = known.is_told, False
        if not was_told:
            return None
        # Whoever has heard of the end takes all for well: trouble that comes back is told soon.
        known.quiet_until = min(known.quiet_until, now + QUIET_AFTER_END)
        return Told(alert=alert)


def _many(alert: Alert) -> str:
    """Return the key of what stands for an alert and all like it."""
    return f"{alert.name} (many)"


def _for_all(alert: Alert) -> Alert:
    """Return an alert that stands for this one and all like it."""
    title = f"{alert.title}, and {'all' if alert.is_resolved else 'more'} like it"
    return msgspec.structs.replace(alert, key=_many(alert), title=title, is_for_all=True)
