"""Detection of unresponsive children: a child that sends no heartbeat is killed and restarted."""

import asyncio
from collections.abc import Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock
from longstop.model.recovery import RecoveryKind
from longstop.supervision.supervised_child import ChildRunner
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ChildUnresponsive

CHECK_SECONDS = 1.0
#: A child without any heartbeat is still starting: on a slow disk that takes a while.
FIRST_PATIENCE_SECONDS = 60.0
#: At most this much of the time between two checks counts as silence. A late check means that the supervisor itself was
#: suspended: a container that was frozen must not cost all children their lives when it resumes.
COUNTED_SECONDS = 2 * CHECK_SECONDS


class HeartbeatWatch(Struct, frozen=True, kw_only=True):
    """The silence of one child process, in monotonic time. Pure."""

    #: Seconds of silence after which it is unresponsive.
    patience: float
    pid: int | None = None
    has_beaten: bool = False
    silent_seconds: float = 0.0
    checked_at: float = 0.0

    @property
    def is_unresponsive(self) -> bool:
        return self.silent_seconds >= (self.patience if self.has_beaten else max(self.patience, FIRST_PATIENCE_SECONDS))

    def check(self, pid: int, now: float, *, has_beaten: bool) -> Self:
        """Return the watch after a check. Another pid starts over, and so does a child that was found unresponsive."""
        if pid != self.pid or self.is_unresponsive:
            return replace(self, pid=pid, has_beaten=has_beaten, silent_seconds=0.0, checked_at=now)
        silent = 0.0 if has_beaten else self.silent_seconds + min(now - self.checked_at, COUNTED_SECONDS)
        return replace(self, has_beaten=self.has_beaten or has_beaten, silent_seconds=silent, checked_at=now)


class HeartbeatMonitor:
    """Checks the heartbeat of every child each second. An unresponsive child ignores SIGTERM, so it is killed."""

    def __init__(self, runners: Sequence[ChildRunner], *, patience: float, bus: Bus, clock: Clock) -> None:
        self._runners = runners
        self._bus = bus
        self._clock = clock
        self._watches = {runner.name: HeartbeatWatch(patience=patience) for runner in runners}

    async def run(self) -> None:
        while True:
            await self.check()
            await asyncio.sleep(CHECK_SECONDS)

    async def check(self) -> None:
        for runner in self._runners:
            # A child that was asked to stop sends no heartbeats.
            if (pid := runner.pid) is not None and not runner.is_stopping:
                await self._check_child(runner, pid)

    async def _check_child(self, runner: ChildRunner, pid: int) -> None:
        before = self._watches[runner.name]
        has_beaten = runner.has_beaten()
        watch = self._watches[runner.name] = before.check(pid, self._clock.monotonic(), has_beaten=has_beaten)
        if watch.is_unresponsive:
            seconds = round(watch.silent_seconds, 1)
            self._bus.emit(ChildUnresponsive(process=runner.name, pid=pid, silent_seconds=seconds))
            reason = f"unresponsive: no heartbeat for {seconds:.0f} s"
            await runner.restart(pid, RecoveryKind.HARD_RESTART, reason, within=0)
