"""What `up` does for itself: its own loop is watched, and the last thing that it does is seen through."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from longstop.app.up import CLEANUP_SECONDS
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.supervision.exit_codes import Exit
from tests.acceptance.harness import logged, read_log
from tests.chaos.live_deployment import until
from tests.chaos.unreachable_site import unreachable_site
from tests.readers import audited

pytestmark = pytest.mark.timeout(180)

#: The real `up` with a blocked loop. It finds an orphan when all children have stopped: a process with the environment
#: of a child.
UP_WITH_BLOCKED_LOOP = """
import asyncio, os, subprocess, sys, time
from longstop.app.up import run_up
from longstop.settings import BEAT_FD_VARIABLE, read_settings
from longstop.supervision.supervisor import Supervisor

def block_in_a_named_place():
    time.sleep(7)

run = Supervisor.run
async def run_and_leave_an_orphan(self, loops=()):
    ended = await run(self, loops)
    subprocess.Popen(["sleep", "300"], env={**os.environ, BEAT_FD_VARIABLE: "9"})
    return ended
Supervisor.run = run_and_leave_an_orphan

async def main():
    asyncio.get_running_loop().call_later(3, block_in_a_named_place)
    await run_up(read_settings(dict(os.environ)), dict(os.environ))
asyncio.run(main())
"""
#: The real `up`, whose disk hangs when all children have stopped.
UP_WITH_HUNG_DISK = """
import asyncio, os, time
import longstop.app.up as up
from longstop.settings import read_settings

async def hang(directory, bus):
    print("the disk hangs", flush=True)
    time.sleep(300)

up.close_heartbeat = hang
asyncio.run(up.run_up(read_settings(dict(os.environ)), dict(os.environ)))
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return unreachable_site(tmp_path)


@asynccontextmanager
async def running(program: str, environ: dict[str, str], log: Path) -> AsyncIterator[Process]:
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program),
            env=environ,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.req("FR-005")
@pytest.mark.parametrize("is_asked_again", [False, True], ids=["asked once", "asked twice"])
async def test_a_disk_that_hangs_in_the_end_does_not_keep_it(
    is_asked_again: bool, environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with running(UP_WITH_HUNG_DISK, environ, log) as process:
        await until(lambda: logged(read_log(log), "process.started", process="scraper"), "it starts")
        process.terminate()
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), 40)
        began = monotonic()
        if is_asked_again:
            process.terminate()
        ended = await asyncio.wait_for(process.wait(), 40)
        seconds = monotonic() - began

    assert ended == Exit.FORCED
    assert seconds < (CLEANUP_SECONDS - 1 if is_asked_again else CLEANUP_SECONDS + 10)


@pytest.mark.req("NFR-023", "MON-9")
async def test_a_supervisor_reports_where_its_loop_is_blocked_and_completes_its_last_sweep(
    environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with running(UP_WITH_BLOCKED_LOOP, environ, log) as process:
        await until(lambda: logged(read_log(log), "loop.resumed", process="up"), "the loop turns again")
        process.terminate()
        ended = await asyncio.wait_for(process.wait(), 40)

    [stalled] = logged(read_log(log), "loop.stalled", process="up")
    assert "block_in_a_named_place" in stalled["stacks"]
    assert ended == Exit.DONE
    [sweep] = [each for each in audited(tmp_path / "data") if each.kind is RecoveryKind.SWEEP]
    assert sweep.outcome is RecoveryOutcome.RECOVERED
    assert sweep.observed == "1 killed, none left running"
