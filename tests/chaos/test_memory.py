"""Children that take ever more memory, and a kernel that takes it back."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic

import psutil
import pytest

from longstop.clock import SystemClock
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.storage.sqlite.operations_tables import SqliteAudit
from longstop.supervision import memory_watch
from longstop.supervision.memory_watch import MEGABYTE, MemoryLimits, MemoryMonitor
from longstop.supervision.recovery_audit import RecoveryAudit
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervised_child import ChildSpec
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import (
    ChildRestarted,
    MemoryExceeded,
    MemoryHigh,
    MemoryRecovered,
    ProcessStarted,
)
from tests.chaos.limited_cgroups import memory_group_of
from tests.chaos.live_deployment import is_alive, until
from tests.readers import audited

#: Its first life takes 20 MB a second in a process of its own, as a browser's page would; later ones are modest.
LEAKING = """
import pathlib, signal, subprocess, sys, time
flag, manners = pathlib.Path(sys.argv[1]), sys.argv[2]
page = None
def leave(*_):
    if manners == "polite":
        flag.with_suffix(".state").write_text("kept")
        page.kill()
        page.wait()
        sys.exit(0)
signal.signal(signal.SIGTERM, leave)
if not flag.exists():
    flag.touch()
    leak = "import time; held = []\\nwhile True: held.append(bytearray(b'x') * 2_000_000); time.sleep(0.1)"
    page = subprocess.Popen([sys.executable, "-c", leak], start_new_session=True)
while True:
    time.sleep(0.2)
"""
#: A supervisor that is larger than its child, which takes more than there is.
SUPERVISOR_OF_GREEDY_CHILD = """
import asyncio, os, sys
from longstop.clock import SystemClock
from longstop.supervision import memory_watch
from longstop.supervision.supervised_child import ChildSpec, protect_from_oom_killer
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.log import LogSink
from longstop.telemetry.events import Severity
held = bytearray(b"x") * 100_000_000
protect_from_oom_killer()
greedy = "held = []\\nwhile True: held.append(bytearray(b'x') * 1_000_000)"
child = ChildSpec(name="greedy", argv=(sys.executable, "-c", greedy), env=dict(os.environ))
clock = SystemClock()
bus = Bus([LogSink(process="up", level=Severity.DEBUG, clock=clock)])
asyncio.run(Supervisor([child], bus=bus, clock=clock).run())
"""
LIMITS = MemoryLimits(soft_bytes=120 * MEGABYTE, hard_bytes=200 * MEGABYTE)


class Recorder:
    """Keeps what was said, and when."""

    def __init__(self) -> None:
        self.events: list[tuple[float, Telemetry]] = []

    def take(self, event: Telemetry) -> None:
        self.events.append((monotonic(), event))

    def all(self, kind: type[Telemetry]) -> list[Telemetry]:
        return [event for _, event in self.events if isinstance(event, kind)]

    def moment(self, kind: type[Telemetry], nth: int = 0) -> float:
        return [at for at, event in self.events if isinstance(event, kind)][nth]


@pytest.fixture(autouse=True)
def measured_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_watch, "MEASURE_SECONDS", 0.2)


@asynccontextmanager
async def leaking(folder: Path, manners: str, *, stop_within: float = 10.0) -> AsyncIterator[Recorder]:
    said, clock = Recorder(), SystemClock()
    bus = Bus([said])
    argv = (sys.executable, "-c", LEAKING, str(folder / "flag"), manners)
    audit = RecoveryAudit(SqliteAudit(folder / "ops.db"), process="up", clock=clock)
    supervisor = Supervisor(
        [ChildSpec(name="scraper", argv=argv, env=dict(os.environ))],
        bus=bus,
        clock=clock,
        backoff=RestartBackoff(settled_after=0.5),
        stop_within=5,
        audit=audit,
    )
    measuring_memory = MemoryMonitor(supervisor.runners, LIMITS, bus=bus, stop_within=stop_within)
    async with audit.writing(bus):
        running = asyncio.create_task(supervisor.run([("measure", measuring_memory.run)]))
        try:
            yield said
        finally:
            supervisor.stop()
            await asyncio.wait_for(running, 30)


def entries(folder: Path) -> list[tuple[RecoveryKind, RecoveryOutcome, int]]:
    return [(each.kind, each.outcome, len(each.pids_before)) for each in audited(folder)]


@pytest.mark.req("FR-006", "US2.1", "US4.2")
async def test_a_leak_is_reported_at_four_fifths_and_ends_at_the_soft_limit_with_its_state_kept(tmp_path: Path) -> None:
    async with leaking(tmp_path, "polite") as said:
        await until(lambda: len(said.all(ProcessStarted)) == 2, "the next one starts")
        await until(lambda: said.all(MemoryRecovered), "the alert ends")
        await until(lambda: entries(tmp_path)[0][1] is not RecoveryOutcome.PENDING, "the outcome is seen")

    high, exceeded = said.all(MemoryHigh), said.all(MemoryExceeded)
    assert [type(event) for event in high + exceeded] == [MemoryHigh, MemoryExceeded]
    assert isinstance(exceeded[0], MemoryExceeded)
    assert exceeded[0].limit == "soft"
    assert LIMITS.soft_bytes <= exceeded[0].rss_bytes < LIMITS.hard_bytes
    assert exceeded[0].processes == 2
    assert exceeded[0].pss_bytes is not None
    assert (tmp_path / "flag.state").read_text() == "kept"
    assert said.moment(ProcessStarted, 1) - said.moment(MemoryExceeded) < 60
    assert entries(tmp_path) == [(RecoveryKind.SOFT_RESTART, RecoveryOutcome.RECOVERED, 2)]


@pytest.mark.req("FR-006")
async def test_a_child_that_does_not_stop_at_the_soft_limit_is_killed_at_the_hard_one_with_its_page(
    tmp_path: Path,
) -> None:
    async with leaking(tmp_path, "deaf", stop_within=50.0) as said:
        await until(lambda: said.all(MemoryHigh), "the leak is seen")
        [child] = [event.pid for event in said.all(ProcessStarted) if isinstance(event, ProcessStarted)]
        [page] = psutil.Process(child).children()
        await until(lambda: len(said.all(ProcessStarted)) == 2, "the next one starts")

        limits = [event.limit for event in said.all(MemoryExceeded) if isinstance(event, MemoryExceeded)]
        restarted = [event.exit_code for event in said.all(ChildRestarted) if isinstance(event, ChildRestarted)]
        assert limits == ["soft", "hard"]
        assert restarted == [-signal.SIGKILL]
        await until(lambda: not is_alive(page), "its page is gone")


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A control group of 250 MB."""
    with memory_group_of(250_000_000) as folder:
        yield folder


@pytest.mark.req("NFR-005")
async def test_the_kernel_takes_the_child_that_wants_too_much_and_leaves_its_supervisor(
    memory_group: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    join = f'echo $$ > {memory_group}/cgroup.procs; exec "$@"'
    with log.open("wb") as out:
        up = await asyncio.create_subprocess_exec(
            "sh", "-c", join, "sh", sys.executable, "-c", SUPERVISOR_OF_GREEDY_CHILD, stderr=out
        )
    try:
        await until(lambda: log.read_text().count('"exit_code":-9') >= 2, "the kernel has taken two children")

        assert up.returncode is None
    finally:
        with suppress(ProcessLookupError):
            up.kill()
        await up.wait()
        for pid in (memory_group / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
