"""The caretaker: grades its scraper, acts when it fails, and looks whether that helped."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock
from longstop.errors import RestartNeeded
from longstop.model.match import MonitoringRecord
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.supervision.actions import OBSERVED_WITHIN_SECONDS
from longstop.supervision.audit import Recoveries, Ticket
from longstop.supervision.freshness import Freshness
from longstop.supervision.grades import (
    EVALUATED_EVERY_SECONDS,
    STALL_SECONDS,
    Age,
    Grade,
    Sample,
    Standing,
    after_interval,
    in_vain,
    recovered,
    recycled,
)
from longstop.supervision.remedy import Remedy, Vain, remedy, still_hoped_for
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import HealthDegraded, HealthFailing, HealthRecovered, HealthRecovering
from longstop.telemetry.exhaustion import ExhaustionReporter, failure_of

#: A recycle that takes longer than this hangs itself.
RECYCLE_WITHIN_SECONDS = 30.0
#: A process that has never read anything was no remedy itself: it asks for the next one only after so long a life.
RESTART_AGAIN_SECONDS = 3600.0


class Recycle(Protocol):
    """Makes afresh what matches are asked with: connections, watches, browsers."""

    async def __call__(self, reason: str, match_ids: Collection[int] | None = None) -> None:
        """Do it for these matches and their sources, or for all."""
        ...


class _Recycling(Struct):
    """A recycle whose outcome is not seen yet."""

    ticket: Ticket
    began: float
    match_ids: frozenset[int]
    task: asyncio.Task[None]


class Caretaker:
    """Looks after one scraper. It is shown the records every second or so, and never waits."""

    def __init__(
        self,
        node: str,
        *,
        recycle: Recycle,
        recoveries: Recoveries,
        pids: Callable[[], Collection[int]],
        bus: Bus,
        clock: Clock,
        stall_after: float = STALL_SECONDS,
        lacks: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._node = node
        self._recycle = recycle
        self._recoveries = recoveries
        self._pids = pids
        self._bus = bus
        self._clock = clock
        self._freshness = Freshness(stall_after)
        #: Says what was missed a moment ago.
        self._lacks = lacks
        self._shortage = ExhaustionReporter(bus)
        self._born = clock.monotonic()
        self._next_at = self._born + EVALUATED_EVERY_SECONDS
        self._recycling: _Recycling | None = None
        self._vain = Vain()
        self.standing = Standing()
        #: Since when the grade is what it is.
        self.graded_at = clock.now()

    @property
    def is_recovering(self) -> bool:
        return self._recycling is not None

    def look(self, records: Sequence[MonitoringRecord]) -> None:
        """See how it goes; act when it is time. Raise `RestartNeeded` when nothing else is left."""
        now = self._clock.monotonic()
        self._freshness.observe(records, now)
        sample = self._freshness.sample(now)
        # A match that had to do without lacks it until its next look, which may be far away.
        sample = replace(sample, lacks=tuple(sorted({*sample.lacks, *self._lacks()})))
        self._shortage.report(sample.lacks)
        self._vain = self._vain.kept(sample)
        if self._recycling is not None:
            self._see_outcome(self._recycling, sample, now)
        elif now >= self._next_at:
            self._next_at = now + EVALUATED_EVERY_SECONDS
            self._stand(after_interval(self.standing, sample))
            if self.standing.grade is Grade.FAILING:
                self._act(sample, now)

    def _act(self, sample: Sample, now: float) -> None:
        may_restart = self._freshness.has_read or now - self._born >= RESTART_AGAIN_SECONDS
        match remedy(sample, self._vain, may_restart=may_restart):
            case Remedy.RECYCLE:
                self._begin(still_hoped_for(sample, self._vain))
            case Remedy.RESTART:
                raise RestartNeeded(f"{self.standing.reason}, and making everything afresh has not helped")
            case Remedy.HOLD:
                # Where all of them rest, the reason says so already.
                because = "; nobody may be asked now" if sample.offenders else ""
                self.standing = replace(self.standing, reason=f"{self.standing.reason}{because}")
            case Remedy.LEAVE:
                self.standing = replace(self.standing, reason=f"{self.standing.reason}; a recycle has not helped")

    def _begin(self, offenders: Sequence[Age]) -> None:
        reason, match_ids = self.standing.reason, frozenset(age.match_id for age in offenders)
        ticket = self._recoveries.begin(
            RecoveryKind.RECYCLE, trigger=reason, subject=self._node, pids_before=self._pids()
        )
        task = asyncio.create_task(self._do(reason, match_ids), name="recycle")
        self._recycling = _Recycling(ticket, self._clock.monotonic(), match_ids, task)
        self._stand(recycled(self.standing))

    async def _do(self, reason: str, match_ids: Collection[int]) -> None:
        try:
            async with asyncio.timeout(RECYCLE_WITHIN_SECONDS):
                await self._recycle(reason, match_ids)
        except Exception as error:  # what it did so far may help all the same: the outcome is looked for
            self._bus.emit(failure_of(error, "recycle"))

    def _see_outcome(self, recycling: _Recycling, sample: Sample, now: float) -> None:
        read = self._freshness.read_since(recycling.match_ids, recycling.began)
        seconds = now - recycling.began
        if read:
            others = f" and {len(read) - 1} more were" if len(read) > 1 else " was"
            self._end(RecoveryOutcome.RECOVERED, f"{read[0]}{others} read again")
            self._stand(recovered(self.standing))
        elif not self._freshness.is_any_wanted(recycling.match_ids):
            self._end(RecoveryOutcome.RECOVERED, "nothing is left to be read")
            self._stand(recovered(self.standing))
        elif seconds >= OBSERVED_WITHIN_SECONDS:
            self._vain = self._vain.after(recycling.match_ids, sample)
            self._end(RecoveryOutcome.NOT_RECOVERED, f"none of its matches was read for {seconds:.0f} s after")
            self._stand(in_vain(self.standing))
            self._next_at = now

    def _end(self, outcome: RecoveryOutcome, observed: str) -> None:
        recycling, self._recycling = self._recycling, None
        if recycling is None:
            return
        recycling.task.cancel()
        self._recoveries.end(recycling.ticket, outcome, observed=observed, pids_after=self._pids())

    def _stand(self, standing: Standing) -> None:
        before, self.standing = self.standing.grade, standing
        if standing.grade is not before:
            self.graded_at = self._clock.now()
            self._bus.emit(_told(before, standing))


def _told(before: Grade, standing: Standing) -> Telemetry:
    match standing.grade:
        case Grade.HEALTHY:
            return HealthRecovered(before=before.value)
        case Grade.DEGRADED:
            return HealthDegraded(before=before.value, reason=standing.reason)
        case Grade.FAILING:
            return HealthFailing(before=before.value, reason=standing.reason)
        case Grade.RECOVERING:
            return HealthRecovering(before=before.value, reason=standing.reason)
