"""Which process is killed or stopped next: an endless sequence that the seed determines."""

from collections.abc import Iterator
from enum import StrEnum
from random import Random

from msgspec import Struct

#: Seconds between a recovery and the next fault.
PAUSE = (0.2, 2.5)
#: Seconds before a hurried fault, which comes while other processes start, take over and sync.
HURRY = (0.0, 3.0)
#: How long a child is stopped: longer than two polls, shorter than the time to be declared unresponsive.
HALT = (4.0, 8.0)


class Target(StrEnum):
    """The kind of process that is killed or stopped."""

    SCRAPER = "scraper"
    API = "api"
    #: The supervisor.
    UP = "up"
    BROWSER = "browser"


CHILDREN = (Target.SCRAPER, Target.API)
#: The owners of the browser.
OWNERS = (Target.SCRAPER, Target.UP)


class ProcessFault(Struct, frozen=True, kw_only=True):
    """One process is killed, or halted for a while."""

    target: Target
    #: Seconds after the previous recovery, or after the previous fault if this one is hurried.
    pause: float
    #: Seconds for which it is stopped; 0 kills it.
    halt: float = 0.0
    is_hurried: bool = False
    #: Whether the browser is halted just before: then it does not notice its owner's death, and has to be ended.
    is_browser_halted: bool = False


def process_faults(seed: int) -> Iterator[ProcessFault]:
    """Yield faults without end; in each round every kind is killed once, one of them hurried, and a child is stopped.

    The hurried one is a kill and never the first, so that a round starts and ends after a recovery. One owner of the
    browser dies while the browser is halted.
    """
    dice = Random(f"strikes {seed}")
    while True:
        kills = [(target, 0.0) for target in Target]
        row = [*kills, (dice.choice(CHILDREN), round(dice.uniform(*HALT), 1))]
        row = dice.sample(row, len(row))
        hurried = dice.choice([place for place, (_, halt) in enumerate(row) if place > 0 and not halt])
        orphaning = dice.choice(OWNERS)
        for place, (target, halt) in enumerate(row):
            is_hurried = place == hurried
            pause = round(dice.uniform(*(HURRY if is_hurried else PAUSE)), 2)
            yield ProcessFault(
                target=target,
                pause=pause,
                halt=halt,
                is_hurried=is_hurried,
                is_browser_halted=target is orphaning and not halt,
            )


#: The number of faults in one round.
ROUND = len(Target) + 1
