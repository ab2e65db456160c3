"""The schedule of kills and faults: a pure function of seed and length, so that every run can be repeated."""

from collections.abc import Iterator
from random import Random

from msgspec import Struct

from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.hostile_bodies import HOSTILE_BODIES

LIST = "/api/v3/getLiveMatches"
STATE = "/api/v3/getSV3"
CARD = "/api/v3/getSC4"
FEED = "/commentary/v1/getBallFeeds"
NAMES = "/mapping/getHomeMapData"
PATHS = (LIST, STATE, CARD, FEED, NAMES)

#: Seconds between two kills, and between two new faults.
KILL_GAP = (4.0, 9.0)
FAULT_GAP = (0.8, 2.0)
#: The duration of a fault; longer ones are the subject of other suites.
FAULT_SECONDS = (0.5, 4.0)
#: Every nth kill hits the API instead of the scraper.
API_KILL_EVERY = 5

#: Hostile bodies are the subject of `hostile`: a refused match is not up to date.
KINDS = tuple(kind for kind in FaultKind if kind not in HOSTILE_BODIES)

_FIELDS = ("a", "B", "j", "b", "o", "on", "inning", "type", "id", "s", "runs", "fv", "bf", "pf", "c", "d", "f_key")


class Action(Struct, frozen=True, kw_only=True):
    """A kill or the start of a fault, `at` seconds after the start."""

    at: float
    kill: str | None = None
    fault: Fault | None = None
    #: Whether the site is unreachable during the fault, so that the recovery is timed.
    is_cut: bool = False


def schedule(seed: int, seconds: float) -> tuple[Action, ...]:
    """Return the actions in the order of time."""
    return tuple(sorted([*_kills(seed, seconds), *_faults(seed, seconds)], key=lambda action: action.at))


def _kills(seed: int, seconds: float) -> Iterator[Action]:
    dice = Random(f"kills {seed}")
    at, nth = dice.uniform(*KILL_GAP) / 2, 1
    while at < seconds:
        yield Action(at=round(at, 3), kill="scraper" if nth % API_KILL_EVERY else "api")
        at, nth = at + dice.uniform(*KILL_GAP), nth + 1


def _faults(seed: int, seconds: float) -> Iterator[Action]:
    """Yield faults; every kind comes once before one is repeated."""
    dice = Random(f"faults {seed}")
    at, waiting = dice.uniform(*FAULT_GAP), list[FaultKind]()
    while at < seconds:
        if not waiting:
            waiting = dice.sample(KINDS, len(KINDS))
        yield Action(at=round(at, 3), fault=_fault(waiting.pop(), dice))
        at += dice.uniform(*FAULT_GAP)


def _fault(kind: FaultKind, dice: Random) -> Fault:
    return Fault(
        kind=kind,
        path=dice.choice(("/", *PATHS)) if kind is not FaultKind.UNLISTED else LIST,
        share=round(dice.choice((1.0, dice.uniform(0.1, 0.9))), 2),
        valid_seconds=round(dice.uniform(*FAULT_SECONDS), 2),
        seconds=_seconds(kind, dice),
        jitter_seconds=round(dice.uniform(0, 0.5), 2) if kind is FaultKind.LATENCY else 0.0,
        status=dice.choice((403, 404, 429, 500, 502, 503)) if kind is FaultKind.STATUS else 503,
        field=dice.choice(_FIELDS) if kind is FaultKind.RENAMED else "",
    )


def _seconds(kind: FaultKind, dice: Random) -> float:
    match kind:
        case FaultKind.LATENCY:
            return round(dice.uniform(0.05, 1.0), 2)
        case FaultKind.OLDER:
            return float(dice.choice((60, 300, 1800)))
        case FaultKind.DRIP:
            return 0.05
        case _:
            return 0.0
