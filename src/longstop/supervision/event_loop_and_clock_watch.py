"""The lag of the event loop, a thread that reports a loop that is blocked, and jumps of the wall clock."""

import asyncio
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable

from longstop.clock import Clock, Moment
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ClockJumped, LoopResumed, LoopStalled

TICK_SECONDS = 0.25
STALLED_SECONDS = 5.0
#: The worst lag of this many ticks is shown: ten seconds.
SHOWN_TICKS = 40


class LoopWatch:
    """Measures the lag of the event loop on which it is created. A thread reports a loop that is blocked."""

    def __init__(
        self, bus: Bus, monotonic: Callable[[], float], *, tick: float = TICK_SECONDS, stalled: float = STALLED_SECONDS
    ) -> None:
        self._bus = bus
        self._monotonic = monotonic
        self._tick = tick
        self._stalled = stalled
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._ticked_at = monotonic()
        self._lags: deque[float] = deque(maxlen=SHOWN_TICKS)

    @property
    def lag_seconds(self) -> float | None:
        """The worst lag of the last ten seconds; `None` before the first tick."""
        return round(max(self._lags), 4) if self._lags else None

    async def run(self) -> None:
        """Tick until cancelled, while a thread watches the ticks."""
        ending = threading.Event()
        threading.Thread(target=self._watch, args=(ending,), name="event loop watch", daemon=True).start()
        try:
            while True:
                started = self._ticked_at = self._monotonic()
                await asyncio.sleep(self._tick)
                self._lags.append(max(0.0, self._monotonic() - started - self._tick))
        finally:
            ending.set()

    def _watch(self, ending: threading.Event) -> None:
        stalled_since: float | None = None
        while not ending.wait(self._tick):
            ticked_at = self._ticked_at
            if stalled_since is not None and ticked_at != stalled_since:
                self._bus.emit(LoopResumed(seconds=round(ticked_at - stalled_since, 1)))
                stalled_since = None
            if stalled_since is None and self._monotonic() - ticked_at > self._stalled:
                stalled_since = ticked_at
                self._bus.emit(LoopStalled(seconds=round(self._monotonic() - ticked_at, 1), stacks=self._stacks()))

    def _stacks(self) -> str:
        """Return the stacks of all threads, that of the loop first."""
        frames, names = sys._current_frames(), {each.ident: each.name for each in threading.enumerate()}
        running = asyncio.current_task(self._loop)
        head = f"the loop runs {running.get_name()}" if running else "the loop runs no task"
        ordered = sorted(frames, key=lambda ident: ident != self._thread_id)
        # Innermost call first: a long text is cut at its end.
        stacks = {ident: "".join(traceback.format_stack(frames[ident])[::-1]) for ident in ordered}
        return "\n".join([head, *(f"thread {names.get(ident, ident)}:\n{each}" for ident, each in stacks.items())])


#: Clock synchronisation corrects smaller differences all the time.
JUMP_SECONDS = 5.0


class ClockJumpWatch:
    """Reports jumps of the wall clock. No decision depends on it, but timestamps in log and API do."""

    def __init__(self, clock: Clock, bus: Bus) -> None:
        self._clock = clock
        self._bus = bus
        self._last = Moment.of(clock)

    def check(self) -> None:
        """Compare how far the wall clock and the monotonic clock went since the last check."""
        before, self._last = self._last, Moment.of(self._clock)
        elapsed = self._last.monotonic - before.monotonic
        seconds = (self._last.wall - before.wall).total_seconds() - elapsed
        if abs(seconds) >= JUMP_SECONDS:
            self._bus.emit(ClockJumped(seconds=round(seconds, 1)))
