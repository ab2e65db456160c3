"""One child of the supervisor: starts it, restarts it when it dies, and stops it with all of its descendants."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from longstop import __version__
from longstop.clock import Clock
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.process import processes
from longstop.process.cgroups import ChildGroup
from longstop.settings import BEAT_FD_VARIABLE, PARENT_FD_VARIABLE
from longstop.supervision.child_pipes import HeartbeatPipe
from longstop.supervision.exit_codes import Exit, describe_exit, exit_of_failed_start
from longstop.supervision.recovery_audit import RecoveryAudit, Ticket
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
#: How often to poll a child whose end the kernel cannot report, for want of a file descriptor.
POLL_SECONDS = 0.1


class ChildProcess:
    """One process of a child. Several tasks may wait for its end.

    `asyncio.create_subprocess_exec` is not used: it starts to watch a child after its start, and loses the child if it
    is out of threads or descriptors. The child would live on beside its successor.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self._process = process
        self._ended = asyncio.Event()
        self._handle: int | None = None
        self._polling: asyncio.Task[None] | None = None
        try:
            self._handle = os.pidfd_open(process.pid)
            asyncio.get_running_loop().add_reader(self._handle, self._on_exit)
        except OSError:  # out of descriptors or memory, or an old kernel
            self.release()
            self._polling = asyncio.create_task(self._poll(), name=f"poll {process.pid}")

    @classmethod
    def start(cls, argv: Sequence[str], env: Mapping[str, str], pass_fds: Collection[int] = ()) -> "ChildProcess":
        """Start a program in its own session: Ctrl-C reaches only the supervisor."""
        return cls(
            subprocess.Popen(  # noqa: S603 - the command is written in this package
                argv, env=env, stdin=subprocess.DEVNULL, pass_fds=tuple(pass_fds), start_new_session=True
            )
        )

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs; negative for a signal."""
        return self._process.poll()

    async def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        await self._ended.wait()
        exit_code = self.exit_code
        assert exit_code is not None  # noqa: S101 - it has ended
        return exit_code

    def terminate(self) -> None:
        self._process.terminate()

    def kill_group(self) -> None:
        """Kill its process group, but only while it runs: afterwards the id may be reused."""
        if self.exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def release(self) -> None:
        """Stop watching for its end. A pending `wait` never returns."""
        if self._polling is not None:
            self._polling.cancel()
        handle, self._handle = self._handle, None
        if handle is not None:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)

    async def _poll(self) -> None:
        while self.exit_code is None:  # noqa: ASYNC110 - nothing reports the end
            await asyncio.sleep(POLL_SECONDS)
        self._ended.set()

    def _on_exit(self) -> None:
        if self.exit_code is not None:
            self.release()
            self._ended.set()


class ChildSpec(Struct, frozen=True, kw_only=True):
    """A process to keep running."""

    name: str
    argv: tuple[str, ...]
    #: Its whole environment; the supervisor adds the pipes.
    env: Mapping[str, str]
    #: Whether it sends heartbeats. If so, it has not started well before the first one.
    is_beating: bool = False


class _RequestedRestart(Struct, frozen=True, kw_only=True):
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
        self._child: ChildProcess | None = None
        self._identity: processes.Identity | None = None
        self._heartbeat: HeartbeatPipe | None = None
        self._has_beaten = asyncio.Event()
        self._requested: _RequestedRestart | None = None
        #: The restart whose outcome is not known yet.
        self._ticket: Ticket | None = None
        self._stopping = asyncio.Event()
        # Held while a child is killed: a second kill must not hit the next child in the same group.
        self._killing = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The pid of the running child; `None` while none runs."""
        return self._child.pid if self._child is not None and self._child.exit_code is None else None

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def own_pids(self) -> frozenset[int]:
        """Return the running child and the members of its group."""
        return self._group.pids() | ({self.pid} if self.pid is not None else frozenset())

    def has_beaten(self) -> bool:
        """Return whether the running child has sent a heartbeat since the last call."""
        has_beaten = self._heartbeat is not None and self._heartbeat.has_beaten()
        if has_beaten:
            self._has_beaten.set()
        return has_beaten

    def tree(self, among: Collection[processes.Process] | None = None) -> list[processes.Process]:
        """Return the child and its descendants, without zombies."""
        candidates = processes.list_processes() if among is None else among
        members, head = self._group.pids(), self._head()
        tree = {each.pid for each in processes.process_tree(head, candidates)} if head else set()
        return [each for each in candidates if each.pid in members | tree and each.state != processes.ZOMBIE]

    def _head(self) -> processes.Identity | None:
        """Return the identity of the child; if it could not be read at the start, read it now."""
        if self._identity is None and self.pid is not None and (found := processes.find_process(self.pid)) is not None:
            self._identity = found.identity
        return self._identity

    async def run(self, lifeline: int) -> None:
        """Run the child, and restart it whenever it ends, until stopped."""
        await self._group.empty()  # left by a supervisor that was killed
        failures = 0
        while not self._stopping.is_set():
            await self._kill_previous()
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

    async def _kill_previous(self) -> None:
        """Kill a child that still runs after an error in `run`: two at a time must never run."""
        while (previous := self._child) is not None:
            await self._kill_tree(previous)
            await previous.wait()

    async def restart(self, pid: int, kind: RecoveryKind, reason: str, *, within: float) -> None:
        """End the child with this pid, so that the next one starts: by SIGTERM, and by SIGKILL after `within` seconds.

        Do nothing if another child runs by now.
        """
        child = self._child
        if child is None or child.pid != pid or child.exit_code is not None or self.is_stopping:
            return
        pids = tuple(each.pid for each in self._readable_tree())
        self._requested = _RequestedRestart(kind=kind, reason=reason, pids=pids)
        if within > 0:
            await _terminate(child, within)
        await self._kill_tree(child)

    async def stop(self, within: float, hurry: asyncio.Event) -> bool:
        """End the child for good; return whether it ended without being killed."""
        self._stopping.set()
        child = self._child
        ended = child is None or await _terminate(child, within, hurry)
        self._close_heartbeat()
        await self._kill_tree(child)
        await self._group.empty()  # also when no child runs
        await self._group.discard()
        if child is not None:
            child.release()
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

    def _start(self, lifeline: int) -> ChildProcess:
        self._close_heartbeat()
        heartbeat = self._heartbeat = HeartbeatPipe()
        pipes = {PARENT_FD_VARIABLE: str(lifeline), BEAT_FD_VARIABLE: str(heartbeat.write_end)}
        env = {**self._spec.env, **pipes}
        return ChildProcess.start(self._spec.argv, env, pass_fds=(lifeline, heartbeat.write_end))

    def _close_heartbeat(self) -> None:
        """Close the pipe of the previous process: what still comes through it says nothing about the next one."""
        heartbeat, self._heartbeat = self._heartbeat, None
        self._has_beaten.clear()
        if heartbeat is not None:
            heartbeat.close()

    def _prepare(self, pid: int) -> None:
        """Set what the descendants inherit. This takes less time than the child needs to start one."""
        self._group.add(pid)
        _set_oom_score(pid, CHILD_OOM_SCORE)
        self._identity = None
        self._head()

    async def _wait_for_end(self, child: ChildProcess) -> int:
        """Wait for the end of the child, and close the ticket of the restart that started it."""
        settling = asyncio.create_task(self._settle(child.pid), name=f"settle {self.name}")
        try:
            exit_code = await child.wait()
        finally:
            settling.cancel()
        self._close_ticket(RecoveryOutcome.NOT_RECOVERED, f"it ended again: {describe_exit(exit_code)}", ())
        return exit_code

    async def _settle(self, pid: int) -> None:
        """Close the ticket once the child has run for a while, and has sent a heartbeat if it sends any."""
        await asyncio.sleep(self._backoff.settled_after)
        observed = f"process {pid} has run for {self._backoff.settled_after:g} s"
        if self._spec.is_beating:
            await self._has_beaten.wait()
            observed += " and sends heartbeats"
        self._close_ticket(RecoveryOutcome.RECOVERED, observed, (pid,))

    def _report_end(self, pid: int, exit_code: int, delay: float) -> None:
        requested, self._requested = self._requested, None
        if requested is not None:
            self._bus.emit(ChildRestarted(process=self.name, pid=pid, exit_code=exit_code, reason=requested.reason))
            self._open_ticket(requested.kind, requested.reason, requested.pids)
            return
        reason = describe_exit(exit_code)
        self._bus.emit(
            ChildDied(process=self.name, pid=pid, exit_code=exit_code, restart_in_seconds=delay, reason=reason)
        )
        if exit_code != Exit.DONE:  # asked to stop by someone else: not a failure
            self._open_ticket(RecoveryKind.RESTART, reason, (pid,) if pid else ())

    def _open_ticket(self, kind: RecoveryKind, trigger: str, pids: Collection[int]) -> None:
        if self._audit is not None:
            self._ticket = self._audit.begin(kind, trigger=trigger, subject=self.name, pids_before=pids)

    def _close_ticket(self, outcome: RecoveryOutcome, observed: str, pids: Collection[int]) -> None:
        if self._audit is not None and self._ticket is not None and not self.is_stopping:
            self._audit.end(self._ticket, outcome, observed=observed, pids_after=pids)
            self._ticket = None

    async def _kill_tree(self, child: ChildProcess | None) -> None:
        """Kill what is left of a child by group, process group and tree, unless the next child runs already."""
        async with self._killing:
            if child is None or child is not self._child:
                return
            tree = self._readable_tree()
            self._group.kill()
            child.kill_group()
            for each in tree:
                processes.kill(each.identity)
            await self._group.empty()
            with suppress(TimeoutError):
                async with asyncio.timeout(KILLED_WITHIN):
                    await child.wait()
                # One that hangs in the kernel stays ours: `run` waits for it.
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


async def _terminate(child: ChildProcess, within: float, hurry: asyncio.Event | None = None) -> bool:
    """Send SIGTERM and wait, until `hurry` is set at most; return whether the process has ended."""
    child.terminate()
    waits: set[asyncio.Task[object]] = {asyncio.create_task(child.wait())}
    if hurry is not None:
        waits.add(asyncio.create_task(hurry.wait()))
    try:
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
    return child.exit_code is not None
