"""Loops that never end: one that does, or fails, is an incident, is told, and is started again."""

import asyncio
from collections.abc import Awaitable, Callable

from longstop.clock import Clock
from longstop.supervision.backoff import RestartPolicy
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import TaskEnded

#: Sooner than for processes: a loop costs nothing to start, and what it does is missed at once.
POLICY = RestartPolicy(settled_after=60.0, first_wait=0.1, longest_wait=10.0)


def is_cancelled() -> bool:
    """Return whether the running task itself was asked to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def keep_going(
    task: str,
    loop: Callable[[], Awaitable[None]],
    *,
    bus: Bus,
    clock: Clock,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Run a loop until it is over or this is cancelled, whatever the loop itself does."""
    ends = 0
    while not is_over():
        began = clock.monotonic()
        try:
            await loop()
            if is_over():
                return
            bus.emit(TaskEnded(task=task))
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            bus.emit(TaskEnded(task=task))  # something that it waited for was cancelled, not the loop itself
        except Exception as error:  # whatever it was, nobody else does the loop's work
            bus.emit(failure_of(error, task))
        ends = POLICY.deaths_in_a_row(ends, clock.monotonic() - began)
        await asyncio.sleep(POLICY.wait_after(ends))
