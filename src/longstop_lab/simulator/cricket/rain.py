"""Rain in a limited-overs match, and the targets after it.

Targets follow Duckworth and Lewis in shape: overs are worth less the more wickets are lost. The figures are invented.
"""

from enum import StrEnum
from math import exp
from random import Random

from msgspec import Struct


class Shower(Struct, frozen=True, kw_only=True):
    """One interruption of an innings."""

    #: The number of overs bowled before it.
    after: int
    seconds: float
    #: The new length of the innings in overs; a length that is already reached ends it.
    limit: int


class Weather(Struct, frozen=True, kw_only=True):
    """All the rain of a match."""

    #: Overs of each side at the start.
    overs: int
    delay_seconds: float = 0.0
    first: Shower | None = None
    second: Shower | None = None
    #: Whether the second side never bats.
    is_over_after_first: bool = False


class _Story(StrEnum):
    LATE_START = "late start"
    FIRST_CUT = "first innings cut"
    FIRST_CLOSED = "first innings closed"
    CHASE_CUT = "chase cut"
    CHASE_WASHED_OUT = "chase washed out"
    NO_CHASE = "no chase"
    NO_RESULT = "no result"


def forecast(overs: int, least: int, dice: Random) -> Weather:
    """Return random rain; `least` is the number of overs that the second side needs for a result."""
    seconds = dice.uniform(1200, 5400)
    early, late = dice.randint(least, overs // 2), dice.randint(overs // 2, overs - 3)
    fewer = dice.randint(late + 1, overs - 2) if late + 1 < overs - 1 else overs - 1
    match dice.choice(list(_Story)):
        case _Story.LATE_START:
            return Weather(overs=dice.randint(least, overs - 2), delay_seconds=seconds)
        case _Story.FIRST_CUT:
            return Weather(overs=overs, first=Shower(after=early, seconds=seconds, limit=fewer))
        case _Story.FIRST_CLOSED:
            return Weather(overs=overs, first=Shower(after=late, seconds=seconds, limit=late))
        case _Story.CHASE_CUT:
            return Weather(overs=overs, second=Shower(after=early, seconds=seconds, limit=fewer))
        case _Story.CHASE_WASHED_OUT:
            return Weather(overs=overs, second=Shower(after=late, seconds=seconds, limit=late))
        case _Story.NO_CHASE:
            shower = Shower(after=late, seconds=seconds, limit=late)
            return Weather(overs=overs, first=shower, is_over_after_first=True)
        case _Story.NO_RESULT:
            soon = dice.randint(1, least - 1)
            return Weather(overs=overs, second=Shower(after=soon, seconds=seconds, limit=soon))


#: The worth of the remaining wickets with unlimited overs, by wickets lost.
_WORTH = (1.0, 0.92, 0.83, 0.73, 0.62, 0.51, 0.4, 0.29, 0.19, 0.09, 0.0)
_PER_OVER = 0.045


def resources(overs: float, wickets: int) -> float:
    """Return the resources of a side with these overs left and these wickets lost."""
    worth = _WORTH[min(wickets, len(_WORTH) - 1)]
    return worth * (1 - exp(-_PER_OVER * overs / worth)) if worth else 0.0


def had(whole: int, *, after: int, wickets: int, limit: int) -> float:
    """Return the total resources of a side whose innings of `whole` overs was cut to `limit` after `after` overs."""
    lost = resources(whole - after, wickets) - resources(limit - after, wickets)
    return resources(whole, 0) - lost


def par(runs: int, first: float, second: float, usual: int) -> int:
    """Return the score that is level with `runs`; `usual` is the average score of a full innings."""
    if second <= first:
        return int(runs * (second / first))
    return runs + int(usual * (second - first))
