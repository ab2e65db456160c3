"""Which of our processes is struck next, and how: an endless row that the seed fixes."""

from collections.abc import Iterator
from enum import StrEnum
from random import Random

from msgspec import Struct

#: Seconds between the end of one trouble and the next strike.
PAUSE = (0.2, 2.5)
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


class Strike(Struct, frozen=True, kw_only=True):
    """One process is killed, or halted for a while."""

    victim: Victim
    #: Seconds after the one before was overcome.
    pause: float
    #: Seconds for which it stands still; 0 kills it.
    halt: float = 0.0


def strikes(seed: int) -> Iterator[Strike]:
    """Yield strikes without end; in each round everybody is killed once and one child is halted."""
    dice = Random(f"strikes {seed}")
    while True:
        kills = [(victim, 0.0) for victim in Victim]
        row = [*kills, (dice.choice(CHILDREN), round(dice.uniform(*HALT), 1))]
        for victim, halt in dice.sample(row, len(row)):
            yield Strike(victim=victim, pause=round(dice.uniform(*PAUSE), 2), halt=halt)


#: How many strikes hold everything once.
ROUND = len(Victim) + 1
