"""How long to wait for a site: its time-outs follow how fast it has answered of late (FR-023)."""

from enum import StrEnum

from msgspec import Struct

#: After so many requests the time-outs are looked at again, by the mean of just these.
SAMPLE = 10
#: A mean beyond the first limit changes the pace; only one within the second changes it back, so that a site near a
#: limit is not given now more time and now less.
SLOW_ABOVE, NO_LONGER_SLOW_BELOW = 2.0, 1.5
FAST_BELOW, NO_LONGER_FAST_ABOVE = 0.5, 0.75

#: What a slow site is given, as a factor on the base.
SLOW_FACTOR = 1.5
_SLOW_SELECTOR = 10.0
#: What a fast site keeps of its time, at each look.
_FAST_FACTOR = 0.8
_PAGE_FLOOR = 15.0


class Timeouts(Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds."""

    page: float = 30.0
    navigation: float = 30.0
    selector: float = 5.0
    fetch: float = 10.0


class Pace(StrEnum):
    """How a site answers."""

    USUAL = "usual"
    SLOW = "slow"
    FAST = "fast"


def pace_after(pace: Pace, mean: float) -> Pace:
    """Return the pace that a mean shows, given the one before."""
    if mean > SLOW_ABOVE or (pace is Pace.SLOW and mean >= NO_LONGER_SLOW_BELOW):
        return Pace.SLOW
    if mean < FAST_BELOW or (pace is Pace.FAST and mean <= NO_LONGER_FAST_ABOVE):
        return Pace.FAST
    return Pace.USUAL


def adjusted(base: Timeouts, current: Timeouts, pace: Pace, mean: float) -> Timeouts:
    """Return the time-outs for a pace and the mean that showed it."""
    match pace:
        case Pace.USUAL:
            return base
        case Pace.SLOW:
            return Timeouts(
                page=base.page * SLOW_FACTOR,
                navigation=base.navigation * SLOW_FACTOR,
                selector=_SLOW_SELECTOR,
                fetch=base.fetch * SLOW_FACTOR,
            )
        case Pace.FAST:
            return current if mean >= FAST_BELOW else _shortened(base, current)


def _shortened(base: Timeouts, current: Timeouts) -> Timeouts:
    return Timeouts(
        page=max(_PAGE_FLOOR, min(base.page, current.page) * _FAST_FACTOR),
        navigation=max(_PAGE_FLOOR, min(base.navigation, current.navigation) * _FAST_FACTOR),
        selector=base.selector,
        fetch=max(base.fetch / 2, min(base.fetch, current.fetch) * _FAST_FACTOR),
    )


class AdaptiveTimeouts:
    """The time-outs of one site, as they are now."""

    def __init__(self, base: Timeouts) -> None:
        self._base = base
        self.now = base
        #: Of the last whole sample.
        self.mean = 0.0
        self._pace = Pace.USUAL
        self._sample: list[float] = []

    def observe(self, seconds: float) -> Timeouts | None:
        """Take note of how long a request took, a time-out by its whole length; return new time-outs, if any."""
        self._sample.append(seconds)
        if len(self._sample) < SAMPLE:
            return None
        self.mean = sum(self._sample) / SAMPLE
        self._sample.clear()
        self._pace = pace_after(self._pace, self.mean)
        before, self.now = self.now, adjusted(self._base, self.now, self._pace, self.mean)
        return None if self.now == before else self.now
