"""Memory limits of the children: above the soft limit a child is restarted, above the hard limit it is killed."""

import asyncio
from collections.abc import Collection, Sequence
from enum import IntEnum
from typing import Any

from msgspec import Struct

from longstop.model.recovery import RecoveryKind
from longstop.model.scraper_report import Usage
from longstop.process import processes
from longstop.supervision.supervised_child import ChildRunner
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import MemoryExceeded, MemoryHigh, MemoryRecovered

MEASURE_SECONDS = 2.0
MEGABYTE = 1024 * 1024
#: Memory use is reported as high at this share of the soft limit …
HIGH_SHARE = 0.80
#: … and as recovered below this one.
RECOVERED_SHARE = 0.70
#: The shares of the container's limit that one child may use.
SOFT_SHARE_OF_CONTAINER = 0.70
HARD_SHARE_OF_CONTAINER = 0.85


class MemoryLimits(Struct, frozen=True, kw_only=True):
    soft_bytes: int
    hard_bytes: int


def within_container(limits: MemoryLimits, container_bytes: int | None) -> MemoryLimits:
    """Lower the limits to fit the container: the kernel would kill without warning."""
    if container_bytes is None:
        return limits
    return MemoryLimits(
        soft_bytes=min(limits.soft_bytes, int(container_bytes * SOFT_SHARE_OF_CONTAINER)),
        hard_bytes=min(limits.hard_bytes, int(container_bytes * HARD_SHARE_OF_CONTAINER)),
    )


class MemoryLevel(IntEnum):
    NORMAL = 0
    #: Above 80 % of the soft limit: reported.
    HIGH = 1
    #: Above the soft limit: restarted.
    SOFT = 2
    #: Above the hard limit: killed.
    HARD = 3


class MemoryWatch(Struct):
    """The memory level of one child, decided from its size alone."""

    limits: MemoryLimits
    #: The process that was measured last: its successor starts at the normal level.
    pid: int = 0
    level: MemoryLevel = MemoryLevel.NORMAL

    def observe(self, pid: int, size_bytes: int) -> MemoryLevel | None:
        """Take a measurement; return the level if that has changed, or if another process exceeds it."""
        before, is_same = self.level, pid == self.pid
        if not is_same:
            self.pid, self.level = pid, MemoryLevel.NORMAL
        self.level = self._level(size_bytes)
        is_known = self.level is before and (is_same or before is MemoryLevel.NORMAL)
        return None if is_known else self.level

    def _level(self, size_bytes: int) -> MemoryLevel:
        if size_bytes >= self.limits.hard_bytes:
            return MemoryLevel.HARD
        # A child that was asked to restart keeps its level, also if it shrinks meanwhile.
        if size_bytes >= self.limits.soft_bytes or self.level >= MemoryLevel.SOFT:
            return max(self.level, MemoryLevel.SOFT)
        share = RECOVERED_SHARE if self.level is MemoryLevel.HIGH else HIGH_SHARE
        return MemoryLevel.HIGH if size_bytes >= self.limits.soft_bytes * share else MemoryLevel.NORMAL


class MemoryMonitor:
    """Measures every child with its descendants every two seconds, and restarts those above a limit."""

    def __init__(self, runners: Sequence[ChildRunner], limits: MemoryLimits, *, bus: Bus, stop_within: float) -> None:
        self._runners = runners
        self._limits = limits
        self._bus = bus
        self._stop_within = stop_within
        self._watches = {runner.name: MemoryWatch(limits=limits) for runner in runners}
        #: A restart takes as long as its child needs to stop. Meanwhile the measuring goes on.
        self._restarts: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        while True:
            await self.measure()
            await asyncio.sleep(MEASURE_SECONDS)

    async def measure(self) -> None:
        everything = await asyncio.to_thread(processes.list_processes)
        for runner in self._runners:
            if (pid := runner.pid) is not None and not runner.is_stopping:
                await self._measure_child(runner, pid, everything)

    async def _measure_child(self, runner: ChildRunner, pid: int, everything: Collection[processes.Process]) -> None:
        usage = await self._usage(runner.tree(everything))
        size = usage.held_bytes
        match self._watches[runner.name].observe(pid, size):
            case MemoryLevel.HIGH:
                soft = self._limits.soft_bytes
                self._bus.emit(MemoryHigh(process=runner.name, soft_limit_bytes=soft, **_sizes(usage)))
            case MemoryLevel.NORMAL:
                self._bus.emit(MemoryRecovered(process=runner.name, held_bytes=size))
            case MemoryLevel.SOFT:
                self._restart(runner, pid, RecoveryKind.SOFT_RESTART, usage)
            case MemoryLevel.HARD:
                self._restart(runner, pid, RecoveryKind.HARD_RESTART, usage)

    async def _usage(self, tree: Collection[processes.Process]) -> Usage:
        """Measure a tree by its RSS while it is small, and by the slower PSS once that matters."""
        rss = sum(each.rss_bytes for each in tree)
        if rss < HIGH_SHARE * self._limits.soft_bytes:
            return Usage(processes=len(tree), rss_bytes=rss, pss_bytes=None)
        return await asyncio.to_thread(processes.measure, tree)

    def _restart(self, runner: ChildRunner, pid: int, kind: RecoveryKind, usage: Usage) -> None:
        is_soft = kind is RecoveryKind.SOFT_RESTART
        limit, limit_bytes = ("soft", self._limits.soft_bytes) if is_soft else ("hard", self._limits.hard_bytes)
        self._bus.emit(MemoryExceeded(process=runner.name, limit=limit, limit_bytes=limit_bytes, **_sizes(usage)))
        reason = f"used {usage.held_bytes // MEGABYTE} MB, above the {limit} limit of {limit_bytes // MEGABYTE} MB"
        within = self._stop_within if is_soft else 0.0
        task = asyncio.create_task(
            self._restart_child(runner, pid, kind, reason, within), name=f"restart {runner.name}"
        )
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)

    async def _restart_child(
        self, runner: ChildRunner, pid: int, kind: RecoveryKind, reason: str, within: float
    ) -> None:
        try:
            await runner.restart(pid, kind, reason, within=within)
        except Exception as error:
            watch = self._watches[runner.name]
            if watch.pid == pid:  # the next measurement decides again
                watch.level = MemoryLevel.NORMAL
            self._bus.emit(failure_of(error, f"restart {runner.name}"))


def _sizes(usage: Usage) -> dict[str, Any]:
    return {"rss_bytes": usage.rss_bytes or 0, "pss_bytes": usage.pss_bytes, "processes": usage.processes}
