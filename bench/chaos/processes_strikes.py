"""Which of our processes is struck next, and how: an endless row that the seed fixes."""

from collections.abc import Iterator
from enum import StrEnum
from random import Random

from msgspec import Struct

#: Seconds between the end of one trouble and the next strike.
PAUSE = (0.2, 2.5)
#: Seconds between two strikes of which the second does not wait: it falls while others start, take over and sync.
HURRY = (0.0, 3.0)
#: For how long a child stands still: longer than two looks, shorter than it takes to be called silent.
HALT = (4.0, 8.0)


class Victim(StrEnum):
    """Who is struck."""

    SCRAPER = "scraper"
    API = "api"
    #: The supervisor.
    UP = "up"
    BROWSER = "browser"


CHILDREN = (Victim.SCRAPER, Victim.API)
#: With whom the browser loses its owner.
OWNERS = (Victim.SCRAPER, Victim.UP)


class Strike(Struct, frozen=True, kw_only=True):
    """One process is killed, or halted for a while."""

    victim: Victim
    #: Seconds after the one before was overcome; after it fell, if this one is hurried.
    pause: float
    #: Seconds for which it stands still; 0 kills it.
    halt: float = 0.0
    is_hurried: bool = False
    #: Whether the browser is halted just before: then it does not notice its owner's death, and has to be ended.
    is_browser_halted: bool = False


def strikes(seed: int) -> Iterator[Strike]:
    """Yield strikes without end; in each round everybody is killed once, one of them in a hurry, and a child is halted.

    The hurried one is a kill and never the first, so that a round ends and begins when all is well. One owner of the
    browser dies while that is halted.
    """
    dice = Random(f"strikes {seed}")
    while True:
        kills = [(victim, 0.0) for victim in Victim]
        row = [*kills, (dice.choice(CHILDREN), round(dice.uniform(*HALT), 1))]
        row = dice.sample(row, len(row))
        hurried = dice.choice([place for place, (_, halt) in enumerate(row) if place > 0 and not halt])
        orphaning = dice.choice(OWNERS)
        for place, (victim, halt) in enumerate(row):
            is_hurried = place == hurried
            pause = round(dice.uniform(*(HURRY if is_hurried else PAUSE)), 2)
            yield Strike(
                victim=victim,
                pause=pause,
                halt=halt,
                is_hurried=is_hurried,
                is_browser_halted=victim is orphaning and not halt,
            )


#: How many strikes hold everything once.
ROUND = len(Victim) + 1
