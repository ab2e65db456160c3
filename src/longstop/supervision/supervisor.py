"""The supervisor: one keeper for each child process, stopped in the order in which the children are listed."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from longstop import __version__
from longstop.clock import Clock
from longstop.settings import PARENT_FD_VARIABLE
from longstop.supervision.backoff import RestartPolicy
from longstop.supervision.parent import life_line_of_children
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import ChildDied, ProcessStarted, ProcessStopped

#: Seconds a child has to stop by itself before its whole process group is killed.
STOP_WITHIN = 30.0
#: What a shell says of a command that it could not start.
NOT_STARTED = 127


class ChildSpec(Struct, frozen=True, kw_only=True):
    """A process to keep alive."""

    name: str
    argv: tuple[str, ...]
    #: Its whole environment; the supervisor adds the pipe to itself.
    env: Mapping[str, str]


class Supervisor:
    """Starts children, starts them again when they die, and stops them when asked. One child's death is its own."""

    def __init__(
        self,
        children: Sequence[ChildSpec],
        *,
        bus: Bus,
        clock: Clock,
        policy: RestartPolicy | None = None,
        stop_within: float = STOP_WITHIN,
    ) -> None:
        self._keepers = [_Keeper(spec, bus, clock, policy or RestartPolicy()) for spec in children]
        self._stop_within = stop_within
        self._stop_asked = asyncio.Event()

    def stop(self) -> None:
        """Ask `run` to stop the children and return; meant for a signal handler."""
        self._stop_asked.set()

    async def run(self) -> None:
        """Keep the children alive until asked to stop; none is left when this returns, however it returns."""
        with life_line_of_children() as read_end:
            async with asyncio.TaskGroup() as tasks:
                for keeper in self._keepers:
                    tasks.create_task(keeper.keep(read_end), name=f"keep {keeper.name}")
                try:
                    await self._stop_asked.wait()
                finally:
                    for keeper in self._keepers:
                        await keeper.stop(self._stop_within)


class _Keeper:
    """One child's life after life."""

    def __init__(self, spec: ChildSpec, bus: Bus, clock: Clock, policy: RestartPolicy) -> None:
        self.name = spec.name
        self._spec = spec
        self._bus = bus
        self._clock = clock
        self._policy = policy
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        # Held while a start is under way, so that a stop never misses the process that is just being born.
        self._starting = asyncio.Lock()

    async def keep(self, life_line: int) -> None:
        deaths = 0
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            pid, exit_code = await self._live_once(life_line)
            if self._stopping.is_set():
                return
            deaths = self._policy.deaths_in_a_row(deaths, self._clock.monotonic() - began)
            wait = self._policy.wait_after(deaths)
            self._bus.emit(ChildDied(process=self.name, pid=pid, exit_code=exit_code, restart_in_seconds=wait))
            await self._pause(wait)

    async def stop(self, within: float) -> None:
        self._stopping.set()
        async with self._starting:
            process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await process.wait()
        _kill_group(process.pid)
        await process.wait()
        self._bus.emit(ProcessStopped(process=self.name, pid=process.pid))

    async def _live_once(self, life_line: int) -> tuple[int, int]:
        """Start the child, wait for its end, and return its pid and exit code."""
        try:
            async with self._starting:
                if self._stopping.is_set():
                    return 0, 0
                process = self._process = await self._start(life_line)
        except OSError:  # no memory, no process slot, no such program: the next try may do better
            return 0, NOT_STARTED
        self._bus.emit(ProcessStarted(process=self.name, pid=process.pid, version=__version__))
        exit_code = await process.wait()
        if not self._stopping.is_set():
            self._process = None
            # What the dead child started must not work on beside the next one.
            _kill_group(process.pid)
        return process.pid, exit_code

    async def _start(self, life_line: int) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._spec.argv,
            env={**self._spec.env, PARENT_FD_VARIABLE: str(life_line)},
            stdin=DEVNULL,
            pass_fds=(life_line,),
            start_new_session=True,  # a process group of its own: Ctrl-C reaches the supervisor alone
        )

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
