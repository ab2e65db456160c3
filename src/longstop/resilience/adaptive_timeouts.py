"""Adaptive time-outs: they follow how fast a site responds (FR-023)."""

from enum import StrEnum

from msgspec import Struct

#: Requests in a sample; time-outs follow its mean.
SAMPLE = 10
#: Hysteresis: a mean beyond the first limit changes the speed, and only one within the second changes it back.
SLOW_ABOVE, NO_LONGER_SLOW_BELOW = 2.0, 1.5
FAST_BELOW, NO_LONGER_FAST_ABOVE = 0.5, 0.75

#: Factor on the base for a slow site.
SLOW_FACTOR = 1.5
_SLOW_SELECTOR = 10.0
#: Factor on the current time-out of a fast site, for each sample.
_FAST_FACTOR = 0.8
_PAGE_FLOOR = 15.0


class Timeouts(Struct, frozen=True, kw_only=True):
    """Time-outs in seconds."""

    page: float = 30.0
    navigation: float = 30.0
    selector: float = 5.0
    fetch: float = 10.0


class SiteSpeed(StrEnum):
    USUAL = "usual"
    SLOW = "slow"
    FAST = "fast"


def speed_after(speed: SiteSpeed, mean: float) -> SiteSpeed:
    if mean > SLOW_ABOVE or (speed is SiteSpeed.SLOW and mean >= NO_LONGER_SLOW_BELOW):
        return SiteSpeed.SLOW
    if mean < FAST_BELOW or (speed is SiteSpeed.FAST and mean <= NO_LONGER_FAST_ABOVE):
        return SiteSpeed.FAST
    return SiteSpeed.USUAL


def adjusted(base: Timeouts, current: Timeouts, speed: SiteSpeed, mean: float) -> Timeouts:
    match speed:
        case SiteSpeed.USUAL:
            return base
        case SiteSpeed.SLOW:
            return Timeouts(
                page=base.page * SLOW_FACTOR,
                navigation=base.navigation * SLOW_FACTOR,
                selector=_SLOW_SELECTOR,
                fetch=base.fetch * SLOW_FACTOR,
            )
        case SiteSpeed.FAST:
            return current if mean >= FAST_BELOW else _shortened(base, current)


def _shortened(base: Timeouts, current: Timeouts) -> Timeouts:
    return Timeouts(
        page=max(_PAGE_FLOOR, min(base.page, current.page) * _FAST_FACTOR),
        navigation=max(_PAGE_FLOOR, min(base.navigation, current.navigation) * _FAST_FACTOR),
        selector=base.selector,
        fetch=max(base.fetch / 2, min(base.fetch, current.fetch) * _FAST_FACTOR),
    )


class AdaptiveTimeouts:
    def __init__(self, base: Timeouts) -> None:
        self._base = base
        self.now = base
        #: Mean of the last complete sample.
        self.mean = 0.0
        self._speed = SiteSpeed.USUAL
        self._sample: list[float] = []

    def observe(self, seconds: float) -> Timeouts | None:
        """Record the duration of a request (of a time-out, its length); return new time-outs if they changed."""
        self._sample.append(seconds)
        if len(self._sample) < SAMPLE:
            return None
        self.mean = sum(self._sample) / SAMPLE
        self._sample.clear()
        self._speed = speed_after(self._speed, self.mean)
        before, self.now = self.now, adjusted(self._base, self.now, self._speed, self.mean)
        return None if self.now == before else self.now
