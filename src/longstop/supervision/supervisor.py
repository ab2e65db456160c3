"""The supervisor: keeps children and loops running, one `ChildRunner` for each child.

Children stop in the order in which they are listed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from longstop.clock import Clock
from longstop.process.cgroup_limits_and_kill import ChildGroup
from longstop.supervision.exit_codes import Exit
from longstop.supervision.lifeline_and_heartbeat_pipes import lifeline
from longstop.supervision.recovery_audit import RecoveryAudit
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervised_child import ChildRunner, ChildSpec
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import TaskEnded

#: Seconds in which all children together must stop; the rest is killed.
STOP_WITHIN = 30.0

#: Shorter delays than for processes: a loop costs nothing to restart, and its work is missed at once.
LOOP_BACKOFF = RestartBackoff(settled_after=60.0, first_delay=0.1, longest_delay=10.0)

#: The name of a loop and its function.
Loop = tuple[str, Callable[[], Awaitable[None]]]


class Supervisor:
    """Starts children, restarts each when it dies, and stops them on request. Children do not affect each other."""

    def __init__(
        self,
        children: Sequence[ChildSpec],
        *,
        bus: Bus,
        clock: Clock,
        backoff: RestartBackoff | None = None,
        stop_within: float = STOP_WITHIN,
        group_for: Callable[[str], ChildGroup] = lambda name: ChildGroup(),
        audit: RecoveryAudit | None = None,
    ) -> None:
        self.runners = tuple(
            ChildRunner(
                spec, bus=bus, clock=clock, backoff=backoff or RestartBackoff(), group=group_for(spec.name), audit=audit
            )
            for spec in children
        )
        self._bus = bus
        self._clock = clock
        self._stop_within = stop_within
        self._stop_requested = asyncio.Event()
        self._hurry = asyncio.Event()

    def stop(self) -> None:
        """Make `run` stop the children and return; a second call kills them. Made for a signal handler."""
        if self._stop_requested.is_set():
            self._hurry.set()
        self._stop_requested.set()

    def own_pids(self) -> frozenset[int]:
        return frozenset(pid for runner in self.runners for pid in runner.own_pids())

    async def run(self, loops: Sequence[Loop] = ()) -> Exit:
        """Run children and loops until stopped. No child is left when this returns or raises."""
        with lifeline() as read_end:
            children: list[Loop] = [(f"run {each.name}", partial(each.run, read_end)) for each in self.runners]
            async with asyncio.TaskGroup() as tasks:
                work = [tasks.create_task(self._run(*loop), name=loop[0]) for loop in (*children, *loops)]
                try:
                    await self._stop_requested.wait()
                finally:
                    ended = await self._stop_all()
                    for task in work:  # including a runner whose killed child hangs in the kernel
                        task.cancel()
        return Exit.DONE if ended else Exit.FORCED

    async def _run(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        await run_forever(name, loop, bus=self._bus, clock=self._clock, is_over=self._stop_requested.is_set)

    async def _stop_all(self) -> bool:
        """Stop one child after the other within one deadline; return whether all ended without being killed."""
        deadline = self._clock.monotonic() + self._stop_within
        ended = True
        for behind, runner in reversed(list(enumerate(reversed(self.runners)))):
            within = time_to_stop(deadline - self._clock.monotonic(), behind, self._stop_within)
            ended = await self._stop_one(runner, within) and ended
        return ended

    async def _stop_one(self, runner: ChildRunner, within: float) -> bool:
        try:
            return await runner.stop(within, self._hurry)
        except Exception as error:  # the other children must be stopped all the same
            self._bus.emit(failure_of(error, f"stop {runner.name}"))
            return False


def time_to_stop(left_seconds: float, behind: int, whole_seconds: float) -> float:
    """Return how long a child may take to stop while `behind` others must stop after it within the same period.

    Reserve a tenth of the period for each of them, so that one slow child cannot use up all of it.
    """
    return max(0.0, left_seconds - behind * whole_seconds / 10)


def is_cancelled() -> bool:
    """Return whether the running task itself was cancelled, and not only something that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def run_forever(
    task: str,
    loop: Callable[[], Awaitable[None]],
    *,
    bus: Bus,
    clock: Clock,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Run a loop that should never end, and restart it if it returns or fails, until `is_over` or cancelled."""
    failures = 0
    while not is_over():
        started = clock.monotonic()
        try:
            await loop()
            if is_over():
                return
            bus.emit(TaskEnded(task=task))
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            bus.emit(TaskEnded(task=task))
        except Exception as error:  # any failure: no other task does this work
            bus.emit(failure_of(error, task))
        failures = LOOP_BACKOFF.count_failures(failures, clock.monotonic() - started)
        await asyncio.sleep(LOOP_BACKOFF.delay_after(failures))
