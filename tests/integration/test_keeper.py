"""A keeper with real processes: whoever is ended, the next child is not, and none is left."""

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic

import pytest

from longstop.clock import SystemClock
from longstop.model.recovery import RecoveryKind
from longstop.process import processes
from longstop.process.cgroups import ChildGroup
from longstop.supervision.backoff import RestartPolicy
from longstop.supervision.child import Child
from longstop.supervision.exits import Exit
from longstop.supervision.keeper import Keeper
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
async def kept(group: ChildGroup | None = None) -> AsyncIterator[tuple[Keeper, Recorder]]:
    said, (read_end, write_end) = Recorder(), os.pipe()
    policy = RestartPolicy(settled_after=0.01)
    keeper = Keeper(python("scraper", PATIENT), bus=Bus([said]), clock=SystemClock(), policy=policy, group=group)
    keeping = asyncio.create_task(keeper.keep(read_end))
    try:
        await until(lambda: keeper.pid)
        yield keeper, said
    finally:
        await keeper.stop(0.0, asyncio.Event())
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        os.close(read_end)
        os.close(write_end)


async def test_a_renewal_ends_one_life_and_never_the_next() -> None:
    async with kept(SlowGroup()) as (keeper, said):
        for lives in range(1, 6):
            pid = keeper.pid
            assert pid is not None
            await keeper.renew(pid, SOFT, "it took too much", within=0)
            await until(lambda lives=lives: len(said.started("scraper")) > lives and keeper.pid)  # type: ignore[misc]

        assert len(said.started("scraper")) == 6
        assert said.died("scraper") == []


async def test_a_renewal_that_comes_too_late_leaves_the_next_child_alone() -> None:
    async with kept() as (keeper, said):
        first = keeper.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: keeper.pid not in (None, first))
        second = keeper.pid

        await keeper.renew(first, SOFT, "it took too much", within=0)

        assert (keeper.pid, len(said.started("scraper"))) == (second, 2)


async def test_a_child_that_could_not_be_seen_at_its_birth_is_seen_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as blind:
        blind.setattr(processes, "find_process", lambda _pid: None)
        async with kept() as (keeper, _):
            blind.undo()

            tree = keeper.tree()

            assert [each.pid for each in tree] == [keeper.pid]


async def test_a_child_that_died_by_itself_is_not_called_renewed() -> None:
    async with kept() as (keeper, said):
        first = keeper.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        # Dead, and its keeper does not know it yet: the loop has not turned since.
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222

        await keeper.renew(first, SOFT, "it took too much", within=0)
        await until(lambda: keeper.pid not in (None, first))

        assert [death.exit_code for death in said.died("scraper")] == [-signal.SIGKILL]


@pytest.mark.req("FR-005")
async def test_a_renewed_child_that_hangs_in_the_kernel_stays_ours_until_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Child] = []
    async with kept() as (keeper, said):
        pid = keeper.pid
        assert pid is not None
        with monkeypatch.context() as hung:
            hung.setattr(Child, "ask_to_stop", lambda child: asked.append(child))
            hung.setattr(Child, "kill_group", lambda _: None)
            hung.setattr(processes, "kill", lambda _: False)
            await keeper.renew(pid, RecoveryKind.HARD_RESTART, "it stands still", within=0)

            assert keeper.pid == pid
            assert pid in keeper.own_pids()
            assert not await keeper.stop(0.0, asyncio.Event())

        os.kill(pid, signal.SIGKILL)
        await until(lambda: asked[0].exit_code is not None)
        assert len(said.started("scraper")) == 1


@asynccontextmanager
async def supervised(stop_within: float) -> AsyncIterator[tuple[Supervisor, "asyncio.Task[Exit]", list[int]]]:
    children = (python("scraper", PATIENT), python("api", PATIENT))
    supervisor = Supervisor(children, bus=Bus(), clock=SystemClock(), stop_within=stop_within)
    running = asyncio.create_task(supervisor.run())
    await until(lambda: all(keeper.pid for keeper in supervisor.keepers))
    pids = [keeper.pid for keeper in supervisor.keepers if keeper.pid]
    try:
        yield supervisor, running, pids
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await until(lambda: not any(keeper.pid for keeper in supervisor.keepers))


@pytest.mark.req("FR-005")
async def test_children_that_hang_in_the_kernel_do_not_hang_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Child] = []
    async with supervised(stop_within=1.0) as (supervisor, running, pids):
        monkeypatch.setattr(Child, "ask_to_stop", lambda child: asked.append(child))
        monkeypatch.setattr(Child, "kill_group", lambda _: None)
        monkeypatch.setattr(processes, "kill", lambda _: False)
        began = monotonic()

        supervisor.stop()
        ended = await asyncio.wait_for(running, 30)

        assert ended is Exit.FORCED
        assert len(asked) == 2
        assert monotonic() - began < 20
        assert all(is_alive(pid) for pid in pids)


@pytest.mark.req("FR-005")
async def test_children_are_stopped_also_when_nobody_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[processes.Process]:
        raise OSError(errno.EMFILE, "Too many open files")

    async with supervised(stop_within=10.0) as (supervisor, running, pids):
        monkeypatch.setattr(processes, "list_processes", fail)

        supervisor.stop()
        ended = await asyncio.wait_for(running, 30)

        assert ended is Exit.DONE
        assert not [pid for pid in pids if is_alive(pid)]


@pytest.mark.req("FR-005")
async def test_a_keeper_that_fails_to_stop_its_child_does_not_spare_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_within: float, _hurry: asyncio.Event) -> bool:
        raise RuntimeError("broken")

    async with supervised(stop_within=10.0) as (supervisor, running, pids):
        monkeypatch.setattr(supervisor.keepers[0], "stop", fail)

        supervisor.stop()
        ended = await asyncio.wait_for(running, 30)

        assert ended is Exit.FORCED
        assert [is_alive(pid) for pid in pids] == [True, False]
