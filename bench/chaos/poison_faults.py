"""Wrong answers with status 200: which come at the first contact, and which later; a pure function of the seed."""

from collections.abc import Iterator, Sequence
from random import Random

from msgspec.structs import replace

from bench.chaos.fault_schedule import CARD, FEED, STATE, Action
from longstop_lab.simulator.faults import Fault, FaultKind

#: Together, the faults of the first contact change half of all answers.
FIRST_SHARE = 0.5
#: Seconds of an episode. What a site repeats for more than ten seconds replaces what is believed.
LENGTH = (4.0, 7.0)
#: Seconds between two episodes: long enough for a poll of every match in play.
QUIET = (3.0, 3.5)
#: How long page and event list show the same wrong match.
WINDOW_SECONDS = 3.0
#: The age of old copies, in world seconds.
BEHIND_SECONDS = 300.0

#: The resources of a match, as prefixes; the lists of matches are not among them.
_PAGES = (STATE, CARD, FEED, "/api/v1/event/")

_OTHER_MATCH = Fault(kind=FaultKind.OTHER_MATCH)
_OTHER_MATCH_TOGETHER = Fault(kind=FaultKind.OTHER_MATCH, window_seconds=WINDOW_SECONDS)
_POISONED = Fault(kind=FaultKind.POISONED)
_SWAPPED = Fault(kind=FaultKind.SWAPPED)
_OLDER = Fault(kind=FaultKind.OLDER, seconds=BEHIND_SECONDS)
_ALL = (_OTHER_MATCH, _OTHER_MATCH_TOGETHER, _POISONED, _SWAPPED, _OLDER)


def first_contact() -> tuple[Fault, ...]:
    """Return the faults that are active before the first request, until they are removed.

    Lists do not swap teams: as long as nothing is stored, a list and a page that are wrong alike seem to agree.
    """
    return tuple(
        replace(fault, path=path)
        for fault in together(_ALL, FIRST_SHARE)
        for path in (_PAGES if fault.kind is FaultKind.SWAPPED else ("/",))
    )


def later_faults(seed: int, seconds: float) -> tuple[Action, ...]:
    """Return the actions in order of time; every episode comes once before one is repeated."""
    return tuple(_later_faults(Random(f"poison {seed}"), seconds))


def _later_faults(dice: Random, seconds: float) -> Iterator[Action]:
    at, waiting = dice.uniform(*QUIET), list[tuple[Fault, ...]]()
    while at < seconds:
        if not waiting:
            waiting = dice.sample([*((fault,) for fault in _ALL), _ALL], len(_ALL) + 1)
        faults, lasting = waiting.pop(), round(min(dice.uniform(*LENGTH), seconds - at), 2)
        # Every answer has the same wrong numbers: a repetition proves nothing.
        share = 1.0 if faults == (_POISONED,) else round(dice.uniform(0.5, 0.9), 2)
        for fault in together(faults, share):
            yield Action(at=round(at, 3), fault=replace(fault, valid_seconds=lasting))
        at += lasting + dice.uniform(*QUIET)


def together(faults: Sequence[Fault], share: float) -> tuple[Fault, ...]:
    """Return faults that hit this share of requests together, each as many as the others."""
    each = share / len(faults)
    # The first fault that applies wins: only the requests that it let pass are left for the next one.
    return tuple(replace(fault, share=round(each / (1 - nth * each), 4)) for nth, fault in enumerate(faults))
