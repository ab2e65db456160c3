"""Faults of browser processes: which is killed or stopped when, and when the product noticed."""

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

#: Seconds between two faults: some come before the previous recovery, and a minute contains every kind.
GAP = (5.0, 7.5)


class BrowserFault(Struct, frozen=True, kw_only=True):
    """Kills or stops processes `at` seconds after the start."""

    at: float
    role: Role
    signal: signal.Signals
    source: str


def browser_faults(seed: int, seconds: float, sources: Sequence[str]) -> tuple[BrowserFault, ...]:
    """Return the faults in order of time; every role is killed and stopped once before one is repeated."""
    return tuple(_browser_faults(Random(f"blows {seed}"), seconds, sources))


def _browser_faults(dice: Random, seconds: float, sources: Sequence[str]) -> Iterator[BrowserFault]:
    at = dice.uniform(*GAP) / 2
    kinds = list(product(Role, (signal.SIGKILL, signal.SIGSTOP)))
    waiting: list[tuple[Role, signal.Signals]] = []
    while at < seconds:
        if not waiting:
            waiting = dice.sample(kinds, len(kinds))
        role, sent = waiting.pop()
        yield BrowserFault(at=round(at, 3), role=role, signal=sent, source=dice.choice(sources))
        at += dice.uniform(*GAP)


def tree_of(head: int, processes: Sequence[Process]) -> list[Process]:
    """Return the processes of the browser with this first process: its driver, itself, and all descendants."""
    by_pid = {each.pid: each for each in processes}
    if head not in by_pid:
        return []
    found = {head}
    while more := {each.pid for each in processes if each.parent in found} - found:
        found |= more
    driver = by_pid.get(by_pid[head].parent)
    return [*([driver] if driver else []), *(by_pid[pid] for pid in sorted(found))]


def noticed_at(events: Iterable[dict[str, Any]], source: str, since: datetime, until: datetime) -> datetime | None:
    """Return when the product first reported a failure of a source's browser; `None` if it never did."""
    reported = (from_iso(event["timestamp"]) for event in events if event["source"] == source)
    # Log lines have a resolution of milliseconds.
    return min((at for at in reported if since - timedelta(milliseconds=1) <= at <= until), default=None)
