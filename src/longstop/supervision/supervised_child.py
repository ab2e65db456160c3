"""One child of the supervisor: starts it, restarts it when it dies, and stops it with all of its descendants."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from longstop import __version__
from longstop.clock import Clock
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.process import processes
from longstop.process.cgroup_limits_and_kill import ChildGroup
from longstop.settings import BEAT_FD_VARIABLE, PARENT_FD_VARIABLE
from longstop.supervision.exit_codes import Exit, describe_exit, exit_of_failed_start
from longstop.supervision.lifeline_and_heartbeat_pipes import HeartbeatPipe
from longstop.supervision.recovery_audit import RecoveryAudit
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ChildDied, ChildRestarted, ProcessStarted, ProcessStopped

#: The process that reports these events; a child reports its own start and end too.
REPORTED_BY = "up"
#: When memory runs out, the kernel kills a page (300) before its scraper, and a child before its supervisor.
CHILD_OOM_SCORE = 200
SUPERVISOR_OOM_SCORE = -500
#: How long to wait for a killed process: one that hangs in the kernel must not block the supervisor.
KILLED_WITHIN = 2.0
#: How often to check whether a child has ended. Everything that reports an end by itself needs a file descriptor or a
#: thread; a supervisor that is out of them would lose the child, which would live on beside its successor.
POLL_SECONDS = 0.05


class ChildSpec(Struct, frozen=True, kw_only=True):
    """A process to keep running."""

    name: str
    argv: tuple[str, ...]
    #: Its whole environment; the supervisor adds the pipes.
    env: Mapping[str, str]
    #: Whether it sends heartbeats. If so, it has not started well before the first one.
    is_beating: bool = False


class _Restart(Struct, frozen=True):
    """Why the next process is started, and what ran before."""

    kind: RecoveryKind
    reason: str
    pids: tuple[int, ...]


class ChildRunner:
    """Runs one process after the other for a child, until it is stopped."""

    def __init__(
        self,
        spec: ChildSpec,
        *,
        bus: Bus,
        clock: Clock,
        backoff: RestartBackoff,
        group: ChildGroup | None = None,
        audit: RecoveryAudit | None = None,
    ) -> None:
        self.name = spec.name
        self._spec = spec
        self._bus = bus
        self._clock = clock
        self._backoff = backoff
        self._group = group or ChildGroup()
        self._audit = audit
        self._child: subprocess.Popen[bytes] | None = None
        self._identity: processes.Identity | None = None
        self._heartbeat: HeartbeatPipe | None = None
        self._has_beaten = False
        self._requested: _Restart | None = None
        #: The restart whose outcome is not known yet.
        self._recovery: Recovery | None = None
        self._stopping = asyncio.Event()
        # Held while a child is killed: a second kill must not hit the next child in the same group.
        self._killing = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The pid of the running child; `None` while none runs."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def own_pids(self) -> frozenset[int]:
        """Return the running child and the members of its group."""
        return self._group.pids() | ({self.pid} if self.pid is not None else frozenset())

    def has_beaten(self) -> bool:
        """Return whether the running child has sent a heartbeat since the last call."""
        has_beaten = self._heartbeat is not None and self._heartbeat.has_beaten()
        self._has_beaten = self._has_beaten or has_beaten
        return has_beaten

    def tree(self, among: Collection[processes.Process] | None = None) -> list[processes.Process]:
        """Return the child and its descendants, without zombies."""
        candidates = processes.list_processes() if among is None else among
        members = self._group.pids()
        if self._identity is None:  # it could not be read at the start
            self._identity = next((each.identity for each in candidates if each.pid == self.pid), None)
        if self._identity is not None:
            members |= {each.pid for each in processes.process_tree(self._identity, candidates)}
        return [each for each in candidates if each.pid in members and each.state != processes.ZOMBIE]

    async def run(self, lifeline: int) -> None:
        """Run the child, and restart it whenever it ends, until stopped."""
        await self._group.empty()  # left by a supervisor that was killed
        failures = 0
        while not self._stopping.is_set():
            while (previous := self._child) is not None:  # left by an error here: two at a time must never run
                await self._kill_tree(previous)
            started = self._clock.monotonic()
            pid, exit_code = await self._run_once(lifeline)
            if self._stopping.is_set():
                return
            failures = self._backoff.count_failures(failures, self._clock.monotonic() - started)
            delay = self._backoff.delay_after(failures, exit_code)
            self._report_end(pid, exit_code, delay)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()

    async def restart(self, pid: int, kind: RecoveryKind, reason: str, *, within: float) -> None:
        """End the child with this pid, so that the next one starts: by SIGTERM, and by SIGKILL after `within` seconds.

        Do nothing if another child runs by now.
        """
        child = self._child
        if child is None or self.pid != pid or self.is_stopping:
            return
        self._requested = _Restart(kind, reason, tuple(each.pid for each in self._readable_tree()))
        if within > 0:
            child.terminate()
            await _ends_within(child, within)
        await self._kill_tree(child)

    async def stop(self, within: float, hurry: asyncio.Event) -> bool:
        """End the child for good; return whether it ended without being killed."""
        self._stopping.set()
        child = self._child
        ended = True
        if child is not None:
            child.terminate()
            ended = await _ends_within(child, within, hurry)
        self._close_heartbeat()
        await self._kill_tree(child)
        await self._group.empty()  # also when no child runs
        await self._group.discard()
        if child is not None:
            self._bus.emit(ProcessStopped(process=self.name, pid=child.pid, reported_by=REPORTED_BY))
        return ended

    async def _run_once(self, lifeline: int) -> tuple[int, int]:
        """Start the child, wait for its end, and return its pid and exit code."""
        if self.is_stopping:
            return 0, 0
        try:
            child = self._child = self._start(lifeline)
        except OSError as error:  # out of memory or processes, or no such program: retry
            return 0, exit_of_failed_start(error)
        self._prepare(child.pid)
        self._bus.emit(ProcessStarted(process=self.name, pid=child.pid, version=__version__, reported_by=REPORTED_BY))
        exit_code = await self._wait_for_end(child)
        if not self.is_stopping:
            # Descendants of a dead child must not work on beside the next one.
            await self._kill_tree(child)
        return child.pid, exit_code

    def _start(self, lifeline: int) -> subprocess.Popen[bytes]:
        """Start the child in its own session: Ctrl-C reaches only the supervisor."""
        self._close_heartbeat()
        heartbeat = self._heartbeat = HeartbeatPipe()
        pipes = {PARENT_FD_VARIABLE: str(lifeline), BEAT_FD_VARIABLE: str(heartbeat.write_end)}
        return subprocess.Popen(  # noqa: S603 - the command is written in this package
            self._spec.argv,
            env={**self._spec.env, **pipes},
            stdin=subprocess.DEVNULL,
            pass_fds=(lifeline, heartbeat.write_end),
            start_new_session=True,
        )

    def _close_heartbeat(self) -> None:
        """Close the pipe of the previous process: what still comes through it says nothing about the next one."""
        heartbeat, self._heartbeat = self._heartbeat, None
        self._has_beaten = False
        if heartbeat is not None:
            heartbeat.close()

    def _prepare(self, pid: int) -> None:
        """Set what the descendants inherit. This takes less time than the child needs to start one."""
        self._group.add(pid)
        _set_oom_score(pid, CHILD_OOM_SCORE)
        found = processes.find_process(pid)
        self._identity = found.identity if found is not None else None

    async def _wait_for_end(self, child: subprocess.Popen[bytes]) -> int:
        """Wait for the end of the child, and return its exit code. End the recovery that started it."""
        settled_at = self._clock.monotonic() + self._backoff.settled_after
        settled = f"process {child.pid} has run for {self._backoff.settled_after:g} s"
        if self._spec.is_beating:
            settled += " and sends heartbeats"
        while (exit_code := child.poll()) is None:
            if self._clock.monotonic() >= settled_at and (self._has_beaten or not self._spec.is_beating):
                self._end_recovery(RecoveryOutcome.RECOVERED, settled, (child.pid,))
            await asyncio.sleep(POLL_SECONDS)
        self._end_recovery(RecoveryOutcome.NOT_RECOVERED, f"it ended again: {describe_exit(exit_code)}", ())
        return exit_code

    def _report_end(self, pid: int, exit_code: int, delay: float) -> None:
        restart, self._requested = self._requested, None
        if restart is not None:
            self._bus.emit(ChildRestarted(process=self.name, pid=pid, exit_code=exit_code, reason=restart.reason))
        else:
            reason = describe_exit(exit_code)
            event = ChildDied(process=self.name, pid=pid, exit_code=exit_code, restart_in_seconds=delay, reason=reason)
            self._bus.emit(event)
            if exit_code == Exit.DONE:  # asked to stop by someone else: not a failure
                return
            restart = _Restart(RecoveryKind.RESTART, reason, (pid,) if pid else ())
        if self._audit is not None:
            self._recovery = self._audit.begin(
                restart.kind, trigger=restart.reason, subject=self.name, pids_before=restart.pids
            )

    def _end_recovery(self, outcome: RecoveryOutcome, observed: str, pids: Collection[int]) -> None:
        if self._audit is not None and self._recovery is not None and not self.is_stopping:
            self._audit.end(self._recovery, outcome, observed=observed, pids_after=pids)
            self._recovery = None

    async def _kill_tree(self, child: subprocess.Popen[bytes] | None) -> None:
        """Kill what is left of a child by group, process group and tree, unless the next child runs already."""
        async with self._killing:
            if child is None or child is not self._child:
                return
            tree = self._readable_tree()
            self._group.kill()
            if child.poll() is None:  # afterwards its id may be reused
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
            for each in tree:
                processes.kill(each.identity)
            await self._group.empty()
            # One that hangs in the kernel stays ours: `run` waits for it.
            if await _ends_within(child, KILLED_WITHIN):
                self._child = self._identity = None

    def _readable_tree(self) -> list[processes.Process]:
        """Return the tree, or nothing when out of file descriptors: a kill must work all the same."""
        with suppress(OSError):
            return self.tree()
        return []


def protect_from_oom_killer() -> None:
    """Let the kernel kill other processes before this one when memory runs out, if it is allowed to ask for it."""
    _set_oom_score(os.getpid(), SUPERVISOR_OOM_SCORE)


def _set_oom_score(pid: int, score: int) -> None:
    with suppress(OSError):  # only root may lower it
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(score), encoding="ascii")


async def _ends_within(child: subprocess.Popen[bytes], seconds: float, hurry: asyncio.Event | None = None) -> bool:
    """Wait for the end of a process, until `hurry` is set at most; return whether it has ended."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while child.poll() is None and not (hurry is not None and hurry.is_set()):  # noqa: ASYNC110 - nothing reports it
                await asyncio.sleep(POLL_SECONDS)
    return child.poll() is not None
