"""Which process of which browser is struck when, and what the log and the kernel say of it afterwards."""

import signal
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from random import Random
from typing import Any

from msgspec import Struct

from longstop.clock import from_iso
from longstop.process.processes import Process
from tests.process_tree import Role

#: Seconds between two blows: some fall before the one before is overcome, and a minute holds every kind.
GAP = (5.0, 7.5)


class Blow(Struct, frozen=True, kw_only=True):
    """One process is killed or halted, so many seconds after the beginning."""

    at: float
    role: Role
    signal: signal.Signals
    source: str


def blows(seed: int, seconds: float, sources: Sequence[str]) -> tuple[Blow, ...]:
    """Return the blows in the order of time; every role has been killed and halted before one is struck again."""
    return tuple(_blows(Random(f"blows {seed}"), seconds, sources))


def _blows(dice: Random, seconds: float, sources: Sequence[str]) -> Iterator[Blow]:
    at = dice.uniform(*GAP) / 2
    kinds = list(product(Role, (signal.SIGKILL, signal.SIGSTOP)))
    waiting: list[tuple[Role, signal.Signals]] = []
    while at < seconds:
        if not waiting:
            waiting = dice.sample(kinds, len(kinds))
        role, sent = waiting.pop()
        yield Blow(at=round(at, 3), role=role, signal=sent, source=dice.choice(sources))
        at += dice.uniform(*GAP)


def tree_of(head: int, people: Sequence[Process]) -> list[Process]:
    """Return the processes of the browser with this first process: its driver, itself, and all below."""
    by_pid = {each.pid: each for each in people}
    if head not in by_pid:
        return []
    found = {head}
    while more := {each.pid for each in people if each.parent in found} - found:
        found |= more
    driver = by_pid.get(by_pid[head].parent)
    return [*([driver] if driver else []), *(by_pid[pid] for pid in sorted(found))]


def noticed_at(events: Iterable[dict[str, Any]], source: str, since: datetime, until: datetime) -> datetime | None:
    """Return when the product first said that something is wrong with a source's browser; `None` if it never did."""
    told = (from_iso(event["timestamp"]) for event in events if event["source"] == source)
    # A log line has milliseconds only.
    return min((at for at in told if since - timedelta(milliseconds=1) <= at <= until), default=None)
