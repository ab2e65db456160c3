"""The supervisor listens to real child processes: one blocks its loop, one takes its time to come up."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from longstop.clock import SystemClock
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.storage.sqlite.operations_tables import SqliteAudit
from longstop.supervision.heartbeat_watch import HeartbeatMonitor
from longstop.supervision.recovery_audit import RecoveryAudit
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervised_child import ChildSpec
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ChildUnresponsive, ProcessStarted
from tests.memory import MemorySink
from tests.readers import audited

#: Beats; its first life blocks the loop after a while.
BLOCKING = """
import asyncio, os, pathlib, sys, time
from longstop.supervision.lifeline_and_heartbeat_pipes import sending_heartbeats
async def main():
    flag = pathlib.Path(sys.argv[1])
    with sending_heartbeats(os.environ):
        await asyncio.sleep(1.5)
        if not flag.exists():
            flag.touch()
            time.sleep(60)
        await asyncio.sleep(60)
asyncio.run(main())
"""
#: Beats from the moment on at which a file appears.
SLOW = """
import asyncio, os, pathlib, sys, time
from longstop.supervision.lifeline_and_heartbeat_pipes import sending_heartbeats
async def main():
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.05)
    with sending_heartbeats(os.environ):
        await asyncio.sleep(60)
asyncio.run(main())
"""
SETTLED_SECONDS = 0.2


class Heard(MemorySink):
    def pids(self, process: str) -> list[int]:
        return [each.pid for each in self.events if isinstance(each, ProcessStarted) and each.process == process]


@asynccontextmanager
async def listened_to(folder: Path, **programs: str) -> AsyncIterator[Heard]:
    heard, clock = Heard(), SystemClock()
    bus, audit = Bus([heard]), RecoveryAudit(SqliteAudit(folder / "ops.db"), process="up", clock=clock)
    children = [
        ChildSpec(
            name=name,
            argv=(sys.executable, "-c", program, str(folder / f"{name}.flag")),
            env=dict(os.environ),
            is_beating=True,
        )
        for name, program in programs.items()
    ]
    backoff = RestartBackoff(settled_after=SETTLED_SECONDS)
    supervisor = Supervisor(children, bus=bus, clock=clock, backoff=backoff, stop_within=5, audit=audit)
    monitor = HeartbeatMonitor(supervisor.runners, patience=5.0, bus=bus, clock=clock)
    async with audit.writing(bus):
        running = asyncio.create_task(supervisor.run([("check heartbeats", monitor.run)]))
        try:
            yield heard
        finally:
            supervisor.stop()
            await asyncio.wait_for(running, 30)


async def until(condition: Callable[[], object], within: float = 40.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - another process sets no event of ours
            await asyncio.sleep(0.05)


@pytest.mark.req("NFR-005", "MON-9")
async def test_a_child_that_blocks_its_loop_is_restarted_and_the_other_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "api.flag").touch()

    async with listened_to(tmp_path, scraper=BLOCKING, api=BLOCKING) as heard:
        await until(lambda: len(heard.pids("scraper")) == 2)
        await until(lambda: [each.outcome for each in audited(tmp_path)] == [RecoveryOutcome.RECOVERED])

    silent = [each for each in heard.events if isinstance(each, ChildUnresponsive)]
    assert [(each.process, each.pid) for each in silent] == [("scraper", heard.pids("scraper")[0])]
    assert len(heard.pids("api")) == 1
    (entry,) = audited(tmp_path)
    assert (entry.kind, entry.subject) == (RecoveryKind.HARD_RESTART, "scraper")
    assert entry.trigger.startswith("unresponsive: no heartbeat for ")


@pytest.mark.req("MON-9")
async def test_a_restart_has_not_recovered_before_the_first_heartbeat(tmp_path: Path) -> None:
    async with listened_to(tmp_path, api=SLOW) as heard:
        await until(lambda: heard.pids("api"))
        os.kill(heard.pids("api")[0], signal.SIGKILL)
        await until(lambda: len(heard.pids("api")) == 2 and audited(tmp_path))
        await asyncio.sleep(5 * SETTLED_SECONDS)
        before = [each.outcome for each in audited(tmp_path)]
        (tmp_path / "api.flag").touch()
        await until(lambda: [each.outcome for each in audited(tmp_path)] == [RecoveryOutcome.RECOVERED])

    assert before == [RecoveryOutcome.PENDING]
    assert audited(tmp_path)[0].observed == f"process {heard.pids('api')[1]} has run for 0.2 s and sends heartbeats"
