"""Pens of real control groups: nothing runs away, frozen or not."""

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
from longstop.supervision.backoff import RestartPolicy
from longstop.supervision.cgroups import UNIFIED, own_folder
from longstop.supervision.keeper import ChildSpec, Keeper
from longstop.supervision.parent import life_line_of_children
from longstop.supervision.pens import FreezerPen, OpenPen, UnifiedPen, empty, make_pen, take_away
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ChildDied
from tests.chaos.running import is_alive, until
from tests.memory import MemorySink
from tests.needs import lack

#: Joins a pen, then starts a process in another session whose parent is gone at once, and says who it is.
FAMILY = """
import subprocess, sys, time
start = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)"
sys.stdin.readline()
subprocess.run([sys.executable, "-c", f"import subprocess, sys; print({start}.pid, flush=True)"])
time.sleep(300)
"""
KINDS: dict[str, tuple[str, type[UnifiedPen]]] = {"v2": (UNIFIED, UnifiedPen), "v1": ("freezer", FreezerPen)}


@pytest.fixture(params=KINDS)
def pen(request: pytest.FixtureRequest) -> Iterator[UnifiedPen]:
    controller, kind = KINDS[request.param]
    own = own_folder(controller)
    if own is None:
        if any(own_folder(other) for other, _ in KINDS.values()):
            pytest.skip(f"this machine has groups, but not of {request.param}")  # few have both
        lack("this machine has no groups")
    folder = own / f"longstop-test-{uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        lack(f"no group can be made: {error}")
    pen = kind(folder)
    yield pen
    asyncio.run(empty(pen))
    asyncio.run(take_away(pen))
    assert not folder.exists()


@contextmanager
def family_in(pen: UnifiedPen) -> Iterator[list[psutil.Process]]:
    """Start a process and its runaway in a pen."""
    child = subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pen.take(child.pid)
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
def test_a_pen_ends_all_who_are_in_it_also_those_that_ran_away(pen: UnifiedPen) -> None:
    with family_in(pen) as family:
        assert pen.pids() >= {each.pid for each in family}

        asyncio.run(empty(pen))

        assert gone(family)
        assert pen.pids() == frozenset()


def test_a_pen_ends_those_that_are_stopped(pen: UnifiedPen) -> None:
    with family_in(pen) as family:
        for each in family:
            each.send_signal(signal.SIGSTOP)

        asyncio.run(empty(pen))

        assert gone(family)


def test_an_empty_pen_is_killed_in_no_time_and_taken_away(pen: UnifiedPen) -> None:
    asyncio.run(empty(pen))

    assert pen.close()
    assert pen.pids() == frozenset()


def test_a_pen_that_somebody_is_in_stays(pen: UnifiedPen) -> None:
    with family_in(pen) as family:
        assert not pen.close()
        assert pen.pids() >= {each.pid for each in family}


class FillingPen(OpenPen):
    """A pen in which somebody is born again and again."""

    def __init__(self) -> None:
        self.kills = 0

    def pids(self) -> frozenset[int]:
        return frozenset({1})

    def kill(self) -> None:
        self.kills += 1

    def close(self) -> bool:
        return False


async def test_a_pen_that_fills_again_is_killed_again_and_holds_up_nobody() -> None:
    pen, turns = FillingPen(), 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    await empty(pen)
    await take_away(pen)
    turning.cancel()

    assert pen.kills > 1
    assert turns > pen.kills


@pytest.mark.parametrize("lives", [0, 1], ids=["before its first life", "between two lives"])
async def test_a_keeper_that_stops_while_its_child_does_not_live_leaves_no_pen(lives: int) -> None:
    name = f"longstop-test-{uuid4().hex[:8]}"
    pen = make_pen(name)
    if isinstance(pen, OpenPen):
        lack("no group can be made")
    spec = ChildSpec(name="broken", argv=(sys.executable, "-c", "raise SystemExit(3)"), env={})
    policy = RestartPolicy(first_wait=50.0)
    said = MemorySink()
    keeper = Keeper(spec, bus=Bus([said]), clock=SystemClock(), policy=policy, pen=pen)
    with life_line_of_children() as life_line:
        keeping = asyncio.create_task(keeper.keep(life_line))
        if lives:
            await until(lambda: sum(isinstance(event, ChildDied) for event in said.events) == 2, "it has died twice")

        went = await keeper.stop(5.0, asyncio.Event())
        await asyncio.wait_for(keeping, 20)

    assert went
    assert not [folder for folder in _groups() if folder.name == name]


def _groups() -> list[Path]:
    own = [own_folder(controller) for controller, _ in KINDS.values()]
    return [each for folder in own if folder is not None for each in folder.iterdir()]


def test_a_machine_without_groups_gives_an_open_pen(tmp_path: Path) -> None:
    assert isinstance(make_pen("longstop-test", tmp_path), OpenPen)


def test_a_machine_that_lets_nobody_make_groups_gives_an_open_pen(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "proc/self/mountinfo").write_text("41 31 0:38 / /groups ro - cgroup2 cgroup2 ro\n")
    (tmp_path / "groups").mkdir()

    pen = make_pen("longstop-test", tmp_path)

    assert isinstance(pen, OpenPen)
    assert not (tmp_path / "groups/longstop-test").exists()
