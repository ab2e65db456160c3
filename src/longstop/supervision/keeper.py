"""A keeper: one child's life after life, and the end of it with all that it has started."""

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from longstop import __version__
from longstop.clock import Clock
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.process import processes
from longstop.process.cgroups import ChildGroup
from longstop.settings import BEAT_FD_VARIABLE, PARENT_FD_VARIABLE
from longstop.supervision.audit import Ticket
from longstop.supervision.backoff import RestartPolicy
from longstop.supervision.beats import BeatLine
from longstop.supervision.child import Child
from longstop.supervision.exits import Exit, describe, of_failed_start
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ChildDied, ChildRestarted, ProcessStarted, ProcessStopped

#: Who speaks here; a child tells of its beginning and its end too.
TELLER = "up"
#: When memory runs out, the kernel takes a child before its supervisor, and a page (300) before the child it is for.
CHILD_OOM_SCORE = 200
SUPERVISOR_OOM_SCORE = -500
#: How long a killed process is waited for: one that hangs in the kernel must not hang us.
KILLED_WITHIN = 2.0


class ChildSpec(Struct, frozen=True, kw_only=True):
    """A process to keep alive."""

    name: str
    argv: tuple[str, ...]
    #: Its whole environment; the supervisor adds the pipes between them.
    env: Mapping[str, str]
    #: Whether it gives signs of life; one that does has not come up before the first of them.
    is_beating: bool = False


class Audit(Protocol):
    """Where it is written down what was done without a person."""

    def begin(self, kind: RecoveryKind, *, trigger: str, subject: str, pids_before: Collection[int] = ()) -> Ticket: ...

    def end(
        self, ticket: Ticket, outcome: RecoveryOutcome, *, observed: str, pids_after: Collection[int] | None = None
    ) -> Recovery: ...


class _Renewal(Struct, frozen=True, kw_only=True):
    kind: RecoveryKind
    reason: str
    pids: tuple[int, ...]


