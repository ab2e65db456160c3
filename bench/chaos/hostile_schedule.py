"""The phases of `hostile`: which attack, site fault or damage comes when; a pure function of the seed."""

from collections.abc import Collection, Iterator
from enum import StrEnum
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop_lab.simulator.faults import Fault, FaultKind

#: All paths of the hostile site, and none of the healthy one.
HOSTILE_PATHS = "/api/v1/"
_EVENTS = f"{HOSTILE_PATHS}event/"
#: Seconds of a phase with hostile clients and a hostile site; damage takes as long as it takes.
PHASE_SECONDS = (4.5, 5.5)
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
    """What the hostile site does."""

    HUGE_PAGE = "huge-page"
    MANY_BALLS = "many-balls"
    MANY_MATCHES = "many-matches"
    HUGE_NAME = "huge-name"
    CONTROL_CHARACTERS = "control-characters"
    SLOW = "slow"
    TOGETHER = "together"


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


class Phase(Struct, frozen=True, kw_only=True):
    """Hostile clients together with a hostile site, or damage."""

    seconds: float = 0.0
    attack: Attack | None = None
    site: SiteFault | None = None
    damage: Damage | None = None
    #: Whether the processes are killed before the damage, or stop in order.
    is_killed: bool = False
    #: The part of a cut file that is left.
    left: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.value for each in (self.attack, self.site, self.damage) if each is not None)

    def only(self, names: Collection[str]) -> "Phase | None":
        """Return the parts of the phase with these names, if there is one."""
        attack, site, damage = (part if part in names else None for part in (self.attack, self.site, self.damage))
        return replace(self, attack=attack, site=site, damage=damage) if attack or site or damage else None


PHASE_NAMES = tuple(each.value for each in (*Attack, *SiteFault, *Damage))


def phases(seed: int) -> Iterator[tuple[Phase, ...]]:
    """Yield rounds without end; a round contains every attack, site fault and damage, in random order."""
    dice = Random(f"hostile {seed}")
    while True:
        attacks, sites = dice.sample(list(Attack), len(Attack)), dice.sample(list(SiteFault), len(SiteFault))
        round_ = [
            Phase(
                seconds=round(dice.uniform(*PHASE_SECONDS), 1),
                attack=attack,
                site=sites[nth % len(sites)],
            )
            for nth, attack in enumerate(attacks)
        ]
        round_ += [
            Phase(damage=damage, is_killed=dice.random() < 0.5, left=dice.choice((0.0, 0.5))) for damage in Damage
        ]
        dice.shuffle(round_)
        yield tuple(round_)


def faults_of(site: SiteFault, seconds: float) -> tuple[Fault, ...]:
    """Return the rules of a site fault; of those that apply to a request, the first one wins."""
    return tuple(replace(fault, valid_seconds=seconds) for fault in _faults(site))


def _faults(site: SiteFault) -> tuple[Fault, ...]:
    match site:
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
