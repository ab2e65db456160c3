"""The rounds of `hostile`: which attack or damage comes when, and what the sites do; a pure function of the seed."""

from collections.abc import Collection, Iterator
from enum import StrEnum
from itertools import zip_longest
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop_lab.simulator.faults import Fault, FaultKind

#: All paths of the hostile site, and none of the healthy one.
HOSTILE_PATHS = "/api/v1/"
_EVENTS = f"{HOSTILE_PATHS}event/"
#: Seconds of a phase with an attack and a fault of the site; damage takes as long as it takes.
SHORT, LONG = 6.0, 20.0
#: A fault of the site lasts so much longer than its phase, and so reaches into the next one, damage included.
LINGER_SECONDS = 6.0
#: How long the slow site takes for an answer.
SLOW_SECONDS = 7.0


class Attack(StrEnum):
    """What clients do to the API."""

    #: Send requests one after the other, and read no answer.
    PIPELINE = "pipeline"
    #: Send headers without end.
    HEADERS = "headers"
    #: Hold hundreds of connections and send nothing.
    IDLE = "idle"
    #: Send a request byte by byte.
    DRIP = "drip"
    #: Read the whole event list again and again; some of them slowly.
    READS = "reads"
    #: Connect and disconnect.
    CHURN = "churn"
    #: Send what is no HTTP, or only nearly.
    GARBAGE = "garbage"
    #: Announce huge bodies and send some of them.
    BODIES = "bodies"


class SiteFault(StrEnum):
    """What the hostile site does, or one hostile match of the healthy site."""

    HUGE_PAGE = "huge-page"
    MANY_BALLS = "many-balls"
    MANY_MATCHES = "many-matches"
    HUGE_NAME = "huge-name"
    CONTROL_CHARACTERS = "control-characters"
    SLOW = "slow"
    TOGETHER = "together"
    #: One match of the healthy site: every body is huge and its event list never ends; it has 50,000 balls.
    MATCH_ENDLESS = "match-endless"
    MATCH_MANY_BALLS = "match-many-balls"


class Damage(StrEnum):
    """What happens to the files of the store."""

    #: A byte in a JSON column of hot.db is changed while everything is stopped.
    HOT_BYTE = "hot-byte"
    #: The header of ops.db is overwritten while everything is stopped.
    OPS_HEADER = "ops-header"
    #: matches.db is cut to a part or to nothing while everything is stopped.
    MATCHES_CUT = "matches-cut"
    #: matches.db is deleted while everything is stopped.
    MATCHES_DELETED = "matches-deleted"
    #: The write-ahead log of matches.db is removed while everything runs.
    WAL_REMOVED = "wal-removed"
    #: matches.db is emptied while everything runs.
    MATCHES_EMPTIED = "matches-emptied"
    #: hot.db is deleted while everything runs.
    HOT_DELETED = "hot-deleted"


#: Damage to a store that runs.
WHILE_RUNNING = frozenset({Damage.WAL_REMOVED, Damage.MATCHES_EMPTIED, Damage.HOT_DELETED})
#: Damage to what is rebuilt without a backup.
REBUILT = frozenset({Damage.HOT_BYTE, Damage.HOT_DELETED})


#: Faults whose effect takes more than a few seconds to show.
_LONG = frozenset({SiteFault.SLOW, SiteFault.TOGETHER, SiteFault.MATCH_ENDLESS, SiteFault.MATCH_MANY_BALLS})


class Phase(Struct, frozen=True, kw_only=True):
    """An attack together with a fault of the site, or damage."""

    attack: Attack | None = None
    site: SiteFault | None = None
    damage: Damage | None = None
    #: Whether the processes are killed before the damage, or stop in order.
    is_killed: bool = False
    #: The part of a cut file that is left.
    left: float = 0.0

    @property
    def seconds(self) -> float:
        return LONG if self.site in _LONG else SHORT

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.value for each in (self.attack, self.site, self.damage) if each is not None)

    def only(self, names: Collection[str]) -> "Phase":
        """Return what of the phase has one of these names."""
        attack, site, damage = (part if part in names else None for part in (self.attack, self.site, self.damage))
        return replace(self, attack=attack, site=site, damage=damage)


PHASE_NAMES = tuple(each.value for each in (*Attack, *SiteFault, *Damage))


def rounds(seed: int) -> Iterator[tuple[Phase, ...]]:
    """Yield rounds without end: every attack, every fault of the site and every damage, in random order."""
    dice = Random(f"hostile {seed}")
    while True:
        attacks, sites = dice.sample(list(Attack), len(Attack)), dice.sample(list(SiteFault), len(SiteFault))
        round_ = [Phase(attack=attack, site=site) for attack, site in zip_longest(attacks, sites)]
        round_ += [
            Phase(damage=damage, is_killed=dice.random() < 0.5, left=dice.choice((0.0, 0.5))) for damage in Damage
        ]
        dice.shuffle(round_)
        yield tuple(round_)


def faults_of(site: SiteFault, match: str, seconds: float) -> tuple[Fault, ...]:
    """Return the rules of a fault; of those that apply to a request, the first one wins. `match` is the hostile one."""
    return tuple(replace(fault, valid_seconds=seconds) for fault in _faults(site, match))


def _faults(site: SiteFault, hostile: str) -> tuple[Fault, ...]:
    match site:
        case SiteFault.MATCH_ENDLESS:
            return (Fault(kind=FaultKind.HUGE_PAGE, match=hostile),)
        case SiteFault.MATCH_MANY_BALLS:
            return (Fault(kind=FaultKind.MANY_BALLS, match=hostile),)
        case SiteFault.SLOW:
            return (Fault(kind=FaultKind.LATENCY, path=HOSTILE_PATHS, seconds=SLOW_SECONDS),)
        case SiteFault.TOGETHER:
            return (
                Fault(kind=FaultKind.LATENCY, path=HOSTILE_PATHS, seconds=SLOW_SECONDS, share=0.2),
                Fault(kind=FaultKind.MANY_MATCHES, path=f"{HOSTILE_PATHS}sport/", share=0.5),
                Fault(kind=FaultKind.MANY_BALLS, path=_EVENTS, share=0.3),
                Fault(kind=FaultKind.HUGE_NAME, path=_EVENTS, share=0.3),
                Fault(kind=FaultKind.CONTROL_CHARACTERS, path=HOSTILE_PATHS, share=0.5),
                Fault(kind=FaultKind.HUGE_PAGE, path=HOSTILE_PATHS),
            )
        case _:
            return (Fault(kind=FaultKind(site.value), path=HOSTILE_PATHS),)