class Keeper:
    """Starts one child, starts it again when it dies, and ends it when asked."""

    def __init__(
        self,
        spec: ChildSpec,
        *,
        bus: Bus,
        clock: Clock,
        policy: RestartPolicy,
        group: ChildGroup | None = None,
        audit: Audit | None = None,
    ) -> None:
        self.name = spec.name
        self._spec = spec
        self._bus = bus
        self._clock = clock
        self._policy = policy
        self._group = group or ChildGroup()
        self._audit = audit
        self._child: Child | None = None
        self._identity: processes.Identity | None = None
        self._beats: BeatLine | None = None
        self._has_beaten = asyncio.Event()
        self._renewal: _Renewal | None = None
        #: What was done and is not seen to have helped yet.
        self._ticket: Ticket | None = None
        self._stopping = asyncio.Event()
        # Held while a child is ended: who comes second must not meet the next child in its group.
        self._ending = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The living child's; `None` between two lives."""
        return self._child.pid if self._child is not None and self._child.exit_code is None else None

    def own_pids(self) -> frozenset[int]:
        """Return the living child and whoever is in its group."""
        return self._group.pids() | ({self.pid} if self.pid is not None else frozenset())

    def hear(self) -> bool:
        """Return whether the living child has beaten since this was last asked."""
        has_beaten = self._beats is not None and self._beats.has_beaten()
        if has_beaten:
            self._has_beaten.set()
        return has_beaten

    @property
    def is_over(self) -> bool:
        return self._stopping.is_set()

    def tree(self, among: Collection[processes.Process] | None = None) -> list[processes.Process]:
        """Return the child and all that it has started, as far as they live."""
        people = processes.list_processes() if among is None else among
        penned, head = self._group.pids(), self._head()
        family = {each.pid for each in processes.process_tree(head, people)} if head else set()
        return [each for each in people if each.pid in penned | family and each.state != "Z"]

    def _head(self) -> processes.Identity | None:
        """Return who the child is; one of whom that could not be seen at its birth is looked at again."""
        if self._identity is None and self.pid is not None and (found := processes.find_process(self.pid)) is not None:
            self._identity = found.identity
        return self._identity

    async def keep(self, life_line: int) -> None:
        """Live one life after the other until it is over."""
        await self._group.empty()  # whoever a supervisor that was killed has left there
        deaths = 0
        while not self._stopping.is_set():
            await self._end_left()
            began = self._clock.monotonic()
            pid, exit_code = await self._live_once(life_line)
            if self._stopping.is_set():
                return
            deaths = self._policy.deaths_in_a_row(deaths, self._clock.monotonic() - began)
            wait = self._policy.wait_after(deaths, exit_code)
            self._tell_end(pid, exit_code, wait)
            await self._pause(wait)

    async def _end_left(self) -> None:
        """End the child that may still live after a failure of ours: two at a time would be one too many."""
        while (left := self._child) is not None:
            await self._end_tree(left)
            await left.wait()

    async def renew(self, pid: int, kind: RecoveryKind, reason: str, *, within: float) -> None:
        """End the child of this pid, gently while there is time, so that the next one begins; not that next one."""
        child = self._child
        if child is None or child.pid != pid or child.exit_code is not None or self.is_over:
            return
        self._renewal = _Renewal(kind=kind, reason=reason, pids=tuple(each.pid for each in self._visible_tree()))
        if within > 0:
            await _ask_to_stop(child, within)
        await self._end_tree(child)

    async def stop(self, within: float, hurry: asyncio.Event) -> bool:
        """End the child for good; return whether it went by itself."""
        self._stopping.set()
        child = self._child
        went = child is None or await _ask_to_stop(child, within, hurry)
        self._stop_hearing()
        await self._end_tree(child)
        await self._group.empty()  # also between two lives
        await self._group.discard()
        if child is not None:
            child.let_go()
            self._bus.emit(ProcessStopped(process=self.name, pid=child.pid, reported_by=TELLER))
        return went

    async def _live_once(self, life_line: int) -> tuple[int, int]:
        """Start the child, wait for its end, and return its pid and exit code."""
        if self.is_over:
            return 0, 0
        try:
            child = self._child = self._start(life_line)
        except OSError as error:  # no memory, no process slot, no such program: the next try may do better
            return 0, of_failed_start(error)
        self._hold(child.pid)
        self._bus.emit(ProcessStarted(process=self.name, pid=child.pid, version=__version__, reported_by=TELLER))
        exit_code = await self._see_it_settle(child)
        if not self.is_over:
            # What the dead child started must not work on beside the next one.
            await self._end_tree(child)
        return child.pid, exit_code

    def _start(self, life_line: int) -> Child:
        self._stop_hearing()
        beats = self._beats = BeatLine()
        pipes = {PARENT_FD_VARIABLE: str(life_line), BEAT_FD_VARIABLE: str(beats.write_end)}
        return Child.start(self._spec.argv, {**self._spec.env, **pipes}, pass_fds=(life_line, beats.write_end))

    def _stop_hearing(self) -> None:
        """Close the line of the last life: what may still come through it is of the dead."""
        beats, self._beats = self._beats, None
        self._has_beaten.clear()
        if beats is not None:
            beats.close()

    def _hold(self, pid: int) -> None:
        """Do what holds for all that the child will start; it needs longer to start anything than this takes."""
        self._group.add(pid)
        _score(pid, CHILD_OOM_SCORE)
        self._identity = None
        self._head()

    async def _see_it_settle(self, child: Child) -> int:
        """Wait for the child's end; on the way, note whether what was done before has helped."""
        settling = asyncio.create_task(self._settle(child.pid), name=f"settle {self.name}")
        try:
            exit_code = await child.wait()
        finally:
            settling.cancel()
        self._close(RecoveryOutcome.NOT_RECOVERED, f"it ended again: {describe(exit_code)}", ())
        return exit_code

    async def _settle(self, pid: int) -> None:
        """Note that the child has come up: it has lived for a while, and has given a sign of life if it gives any."""
        await asyncio.sleep(self._policy.settled_after)
        seen = f"process {pid} has run for {self._policy.settled_after:g} s"
        if self._spec.is_beating:
            await self._has_beaten.wait()
            seen += " and gives signs of life"
        self._close(RecoveryOutcome.RECOVERED, seen, (pid,))

    def _tell_end(self, pid: int, exit_code: int, wait: float) -> None:
        renewal, self._renewal = self._renewal, None
        if renewal is not None:
            told = ChildRestarted(process=self.name, pid=pid, exit_code=exit_code, reason=renewal.reason)
            self._bus.emit(told)
            self._open(renewal.kind, renewal.reason, renewal.pids)
            return
        reason = describe(exit_code)
        self._bus.emit(
            ChildDied(process=self.name, pid=pid, exit_code=exit_code, restart_in_seconds=wait, reason=reason)
        )
        if exit_code != Exit.DONE:  # who was asked to stop, if not by us, has died of nothing
            self._open(RecoveryKind.RESTART, reason, (pid,) if pid else ())

    def _open(self, kind: RecoveryKind, trigger: str, pids: Collection[int]) -> None:
        if self._audit is not None:
            self._ticket = self._audit.begin(kind, trigger=trigger, subject=self.name, pids_before=pids)

    def _close(self, outcome: RecoveryOutcome, observed: str, pids: Collection[int]) -> None:
        if self._audit is not None and self._ticket is not None and not self.is_over:
            self._audit.end(self._ticket, outcome, observed=observed, pids_after=pids)
            self._ticket = None

    async def _end_tree(self, child: Child | None) -> None:
        """End whatever of a child is left, by every means there is, unless the next one lives already."""
        async with self._ending:
            if child is None or child is not self._child:
                return
            people = self._visible_tree()
            self._group.kill()
            child.kill_group()
            for each in people:
                processes.kill(each.identity)
            await self._group.empty()
            with suppress(TimeoutError):
                async with asyncio.timeout(KILLED_WITHIN):
                    await child.wait()
                # One that hangs in the kernel stays ours, and is waited for by whoever keeps it.
                self._child = self._identity = None

    def _visible_tree(self) -> list[processes.Process]:
        """Return the tree as far as it can be seen: whoever is to be ended is, also when no file can be opened."""
        with suppress(OSError):
            return self.tree()
        return []

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


def outlive_children() -> None:
    """Let the kernel take others before this process when memory runs out, as far as we may ask for it."""
    _score(os.getpid(), SUPERVISOR_OOM_SCORE)


def _score(pid: int, score: int) -> None:
    with suppress(OSError):  # only root may lower it
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(score), encoding="ascii")


async def _ask_to_stop(child: Child, within: float, hurry: asyncio.Event | None = None) -> bool:
    """Ask a process to stop, and wait; return whether it has."""
    child.ask_to_stop()
    waits = {asyncio.ensure_future(child.wait())}
    if hurry is not None:
        waits.add(asyncio.ensure_future(_until_set(hurry)))
    try:
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
    return child.exit_code is not None


async def _until_set(event: asyncio.Event) -> int:
    await event.wait()
    return 0
