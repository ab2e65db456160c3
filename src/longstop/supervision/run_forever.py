"""A loop that restarts when it returns or fails."""

import asyncio
from collections.abc import Awaitable, Callable

from longstop.clock import Clock
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import TaskEnded

#: Shorter delays than for processes: a loop costs nothing to restart, and its work is missed at once.
LOOP_BACKOFF = RestartBackoff(settled_after=60.0, first_delay=0.1, longest_delay=10.0)


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
