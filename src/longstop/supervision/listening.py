"""Listens to the beats of every child, and renews one that stands still by the rule in `standstill.py`."""

import asyncio
from collections.abc import Sequence

from longstop.clock import Clock
from longstop.model.recovery import RecoveryKind
from longstop.supervision.keeper import Keeper
from longstop.supervision.standstill import LOOK_SECONDS, BeatWatch
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ChildUnresponsive


class Listening:
    """Looks every second. A child that stands still hears no request, so it is killed with all that it has started."""

    def __init__(self, keepers: Sequence[Keeper], *, patience: float, bus: Bus, clock: Clock) -> None:
        self._keepers = keepers
        self._bus = bus
        self._clock = clock
        self._watches = {keeper.name: BeatWatch(patience=patience) for keeper in keepers}

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Listen to everybody once."""
        for keeper in self._keepers:
            # One that was asked to stop need not beat any more.
            if (pid := keeper.pid) is not None and not keeper.is_over:
                await self._listen(keeper, pid)

    async def _listen(self, keeper: Keeper, pid: int) -> None:
        before = self._watches[keeper.name]
        watch = self._watches[keeper.name] = before.look(pid, self._clock.monotonic(), has_beaten=keeper.hear())
        if watch.stands_still:
            seconds = round(watch.silent_seconds, 1)
            self._bus.emit(ChildUnresponsive(process=keeper.name, pid=pid, silent_seconds=seconds))
            reason = f"it stands still: no sign of life for {seconds:.0f} s"
            await keeper.renew(pid, RecoveryKind.HARD_RESTART, reason, within=0)
