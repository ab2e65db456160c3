"""The rounds of `hostile`: which attack or damage comes when, and what the sites do; a pure function of the seed."""

from collections.abc import Collection, Iterator
from enum import StrEnum
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop_lab.simulator.faults import Fault, FaultKind

#: All paths of the hostile site, and none of the healthy one.
HOSTILE_PATHS = "/api/v1/"
_EVENTS = f"{HOSTILE_PATHS}event/"
#: Seconds of an attack, and of a fault of the site; damage takes as long as it takes.
ATTACK_SECONDS = (4.5, 5.5)
SITE_SECONDS = 14.0
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


class Phase(Struct, frozen=True, kw_only=True):
    """An attack or damage."""

    name: Attack | Damage
    #: Of an attack.
    seconds: float = 0.0
    #: Whether the processes are killed before the damage, or stop in order.
    is_killed: bool = False
    #: The part of a cut file that is left.
    left: float = 0.0


class Round(Struct, frozen=True, kw_only=True):
    """Every attack and damage one after the other; meanwhile, every fault of the sites."""

    phases: tuple[Phase, ...]
    sites: tuple[SiteFault, ...]

    def only(self, names: Collection[str]) -> "Round":
        """Return what of the round has one of these names."""
        return Round(
            phases=tuple(phase for phase in self.phases if phase.name in names),
            sites=tuple(site for site in self.sites if site in names),
        )


PHASE_NAMES = tuple(each.value for each in (*Attack, *SiteFault, *Damage))


def rounds(seed: int) -> Iterator[Round]:
    """Yield rounds in random order, without end."""
    dice = Random(f"hostile {seed}")
    while True:
        phases = [Phase(name=attack, seconds=round(dice.uniform(*ATTACK_SECONDS), 1)) for attack in Attack]
        phases += [Phase(name=kind, is_killed=dice.random() < 0.5, left=dice.choice((0.0, 0.5))) for kind in Damage]
        dice.shuffle(phases)
        yield Round(phases=tuple(phases), sites=tuple(dice.sample(list(SiteFault), len(SiteFault))))


def faults_of(site: SiteFault, match: str, seconds: float = SITE_SECONDS) -> tuple[Fault, ...]:
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
