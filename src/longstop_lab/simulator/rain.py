"""What the weather does to a limited-overs match."""

from enum import StrEnum
from random import Random

from msgspec import Struct


class Shower(Struct, frozen=True, kw_only=True):
    """Rain in an innings."""

    #: After so many overs.
    after: int
    seconds: float
    #: How many overs the innings has from then on; no more than it had means that it is closed.
    limit: int


class Weather(Struct, frozen=True, kw_only=True):
    """All the rain of a match."""

    #: How many overs a side has at the start.
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
    """Return the weather of a wet day; `least` is how many overs of the second side make a match."""
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
