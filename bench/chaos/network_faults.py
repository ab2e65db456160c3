"""Consecutive network faults: a pure function of seed and length."""

from collections.abc import Callable, Iterable, Iterator
from random import Random

from bench.chaos.fault_schedule import FEED, LIST, STATE, Action
from bench.chaos.gradual_faults import GradualFault, acts_of, errors
from longstop_lab.simulator.faults import Fault, FaultKind

#: Seconds of quiet after an episode. With the lengths below, a minute always contains every kind.
QUIET = (0.5, 2.5)
CUT = (2.0, 10.0)
OTHERS = (2.0, 5.0)
#: The ways in which a network is gone: closed at once, reset, and silent.
CUTS = (FaultKind.DROP, FaultKind.RESET, FaultKind.LATENCY)
#: The latency of a response that never comes.
SILENCE_SECONDS = 60.0
#: Paths that may be served from a stale cache; the last stands for all.
_OF_THE_PAST = (FEED, STATE, LIST, "/")

#: The actions of one fault that begins at a moment, and how long it lasts.
_Episode = tuple[list[Action], float]


def network_faults(seed: int, seconds: float) -> tuple[Action, ...]:
    """Return the actions in order of time; every kind comes once before one is repeated."""
    return tuple(_network_faults(Random(f"episodes {seed}"), seconds))


def _network_faults(dice: Random, seconds: float) -> Iterator[Action]:
    at, waiting = dice.uniform(*QUIET), list[Callable[[Random, float], _Episode]]()
    while at < seconds:
        if not waiting:
            waiting = dice.sample(_KINDS, len(_KINDS))
        actions, lasting = waiting.pop()(dice, round(at, 3))
        yield from (action for action in actions if action.at < seconds)
        at += lasting + dice.uniform(*QUIET)


def gone(kind: FaultKind, seconds: float) -> Fault:
    """Return a fault that makes the site unreachable; a latency stands for a connection that never responds."""
    silence = SILENCE_SECONDS if kind is FaultKind.LATENCY else 0.0
    return Fault(kind=kind, seconds=silence, valid_seconds=seconds)


def until_return(actions: Iterable[Action], after: float) -> float:
    """Return for how many more seconds the site is unreachable; 0 when it is reachable."""
    ends = (
        action.at + (action.fault.valid_seconds or 0.0)
        for action in actions
        if action.is_cut and action.fault and action.at <= after
    )
    return max([0.0, *(end - after for end in ends)])


def _cut(dice: Random, at: float) -> _Episode:
    lasting = round(dice.uniform(*CUT), 2)
    return [Action(at=at, fault=gone(dice.choice(CUTS), lasting), is_cut=True)], lasting


def _slow(dice: Random, at: float) -> _Episode:
    slope = GradualFault(seconds=dice.randint(4, 10) / 2, top_seconds=round(dice.uniform(0.5, 1.5), 2))
    return list(acts_of(slope, at)), slope.seconds


def _errors(dice: Random, at: float) -> _Episode:
    lasting = _length(dice)
    return [Action(at=at, fault=fault) for fault in errors(round(dice.uniform(0.1, 0.6), 2), lasting)], lasting


def _banned(dice: Random, at: float) -> _Episode:
    lasting = _length(dice)
    fault = Fault(kind=FaultKind.STATUS, status=429, retry_after_seconds=dice.randint(1, 5), valid_seconds=lasting)
    return [Action(at=at, fault=fault)], lasting


def _challenged(dice: Random, at: float) -> _Episode:
    lasting = _length(dice)
    return [Action(at=at, fault=Fault(kind=FaultKind.CHALLENGE, valid_seconds=lasting))], lasting


def _frozen(dice: Random, at: float) -> _Episode:
    lasting = _length(dice)
    fault = Fault(kind=FaultKind.FROZEN, path=dice.choice(_OF_THE_PAST), valid_seconds=lasting)
    return [Action(at=at, fault=fault)], lasting


def _older(dice: Random, at: float) -> _Episode:
    lasting, behind = _length(dice), float(dice.choice((60, 300, 1800)))
    fault = Fault(kind=FaultKind.OLDER, path=dice.choice(_OF_THE_PAST), seconds=behind, valid_seconds=lasting)
    return [Action(at=at, fault=fault)], lasting


_KINDS = (_cut, _slow, _errors, _banned, _challenged, _frozen, _older)


def _length(dice: Random) -> float:
    return round(dice.uniform(*OTHERS), 2)
