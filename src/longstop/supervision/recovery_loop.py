"""The recovery loop of a scraper: grades it, recycles when it fails, and checks whether that helped."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock
from longstop.errors import RestartNeeded
from longstop.model.polling_status import MonitoringRecord
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.supervision.health_grade_and_recovery import (
    EVALUATED_EVERY_SECONDS,
    STALL_SECONDS,
    Age,
    FailedRecycles,
    Freshness,
    Grade,
    GradeState,
    RecoveryAction,
    Sample,
    after_interval,
    moved,
    recovery_action,
    worth_recycling,
)
from longstop.supervision.recovery_audit import OBSERVED_WITHIN_SECONDS, RecoveryAudit
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import HealthDegraded, HealthFailing, HealthRecovered, HealthRecovering
from longstop.telemetry.health_sinks import ExhaustionReporter

#: A recycle that takes longer than this hangs.
RECYCLE_WITHIN_SECONDS = 30.0
#: A process that has never read anything asks for a restart only after this uptime: restarting it did not help before.
RESTART_AGAIN_SECONDS = 3600.0


#: Restarts what matches are polled with, and their sources: connections, watches, browsers. Takes a reason.
Recycle = Callable[[str, Collection[int]], Awaitable[None]]

_EVENTS = {Grade.DEGRADED: HealthDegraded, Grade.FAILING: HealthFailing, Grade.RECOVERING: HealthRecovering}


class _Recycling(Struct):
    """A recycle whose outcome is not known yet."""

    recovery: Recovery
    began: float
    match_ids: frozenset[int]
    task: asyncio.Task[None]


class HealthMonitor:
    """Grades one scraper and recovers it. Called with the records every second or so; never waits."""

    def __init__(
        self,
        node: str,
        *,
        recycle: Recycle,
        recoveries: RecoveryAudit,
        pids: Callable[[], Collection[int]],
        bus: Bus,
        clock: Clock,
        stall_after: float = STALL_SECONDS,
        exhausted: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._node = node
        self._recycle = recycle
        self._recoveries = recoveries
        self._pids = pids
        self._bus = bus
        self._clock = clock
        self._freshness = Freshness(stall_after, clock.monotonic())
        #: Returns the resources that the machine ran out of just now.
        self._exhausted = exhausted
        self._reporter = ExhaustionReporter(bus)
        self._started = clock.monotonic()
        self._next_at = self._started + EVALUATED_EVERY_SECONDS
        self._recycling: _Recycling | None = None
        self._failed = FailedRecycles()
        self.state = GradeState()
        #: When the grade last changed.
        self.graded_at = clock.now()

    @property
    def is_recovering(self) -> bool:
        return self._recycling is not None

    def evaluate(self, records: Sequence[MonitoringRecord]) -> None:
        """Update the grade, and act when it is due. Raise `RestartNeeded` when only a new process can help."""
        now = self._clock.monotonic()
        self._freshness.observe(records, now)
        sample = self._freshness.sample(now)
        # A match whose poll was postponed reports the shortage until its next poll, which may be far away.
        sample = replace(sample, exhausted=tuple(sorted({*sample.exhausted, *self._exhausted()})))
        self._reporter.report(sample.exhausted)
        self._failed = self._failed.pruned(sample)
        if self._recycling is not None:
            self._check_outcome(self._recycling, sample, now)
        elif now >= self._next_at:
            self._next_at = now + EVALUATED_EVERY_SECONDS
            self._set(after_interval(self.state, sample))
            if self.state.grade is Grade.FAILING:
                self._act(sample, now)

    def _act(self, sample: Sample, now: float) -> None:
        may_restart = self._freshness.has_read or now - self._started >= RESTART_AGAIN_SECONDS
        match recovery_action(sample, self._failed, may_restart=may_restart):
            case RecoveryAction.RECYCLE:
                self._start_recycle(worth_recycling(sample, self._failed))
            case RecoveryAction.RESTART:
                raise RestartNeeded(f"{self.state.reason}, and recycling did not help")
            case RecoveryAction.WAIT:
                # If breakers pause all matches, the reason says so already.
                because = "; polling is blocked by an open circuit or a rate limit" if sample.overdue else ""
                self.state = replace(self.state, reason=f"{self.state.reason}{because}")
            case RecoveryAction.GIVE_UP:
                self.state = replace(self.state, reason=f"{self.state.reason}; recycling did not help")

    def _start_recycle(self, overdue: Sequence[Age]) -> None:
        reason, match_ids = self.state.reason, frozenset(age.match_id for age in overdue)
        recovery = self._recoveries.begin(
            RecoveryKind.RECYCLE, trigger=reason, subject=self._node, pids_before=self._pids()
        )
        task = asyncio.create_task(self._run_recycle(reason, match_ids), name="recycle")
        self._recycling = _Recycling(recovery, self._clock.monotonic(), match_ids, task)
        self._set(moved(self.state, Grade.RECOVERING))

    async def _run_recycle(self, reason: str, match_ids: Collection[int]) -> None:
        try:
            async with asyncio.timeout(RECYCLE_WITHIN_SECONDS):
                await self._recycle(reason, match_ids)
        except Exception as error:  # the part that was done may help: the outcome is checked all the same
            self._bus.emit(failure_of(error, "recycle"))

    def _check_outcome(self, recycling: _Recycling, sample: Sample, now: float) -> None:
        read = self._freshness.read_since(recycling.match_ids, recycling.began)
        seconds = now - recycling.began
        if read:
            others = f" and {len(read) - 1} more were" if len(read) > 1 else " was"
            self._end_recycle(recycling, RecoveryOutcome.RECOVERED, f"{read[0]}{others} read again")
        elif not self._freshness.is_any_wanted(recycling.match_ids):
            self._end_recycle(recycling, RecoveryOutcome.RECOVERED, "no match is left to read")
        elif seconds >= OBSERVED_WITHIN_SECONDS:
            self._failed = self._failed.after(recycling.match_ids, sample)
            observed = f"none of its matches was read within {seconds:.0f} s"
            self._end_recycle(recycling, RecoveryOutcome.NOT_RECOVERED, observed)
            self._next_at = now

    def _end_recycle(self, recycling: _Recycling, outcome: RecoveryOutcome, observed: str) -> None:
        self._recycling = None
        recycling.task.cancel()
        self._recoveries.end(recycling.recovery, outcome, observed=observed, pids_after=self._pids())
        self._set(moved(self.state, Grade.HEALTHY if outcome is RecoveryOutcome.RECOVERED else Grade.FAILING))

    def _set(self, state: GradeState) -> None:
        before, self.state = self.state.grade, state
        if state.grade is before:
            return
        self.graded_at = self._clock.now()
        if state.grade is Grade.HEALTHY:
            self._bus.emit(HealthRecovered(before=before.value))
        else:
            self._bus.emit(_EVENTS[state.grade](before=before.value, reason=state.reason))
