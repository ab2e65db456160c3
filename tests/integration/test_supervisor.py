"""The supervisor with real child processes: killed, stubborn, always dying, and orphaned."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from longstop.clock import SystemClock
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.storage.sqlite.operations_tables import SqliteAudit
from longstop.supervision.exit_codes import Exit
from longstop.supervision.recovery_audit import RecoveryAudit
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervised_child import ChildSpec
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import ChildDied, ProcessStarted, ProcessStopped
from tests.readers import audited

#: Waits until it is asked to stop; SIGTERM ends it, as it ends any process.
PATIENT = "import time; time.sleep(60)"
#: Hears SIGTERM and stays; it says when it has become deaf.
STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""
#: Stops when it is asked to, with 0; it says when it would.
POLITE = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""
#: Starts a process of its own, writes its pid, and waits.
PARENT = """
import pathlib, subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
path = pathlib.Path(sys.argv[1])
path.with_suffix(".new").write_text(str(other.pid))
path.with_suffix(".new").rename(path)
time.sleep(60)
"""
#: Watches its supervisor. The polite one notes that it was asked to stop, and does; the deaf one stays.
WATCHING = """
import os, pathlib, signal, sys, time
from longstop.supervision.lifeline_and_heartbeat_pipes import watch_parent
path = pathlib.Path(sys.argv[1])
def leave(*_):
    path.with_suffix(".asked").touch()
    sys.exit()
signal.signal(signal.SIGTERM, leave if sys.argv[2] == "polite" else signal.SIG_IGN)
watch_parent(os.environ, grace=2)
path.with_suffix(".new").write_text(str(os.getpid()))
path.with_suffix(".new").rename(path)
time.sleep(60)
"""
#: A whole supervisor process with two children that watch it.
SUPERVISOR = """
import asyncio, os, sys
from longstop.clock import SystemClock
from longstop.supervision.supervised_child import ChildSpec
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
program, folder = sys.argv[1:]
def child(name):
    return ChildSpec(name=name, argv=(sys.executable, "-c", program, f"{folder}/{name}.pid", name), env=os.environ)
