"""One child with real processes: whatever is killed, the next child is not, and no process is left."""

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic

import pytest

from longstop.clock import SystemClock
from longstop.model.recovery import RecoveryKind
from longstop.process import processes
from longstop.process.cgroup_limits_and_kill import ChildGroup
from longstop.supervision.exit_codes import Exit
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervised_child import ChildRunner
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from tests.integration.test_supervisor import PATIENT, Recorder, is_alive, python, until

SOFT = RecoveryKind.SOFT_RESTART


class SlowGroup(ChildGroup):
    """A group that still lists a killed process once, as the kernel may."""

    def __init__(self) -> None:
        super().__init__()
        self._pids: set[int] = set()
        self._has_killed = self._lingers = False

    def add(self, pid: int) -> None:
        self._pids = {pid}
        self._has_killed = False

    def pids(self) -> frozenset[int]:
        lingers, self._lingers = self._lingers, False
        return frozenset(self._pids) if lingers or not self._has_killed else frozenset()

    def kill(self) -> None:
        self._lingers = self._lingers or not self._has_killed
        self._has_killed = True
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        return True


@asynccontextmanager
async def kept(group: ChildGroup | None = None) -> AsyncIterator[tuple[ChildRunner, Recorder]]:
    said, (read_end, write_end) = Recorder(), os.pipe()
    backoff = RestartBackoff(settled_after=0.01)
    runner = ChildRunner(python("scraper", PATIENT), bus=Bus([said]), clock=SystemClock(), backoff=backoff, group=group)
    running_child = asyncio.create_task(runner.run(read_end))
    try:
        await until(lambda: runner.pid)
        yield runner, said
    finally:
        await runner.stop(0.0, asyncio.Event())
        running_child.cancel()
        await asyncio.gather(running_child, return_exceptions=True)
        os.close(read_end)
        os.close(write_end)


async def test_a_restart_ends_one_process_and_never_the_next() -> None:
    async with kept(SlowGroup()) as (runner, said):
        for lives in range(1, 6):
            pid = runner.pid
            assert pid is not None
            await runner.restart(pid, SOFT, "it took too much", within=0)
            await until(lambda lives=lives: len(said.started("scraper")) > lives and runner.pid)  # type: ignore[misc]

        assert len(said.started("scraper")) == 6
        assert said.died("scraper") == []


async def test_a_restart_that_comes_too_late_does_not_touch_the_next_child() -> None:
    async with kept() as (runner, said):
        first = runner.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: runner.pid not in (None, first))
        second = runner.pid

        await runner.restart(first, SOFT, "it took too much", within=0)

        assert (runner.pid, len(said.started("scraper"))) == (second, 2)


async def test_a_child_that_could_not_be_read_at_its_start_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as blind:
        blind.setattr(processes, "find_process", lambda _pid: None)
        async with kept() as (runner, _):
            blind.undo()

            tree = runner.tree()

            assert [each.pid for each in tree] == [runner.pid]


async def test_a_child_that_died_by_itself_is_not_reported_as_restarted() -> None:
    async with kept() as (runner, said):
        first = runner.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        # Dead, and its runner does not know it yet: the loop has not turned since.
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222

        await runner.restart(first, SOFT, "it took too much", within=0)
        await until(lambda: runner.pid not in (None, first))

        assert [death.exit_code for death in said.died("scraper")] == [-signal.SIGKILL]


@pytest.mark.req("FR-005")
async def test_a_restarted_child_that_hangs_in_the_kernel_stays_ours_until_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[subprocess.Popen[bytes]] = []
    async with kept() as (runner, said):
        pid = runner.pid
        assert pid is not None
        with monkeypatch.context() as hung:
            hung.setattr(subprocess.Popen, "terminate", lambda child: asked.append(child))
            hung.setattr(os, "killpg", lambda *_: None)
            hung.setattr(processes, "kill", lambda _: False)
            await runner.restart(pid, RecoveryKind.HARD_RESTART, "unresponsive", within=0)

            assert runner.pid == pid
            assert pid in runner.own_pids()
            assert not await runner.stop(0.0, asyncio.Event())

        os.kill(pid, signal.SIGKILL)
        await until(lambda: asked[0].poll() is not None)
        assert len(said.started("scraper")) == 1


@asynccontextmanager
async def supervised(stop_within: float) -> AsyncIterator[tuple[Supervisor, "asyncio.Task[Exit]", list[int]]]:
    children = (python("scraper", PATIENT), python("api", PATIENT))
    supervisor = Supervisor(children, bus=Bus(), clock=SystemClock(), stop_within=stop_within)
    running = asyncio.create_task(supervisor.run())
    await until(lambda: all(runner.pid for runner in supervisor.runners))
    pids = [runner.pid for runner in supervisor.runners if runner.pid]
    try:
        yield supervisor, running, pids
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await until(lambda: not any(runner.pid for runner in supervisor.runners))


@pytest.mark.req("FR-005")
async def test_children_that_hang_in_the_kernel_do_not_hang_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[subprocess.Popen[bytes]] = []
    async with supervised(stop_within=1.0) as (supervisor, running, pids):
        monkeypatch.setattr(subprocess.Popen, "terminate", lambda child: asked.append(child))
        monkeypatch.setattr(os, "killpg", lambda *_: None)
        monkeypatch.setattr(processes, "kill", lambda _: False)
        began = monotonic()

        supervisor.stop()
        ended = await asyncio.wait_for(running, 30)

        assert ended is Exit.FORCED
        assert len(asked) == 2
        assert monotonic() - began < 20
        assert all(is_alive(pid) for pid in pids)


@pytest.mark.req("FR-005")
async def test_children_are_stopped_also_when_processes_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[processes.Process]:
        raise OSError(errno.EMFILE, "Too many open files")

    async with supervised(stop_within=10.0) as (supervisor, running, pids):
        monkeypatch.setattr(processes, "list_processes", fail)

        supervisor.stop()
        ended = await asyncio.wait_for(running, 30)

        assert ended is Exit.DONE
        assert not [pid for pid in pids if is_alive(pid)]


@pytest.mark.req("FR-005")
async def test_a_runner_that_fails_to_stop_its_child_does_not_spare_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_within: float, _hurry: asyncio.Event) -> bool:
        raise RuntimeError("broken")

    async with supervised(stop_within=10.0) as (supervisor, running, pids):
        monkeypatch.setattr(supervisor.runners[0], "stop", fail)

        supervisor.stop()
        ended = await asyncio.wait_for(running, 30)

        assert ended is Exit.FORCED
        assert [is_alive(pid) for pid in pids] == [True, False]


async def test_the_number_of_one_that_has_ended_is_never_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _number: killed.append(pid))
    async with kept() as (runner, _):
        first = runner.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: runner.pid not in (None, first))

        assert killed == []
