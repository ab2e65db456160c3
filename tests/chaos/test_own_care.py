"""What `up` does for itself: its own loop is watched, and the last thing that it does is seen through."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.storage.audit import RecoveryReader
from longstop.supervision.exits import Exit
from tests.acceptance.harness import read_log, told
from tests.chaos.running import own_environment, until
from tests.chaos.test_starting_and_stopping import SOURCES

pytestmark = pytest.mark.timeout(180)

#: The real `up`, whose loop somebody blocks, and who finds an orphan when all children have stopped.
TROUBLED = """
import asyncio, os, subprocess, sys, time
from longstop.app.up import run_up
from longstop.settings import read_settings
from longstop.supervision.supervisor import Supervisor

def block_in_a_named_place():
    time.sleep(7)

run = Supervisor.run
async def run_and_leave_somebody(self, loops=()):
    ended = await run(self, loops)
    subprocess.Popen(["sleep", "300"])
    return ended
Supervisor.run = run_and_leave_somebody

async def main():
    asyncio.get_running_loop().call_later(3, block_in_a_named_place)
    return await run_up(read_settings(dict(os.environ)), dict(os.environ))
sys.exit(asyncio.run(main()))
"""


@pytest.mark.req("NFR-023", "MON-9")
async def test_a_supervisor_tells_where_its_loop_stands_and_sees_its_last_sweep_through(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(SOURCES)
    with own_environment():
        environ = {
            **os.environ,
            "LONGSTOP_DATA": str(tmp_path / "data"),
            "LONGSTOP_SOURCES": str(tmp_path / "sources.yaml"),
            "LONGSTOP_API_PORT": "0",
            "ENABLE_PROMETHEUS_METRICS": "false",
        }
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", TROUBLED, env=environ, stdin=DEVNULL, stderr=out, start_new_session=True
        )
    try:
        await until(lambda: told(read_log(log), "loop.resumed", process="up"), "the loop turns again")
        process.terminate()
        ended = await asyncio.wait_for(process.wait(), 40)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    [stalled] = told(read_log(log), "loop.stalled", process="up")
    assert "block_in_a_named_place" in stalled["stacks"]
    assert ended == Exit.DONE
    reader = RecoveryReader(tmp_path / "data" / "ops.db")
    [sweep] = [each for each in reader.recoveries() if each.kind is RecoveryKind.SWEEP]
    reader.close()
    assert sweep.outcome is RecoveryOutcome.RECOVERED
    assert sweep.observed == "of 1 that were ended none is left"
