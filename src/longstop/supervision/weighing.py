"""Weighs every child with all that it has started, and acts on what the rule in `memory.py` says."""

import asyncio
from collections.abc import Collection, Sequence

from longstop.fetching.browser.base import Usage, held_bytes
from longstop.model.recovery import RecoveryKind
from longstop.process import processes
from longstop.supervision.keeper import Keeper
from longstop.supervision.memory import HIGH_SHARE, MEGABYTE, Act, MemoryLimits, MemoryWatch
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import MemoryExceeded, MemoryHigh, MemoryRecovered

LOOK_SECONDS = 2.0


class Weighing:
    """Looks every two seconds; a child that takes too much is renewed, and the others are weighed on meanwhile."""

    def __init__(
        self,
        keepers: Sequence[Keeper],
        limits: MemoryLimits,
        *,
        bus: Bus,
        stop_within: float,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._keepers = keepers
        self._limits = limits
        self._bus = bus
        self._stop_within = stop_within
        self._look_seconds = look_seconds
        self._watches = {keeper.name: MemoryWatch(limits=limits) for keeper in keepers}
        #: A renewal takes as long as its child needs to stop; whoever must be killed meanwhile has to be seen.
        self._renewals: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Weigh until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._look_seconds)

    async def look(self) -> None:
        """Weigh everybody once."""
        people = await asyncio.to_thread(processes.list_processes)
        for keeper in self._keepers:
            if (pid := keeper.pid) is not None and not keeper.is_over:
                await self._weigh(keeper, pid, people)

    async def _weigh(self, keeper: Keeper, pid: int, people: Collection[processes.Process]) -> None:
        usage = await self._usage(keeper.tree(people))
        size = held_bytes(usage)
        self._watches[keeper.name], act = self._watches[keeper.name].look(pid, size)
        match act:
            case Act.TELL:
                self._tell_high(keeper, usage)
            case Act.TELL_END:
                self._bus.emit(MemoryRecovered(process=keeper.name, held_bytes=size))
            case Act.RENEW:
                self._renew(keeper, pid, "soft", RecoveryKind.SOFT_RESTART, self._limits.soft_bytes, usage)
            case Act.KILL:
                self._renew(keeper, pid, "hard", RecoveryKind.HARD_RESTART, self._limits.hard_bytes, usage)

    async def _usage(self, tree: Collection[processes.Process]) -> Usage:
        """Measure a tree: roughly while it is small, and closely, which costs more, once that may matter."""
        rss = sum(each.rss_bytes for each in tree)
        if rss < HIGH_SHARE * self._limits.soft_bytes:
            return Usage(processes=len(tree), rss_bytes=rss, pss_bytes=None, cpu_seconds=0)
        return await asyncio.to_thread(processes.measure, tree)

    def _tell_high(self, keeper: Keeper, usage: Usage) -> None:
        self._bus.emit(
            MemoryHigh(
                process=keeper.name,
                rss_bytes=usage.rss_bytes or 0,
                pss_bytes=usage.pss_bytes,
                processes=usage.processes,
                soft_limit_bytes=self._limits.soft_bytes,
            )
        )

    def _renew(self, keeper: Keeper, pid: int, limit: str, kind: RecoveryKind, limit_bytes: int, usage: Usage) -> None:
        self._bus.emit(
            MemoryExceeded(
                process=keeper.name,
                limit=limit,
                limit_bytes=limit_bytes,
                rss_bytes=usage.rss_bytes or 0,
                pss_bytes=usage.pss_bytes,
                processes=usage.processes,
            )
        )
        reason = f"it took {held_bytes(usage) // MEGABYTE} MB, above the {limit} limit of {limit_bytes // MEGABYTE} MB"
        within = self._stop_within if kind is RecoveryKind.SOFT_RESTART else 0.0
        task = asyncio.create_task(self._end(keeper, pid, kind, reason, within), name=f"renew {keeper.name}")
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)

    async def _end(self, keeper: Keeper, pid: int, kind: RecoveryKind, reason: str, within: float) -> None:
        try:
            await keeper.renew(pid, kind, reason, within=within)
        except Exception as error:
            self._watches[keeper.name] = self._watches[keeper.name].undone(pid)
            self._bus.emit(failure_of(error, f"renew {keeper.name}"))
