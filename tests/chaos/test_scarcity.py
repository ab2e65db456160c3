"""No file, no process, no room in /tmp: what is missing is missed, nothing is lost, and all goes on afterwards."""

import asyncio
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep
from uuid import uuid4

import psutil
import pytest

from longstop.clock import SystemClock
from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.running import in_play, until, until_true

pytestmark = pytest.mark.timeout(240)

PIDS_GROUPS = Path("/sys/fs/cgroup/pids")
#: A supervisor with one child that is content with itself.
MODEST_FAMILY = """
import asyncio, os, signal, sys
from longstop.clock import SystemClock
from longstop.supervision.backoff import RestartPolicy
from longstop.supervision.keeper import ChildSpec
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Severity
from longstop.telemetry.log import LogSink
async def main():
    clock = SystemClock()
    child = ChildSpec(name="child", argv=(sys.executable, "-c", "import time; time.sleep(300)"), env=dict(os.environ))
    bus = Bus([LogSink(process="up", level=Severity.DEBUG, clock=clock)])
    supervisor = Supervisor([child], bus=bus, clock=clock, policy=RestartPolicy(first_wait=0.2, longest_wait=0.4))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
    await supervisor.run()
asyncio.run(main())
"""


@pytest.mark.req("NFR-009")
async def test_a_scraper_without_file_descriptors_loses_nothing_and_goes_on_when_it_has_them_again() -> None:
    async with in_play() as running:
        scraper = running.stage.scraper()
        assert scraper is not None
        before = resource.prlimit(scraper.pid, resource.RLIMIT_NOFILE)

        resource.prlimit(scraper.pid, resource.RLIMIT_NOFILE, (16, before[1]))
        # It could live on the connections that it has: so they break, and the site is well again afterwards.
        await running.stage.simulator.post("/_sim/faults", b'[{"kind": "drop"}]')
        await asyncio.sleep(1)
        await running.stage.simulator.delete("/_sim/faults")
        mended = SystemClock().now()
        await asyncio.sleep(4)
        was_fresh = await running.is_fresh_since(mended)
        if psutil.pid_exists(scraper.pid):
            resource.prlimit(scraper.pid, resource.RLIMIT_NOFILE, before)
        await until_true(running.is_fresh_since, SystemClock().now())
        restarts = running.told("process.died")
        verdict = await running.verdict()

    assert not was_fresh  # it really went without
    assert_nothing_lost(verdict)
    assert len(restarts) <= 4


@pytest.fixture
def pids_group() -> Iterator[Path]:
    """A control group that counts processes; made by root on a machine whose kernel has version 1 of them."""
    folder = PIDS_GROUPS / f"longstop-test-{uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        if os.environ.get("CI") == "true" and PIDS_GROUPS.is_dir():
            raise
        pytest.skip(f"no group can be made: {error}")
    yield folder
    for _ in range(100):
        with suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            return
        sleep(0.05)


@pytest.mark.req("NFR-005")
async def test_a_child_that_gets_no_process_is_started_as_soon_as_there_is_one(
    pids_group: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    (pids_group / "pids.max").write_text("1")
    join = f'echo $$ > {pids_group}/cgroup.procs; exec "$@"'
    with log.open("wb") as out:
        up = await asyncio.create_subprocess_exec(
            "sh", "-c", join, "sh", sys.executable, "-c", MODEST_FAMILY, stderr=out
        )
    try:
        await until(lambda: log.read_text().count("process.died") >= 3, "it is tried three times")
        assert '"exit_code":127' in log.read_text()
        assert "process.started" not in log.read_text()

        (pids_group / "pids.max").write_text("max")

        await until(lambda: "process.started" in log.read_text(), "it starts")
        assert len(psutil.Process(up.pid).children()) == 1
    finally:
        with suppress(ProcessLookupError):
            up.send_signal(signal.SIGTERM)
        await asyncio.wait_for(up.wait(), 40)


@pytest.mark.req("NFR-009")
async def test_a_full_directory_for_temporary_files_stops_nobody(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root may mount")
    full = tmp_path / "full"
    full.mkdir()
    fill = f'mount -t tmpfs -o size=64k tmpfs {full} && head -c 1M /dev/zero > {full}/fill; exec "$@"'

    async with in_play() as running:
        await running.replace_up("unshare", "--mount", "sh", "-c", fill, "sh", TMPDIR=str(full))
        await asyncio.sleep(3)
        seen = await running.is_fresh_since(running.fresh_at)
        scraper = running.stage.scraper()
        assert scraper is not None
        mounts = await asyncio.to_thread(Path(f"/proc/{scraper.pid}/mounts").read_text)
        died = running.told("process.died")
        verdict = await running.verdict()

    assert f"tmpfs {full} tmpfs" in mounts
    assert seen
    assert not died
    assert_nothing_lost(verdict)