asyncio.run(Supervisor([child("polite"), child("deaf")], bus=Bus(), clock=SystemClock()).run())
"""


class Recorder:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)

    def started(self, process: str) -> list[int]:
        return [event.pid for event in self.events if isinstance(event, ProcessStarted) and event.process == process]

    def died(self, process: str) -> list[ChildDied]:
        return [event for event in self.events if isinstance(event, ChildDied) and event.process == process]

    def stopped(self) -> list[str]:
        return [event.process for event in self.events if isinstance(event, ProcessStopped)]


def python(name: str, program: str, *arguments: str) -> ChildSpec:
    return ChildSpec(name=name, argv=(sys.executable, "-c", program, *arguments), env=dict(os.environ))


@asynccontextmanager
async def supervised(
    *children: ChildSpec, stop_within: float = 10.0, backoff: RestartBackoff | None = None
) -> AsyncIterator[tuple[Supervisor, Recorder]]:
    """Run a supervisor beside the test and stop it afterwards, whatever the test did."""
    recorder = Recorder()
    supervisor = Supervisor(
        children, bus=Bus([recorder]), clock=SystemClock(), backoff=backoff, stop_within=stop_within
    )
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, recorder
    finally:
        supervisor.stop()
        await asyncio.wait_for(running, 30)


async def until(condition: Callable[[], object], within: float = 20.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - another process sets no event of ours
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.req("NFR-005")
async def test_a_child_killed_with_9_restarts_at_once_and_the_other_one_does_not() -> None:
    async with supervised(python("scraper", PATIENT), python("api", PATIENT)) as (_, said):
        await until(lambda: said.started("scraper") and said.started("api"))

        os.kill(said.started("scraper")[0], signal.SIGKILL)
        await until(lambda: len(said.started("scraper")) == 2)

        assert [(death.exit_code, death.restart_in_seconds) for death in said.died("scraper")] == [(-9, 0)]
        assert is_alive(said.started("scraper")[1])
        assert len(said.started("api")) == 1


@pytest.mark.req("MON-9")
@pytest.mark.parametrize(("number", "kinds"), [(signal.SIGTERM, []), (signal.SIGKILL, [RecoveryKind.RESTART])])
async def test_a_child_that_was_asked_to_stop_is_started_again_and_that_is_no_entry_of_the_audit(
    tmp_path: Path, number: int, kinds: list[RecoveryKind]
) -> None:
    ready, said = tmp_path / "ready", Recorder()
    audit = RecoveryAudit(SqliteAudit(tmp_path / "ops.db"), process="up", clock=SystemClock())
    polite = python("scraper", POLITE, str(ready))
    supervisor = Supervisor([polite], bus=Bus([said]), clock=SystemClock(), audit=audit)
    running = asyncio.create_task(supervisor.run())

    async with audit.writing(Bus()):
        await until(ready.exists)
        os.kill(said.started("scraper")[0], number)
        await until(lambda: len(said.started("scraper")) == 2)
        supervisor.stop()
        await asyncio.wait_for(running, 30)

    entries = audited(tmp_path)
    assert [each.kind for each in entries] == kinds
    assert RecoveryOutcome.PENDING not in {each.outcome for each in entries}


async def test_a_child_that_always_dies_is_started_ever_more_rarely() -> None:
    backoff = RestartBackoff(first_delay=0.1, longest_delay=0.4)

    async with supervised(python("broken", "raise SystemExit(3)"), backoff=backoff) as (_, said):
        await until(lambda: len(said.died("broken")) >= 5)

        assert [death.restart_in_seconds for death in said.died("broken")[:5]] == [0, 0.1, 0.2, 0.4, 0.4]
        assert {death.exit_code for death in said.died("broken")} == {3}


async def test_a_program_that_cannot_be_started_is_retried_and_stops_no_other() -> None:
    nowhere = ChildSpec(name="nowhere", argv=("/no/such/program",), env={})

    async with supervised(nowhere, python("api", PATIENT), backoff=RestartBackoff(first_delay=0.05)) as (_, said):
        await until(lambda: len(said.died("nowhere")) >= 3 and said.started("api"))

        assert {death.exit_code for death in said.died("nowhere")} == {Exit.NOT_STARTED}


async def test_children_stop_in_the_order_of_the_list_and_within_the_deadline() -> None:
    async with supervised(python("scraper", PATIENT), python("api", PATIENT)) as (supervisor, said):
        await until(lambda: said.started("scraper") and said.started("api"))
        pids = [*said.started("scraper"), *said.started("api")]

        began = time.monotonic()
        supervisor.stop()
        await until(lambda: len(said.stopped()) == 2)

        assert time.monotonic() - began < 10
        assert said.stopped() == ["scraper", "api"]
        assert not any(is_alive(pid) for pid in pids)
        assert not said.died("scraper") + said.died("api")


@pytest.mark.req("FR-005")
async def test_a_stubborn_child_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"

    async with supervised(python("stubborn", STUBBORN, str(deaf)), stop_within=0.5) as (supervisor, said):
        await until(deaf.exists)
        began = time.monotonic()
        supervisor.stop()
        await until(said.stopped)

        assert 0.45 <= time.monotonic() - began < 15
        assert not is_alive(said.started("stubborn")[0])


async def test_a_stop_during_the_wait_before_a_restart_does_not_wait_it_out() -> None:
    async with supervised(python("broken", "raise SystemExit(3)"), backoff=RestartBackoff(first_delay=50)) as (_, said):
        await until(lambda: len(said.died("broken")) == 2)
        began = time.monotonic()

    assert time.monotonic() - began < 25


@pytest.mark.parametrize("turns", range(12))
async def test_a_stop_in_the_middle_of_a_start_leaves_no_process(turns: int) -> None:
    said, before = Recorder(), {child.pid for child in psutil.Process().children()}
    supervisor = Supervisor([python("scraper", PATIENT)], bus=Bus([said]), clock=SystemClock())
    running = asyncio.create_task(supervisor.run())
    for _ in range(turns):
        await asyncio.sleep(0)

    supervisor.stop()
    await asyncio.wait_for(running, 30)

    assert {child.pid for child in psutil.Process().children()} <= before


async def test_a_cancelled_supervisor_leaves_no_process() -> None:
    said = Recorder()
    supervisor = Supervisor([python("scraper", PATIENT)], bus=Bus([said]), clock=SystemClock())
    running = asyncio.create_task(supervisor.run())
    await until(lambda: said.started("scraper"))

    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

    assert not is_alive(said.started("scraper")[0])


async def test_what_a_dead_child_had_started_does_not_work_on_beside_the_next_one(tmp_path: Path) -> None:
    pid_file = tmp_path / "grandchild.pid"

    async with supervised(python("scraper", PARENT, str(pid_file))) as (_, said):
        await until(pid_file.exists)
        grandchild = int(pid_file.read_text())
        os.kill(said.started("scraper")[0], signal.SIGKILL)
        await until(lambda: len(said.started("scraper")) == 2)

        await until(lambda: not is_alive(grandchild))


async def test_no_child_outlives_a_supervisor_that_was_killed_with_9(tmp_path: Path) -> None:
    supervisor = await asyncio.create_subprocess_exec(sys.executable, "-c", SUPERVISOR, WATCHING, str(tmp_path))
    files = [tmp_path / "polite.pid", tmp_path / "deaf.pid"]
    await until(lambda: all(file.exists() for file in files))
    pids = [int(file.read_text()) for file in files]
    assert all(is_alive(pid) for pid in pids)

    supervisor.kill()
    await supervisor.wait()

    await until(lambda: not any(is_alive(pid) for pid in pids))
    assert (tmp_path / "polite.asked").exists()
    assert not (tmp_path / "deaf.asked").exists()
