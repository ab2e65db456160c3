"""Real control groups: no member escapes a kill."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from longstop.clock import SystemClock
from longstop.process.cgroup_limits_and_kill import UNIFIED, ChildGroup, create_group, own_folder
from longstop.supervision.lifeline_and_heartbeat_pipes import lifeline
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervised_child import ChildRunner, ChildSpec
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ChildDied
from tests.chaos.live_deployment import is_alive, until
from tests.memory import MemorySink
from tests.prerequisites import unavailable

#: Joins a group, then starts a process in another session whose parent is gone at once, and says who it is.
FAMILY = """
import subprocess, sys, time
start = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)"
sys.stdin.readline()
subprocess.run([sys.executable, "-c", f"import subprocess, sys; print({start}.pid, flush=True)"])
time.sleep(300)
"""


@pytest.fixture
def group() -> Iterator[ChildGroup]:
    own = own_folder(UNIFIED)
    if own is None:
        unavailable("this machine has no groups")
    folder = own / f"longstop-test-{uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        unavailable(f"no group can be made: {error}")
    group = ChildGroup(folder)
    yield group
    asyncio.run(group.empty())
    asyncio.run(group.discard())
    assert not folder.exists()


@contextmanager
def family_in(group: ChildGroup) -> Iterator[list[psutil.Process]]:
    """Start a process and its runaway in a group."""
    child = subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    group.add(child.pid)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("go\n")
    child.stdin.close()
    runaway = int(child.stdout.readline())
    child.stdout.close()
    family = [psutil.Process(child.pid), psutil.Process(runaway)]
    try:
        yield family
    finally:
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        child.wait()


def gone(processes: list[psutil.Process]) -> bool:
    for _ in range(200):
        if not any(is_alive(each) for each in processes):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.req("FR-009")
def test_a_kill_reaches_all_members_also_in_another_session(group: ChildGroup) -> None:
    with family_in(group) as family:
        assert group.pids() >= {each.pid for each in family}

        asyncio.run(group.empty())

        assert gone(family)
        assert group.pids() == frozenset()


def test_a_kill_reaches_stopped_processes(group: ChildGroup) -> None:
    with family_in(group) as family:
        for each in family:
            each.send_signal(signal.SIGSTOP)

        asyncio.run(group.empty())

        assert gone(family)


def test_an_empty_group_is_removed(group: ChildGroup) -> None:
    asyncio.run(group.empty())

    asyncio.run(group.discard())

    assert group.pids() == frozenset()
    assert group.folder is not None
    assert not group.folder.exists()


def test_a_group_with_members_is_not_removed(group: ChildGroup) -> None:
    with family_in(group) as family:
        asyncio.run(group.discard())

        assert group.pids() >= {each.pid for each in family}


class FillingGroup(ChildGroup):
    """A group in which a new process starts after every kill."""

    def __init__(self) -> None:
        super().__init__()
        self.kills = 0

    def pids(self) -> frozenset[int]:
        return frozenset({1})

    def kill(self) -> None:
        self.kills += 1


async def test_a_group_that_fills_again_is_killed_again_without_blocking_the_loop() -> None:
    group, turns = FillingGroup(), 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    await group.empty()
    await group.discard()
    turning.cancel()

    assert group.kills > 1
    assert turns > group.kills


@pytest.mark.parametrize("lives", [0, 1], ids=["before its first life", "between two lives"])
async def test_a_stop_between_two_lives_removes_the_group(lives: int) -> None:
    name = f"longstop-test-{uuid4().hex[:8]}"
    group = create_group(name)
    if group.folder is None:
        unavailable("no group can be made")
    spec = ChildSpec(name="broken", argv=(sys.executable, "-c", "raise SystemExit(3)"), env={})
    backoff = RestartBackoff(first_delay=50.0)
    said = MemorySink()
    runner = ChildRunner(spec, bus=Bus([said]), clock=SystemClock(), backoff=backoff, group=group)
    with lifeline() as read_end:
        running_child = asyncio.create_task(runner.run(read_end))
        if lives:
            await until(lambda: sum(isinstance(event, ChildDied) for event in said.events) == 2, "it has died twice")

        went = await runner.stop(5.0, asyncio.Event())
        await asyncio.wait_for(running_child, 20)

    assert went
    assert not [folder for folder in _groups() if folder.name == name]


def _groups() -> list[Path]:
    own = own_folder(UNIFIED)
    return list(own.iterdir()) if own is not None else []


def test_a_machine_without_control_groups_gives_an_inactive_group(tmp_path: Path) -> None:
    assert create_group("longstop-test", tmp_path).folder is None


def test_a_read_only_hierarchy_gives_an_inactive_group(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)

    group = create_group("longstop-test", tmp_path)

    assert group.folder is None
    assert not (tmp_path / "sys/fs/cgroup/longstop-test").exists()
