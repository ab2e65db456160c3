"""How `longstop up` begins and ends when something is in the way; real processes, and exit codes that say why."""

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic

import psutil
import pytest

from longstop.supervision.exit_codes import Exit
from tests.acceptance.harness import logged, read_log
from tests.chaos.live_deployment import is_alive, until
from tests.chaos.unreachable_site import unreachable_site

pytestmark = pytest.mark.timeout(180)

#: A child of a child that runs away: another session, and its parent is gone.
RUNAWAY = """
import os, pathlib, subprocess, sys, time
page = "import time; time.sleep(300)"
# It inherits no pipe of ours: a reader of the driver's output must not wait for the page.
start = "subprocess.Popen([sys.executable, '-c', %r], stdout=subprocess.DEVNULL, start_new_session=True)" % page
driver = f"import subprocess, sys; print({start}.pid)"
out = subprocess.run([sys.executable, "-c", driver], stdout=subprocess.PIPE, start_new_session=True).stdout
path = pathlib.Path(sys.argv[1])
path.with_suffix(".new").write_text(out.decode().strip())
path.with_suffix(".new").rename(path)
time.sleep(300)
"""
#: The supervisor as `up` puts it together, with another child; `walled` gives the child a group.
SUPERVISOR_OF_RUNAWAY = """
import asyncio, os, sys
from pathlib import Path
from longstop.clock import SystemClock
from longstop.supervision.supervised_child import ChildSpec
from longstop.process.orphan_sweeps import OrphanSweep
from longstop.process.cgroup_limits_and_kill import ChildGroup, create_group
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
program, file, name = sys.argv[1:]
async def main():
    data = Path(file).parent
    environ = {**os.environ, "LONGSTOP_DATA": str(data)}
    child = ChildSpec(name="scraper", argv=(sys.executable, "-c", program, file), env=environ)
    group = lambda _: create_group(name) if name else ChildGroup()
    supervisor = Supervisor([child], bus=Bus(), clock=SystemClock(), group_for=group)
    import signal
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
    sweep = OrphanSweep(supervisor.own_pids, Bus(), data=data, node="node-1")
    await supervisor.run([("sweep", sweep.run)])
asyncio.run(main())
"""
#: Refuses to go.
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
SUPERVISOR_OF_STUBBORN_CHILDREN = """
import asyncio, os, signal, sys
from longstop.clock import SystemClock
from longstop.supervision.supervised_child import ChildSpec
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Severity
from longstop.telemetry.log import LogSink
async def main():
    clock = SystemClock()
    children = [ChildSpec(name=n, argv=(sys.executable, "-c", sys.argv[1]), env=dict(os.environ)) for n in ("a", "b")]
    bus = Bus([LogSink(process="up", level=Severity.DEBUG, clock=clock)])
    supervisor = Supervisor(children, bus=bus, clock=clock, stop_within=float(sys.argv[2]))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
    return await supervisor.run()
sys.exit(asyncio.run(main()))
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return unreachable_site(tmp_path)


@asynccontextmanager
async def up(environ: dict[str, str], log: Path) -> AsyncIterator[Process]:
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "longstop", "up", env=environ, stdin=DEVNULL, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 35)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def started(log: Path, process: str) -> Callable[[], bool]:
    return lambda: bool(logged(read_log(log), "process.started", process=process))


def run_up(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "longstop", "up"], env=environ, capture_output=True, text=True, timeout=50, check=False
    )


async def test_a_second_supervisor_on_the_same_data_names_the_first_and_ends(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with up(environ, tmp_path / "log") as first:
        await until(started(tmp_path / "log", "api"), "it starts")

        second = await asyncio.to_thread(run_up, environ)

        assert second.returncode == Exit.LOCKED
        assert f"in use by the supervisor with pid {first.pid}" in second.stderr
        assert "Traceback" not in second.stderr
        assert first.returncode is None


def test_wrong_settings_end_it_at_once_with_a_number_of_their_own(environ: dict[str, str]) -> None:
    run = run_up({**environ, "MEMORY_HARD_LIMIT_MB": "100"})

    assert run.returncode == Exit.SETTINGS
    assert run.stderr.strip() == (
        "longstop: MEMORY_HARD_LIMIT_MB is 100: set it higher than MEMORY_SOFT_LIMIT_MB, which is 1536"
    )


@pytest.mark.req("FR-005")
async def test_it_stops_when_asked_and_says_that_it_is_done(environ: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with up(environ, log) as process:
        await until(lambda: started(log, "api")() and started(log, "scraper")(), "it starts")
        family = psutil.Process(process.pid).children(recursive=True)

        began = monotonic()
        process.terminate()
        ended = await asyncio.wait_for(process.wait(), 40)

        assert ended == Exit.DONE
        assert monotonic() - began < 30
        assert not [each for each in family if is_alive(each)]


@pytest.mark.req("FR-005")
async def test_children_that_do_not_listen_are_gone_when_the_time_is_over_both_of_them(tmp_path: Path) -> None:
    async with stubborn(tmp_path, stop_within=3.0) as (process, family):
        began = monotonic()
        process.terminate()
        ended = await asyncio.wait_for(process.wait(), 30)

        assert ended == Exit.FORCED
        assert 2.5 <= monotonic() - began < 15
        assert not [each for each in family if is_alive(each)]


@pytest.mark.req("FR-005")
async def test_a_real_scraper_and_api_that_hear_nothing_are_gone_when_the_time_is_over(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """With three seconds; `scripts/chaos stubborn` takes the thirty that are usual, and a browser."""
    log = tmp_path / "log"
    async with up({**environ, "LONGSTOP_STOP_SECONDS": "3"}, log) as process:
        await until(lambda: started(log, "api")() and started(log, "scraper")(), "it starts")
        pids = {event["pid"] for event in logged(read_log(log), "process.started") if event["pid"] != process.pid}
        family = [psutil.Process(pid) for pid in pids]
        for each in family:
            each.send_signal(signal.SIGSTOP)  # only SIGKILL reaches them now
        await until(lambda: all(each.status() == psutil.STATUS_STOPPED for each in family), "they are halted")

        began = monotonic()
        process.terminate()
        ended = await asyncio.wait_for(process.wait(), 40)
        seconds = monotonic() - began

        assert ended == Exit.FORCED
        # Four fifths are the children's, and a tenth of that is kept for the second of them.
        assert 2.0 <= seconds < 15
        assert not [each for each in family if is_alive(each)]


@pytest.mark.req("FR-005")
async def test_asked_twice_it_ends_now(tmp_path: Path) -> None:
    async with stubborn(tmp_path, stop_within=300.0) as (process, family):
        patience = 0.3
        while process.returncode is None:
            process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), patience)
            patience = 10.0  # two that come too close are one, and then a third is needed

        assert process.returncode == Exit.FORCED
        assert not [each for each in family if is_alive(each)]


@pytest.mark.req("FR-005")
async def test_however_often_it_is_asked_its_exit_code_says_why_it_ended(
    environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with up(environ, log) as process:
        await until(lambda: started(log, "api")() and started(log, "scraper")(), "it starts")

        while process.returncode is None:  # also in the moments in which there is nothing left to stop
            with suppress(ProcessLookupError):
                # Not by the process's own method: that one polls for its end, and takes its exit code away.
                os.kill(process.pid, signal.SIGTERM)
            await asyncio.sleep(0.001)

        assert process.returncode == Exit.FORCED


@asynccontextmanager
async def stubborn(folder: Path, stop_within: float) -> AsyncIterator[tuple[Process, list[psutil.Process]]]:
    log = folder / "log"
    argv = (sys.executable, "-c", SUPERVISOR_OF_STUBBORN_CHILDREN, DEAF, str(stop_within))
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*argv, stderr=out)
    family: list[psutil.Process] = []
    try:
        await until(lambda: len(psutil.Process(process.pid).children()) == 2, "both are born")
        family = psutil.Process(process.pid).children()
        await until(lambda: all(_is_deaf(each.pid) for each in family), "both are deaf")
        yield process, family
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def _is_deaf(pid: int) -> bool:
    ignored = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn"))
    return bool(int(ignored.split()[1], 16) & 1 << (signal.SIGTERM - 1))


@pytest.mark.req("FR-009", "US2.4")
@pytest.mark.parametrize("group", ["", "longstop-test-group"], ids=["without a group", "with a group"])
async def test_what_ran_away_from_a_child_that_died_is_ended_and_waited_for(group: str, tmp_path: Path) -> None:
    file, name = tmp_path / "pid", f"{group}-{os.getpid()}" if group else ""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SUPERVISOR_OF_RUNAWAY, RUNAWAY, str(file), name
    )
    try:
        await until(file.exists, "the runaway starts")
        runaway = psutil.Process(int(file.read_text()))
        child = next(each for each in psutil.Process(process.pid).children() if RUNAWAY in each.cmdline())
        # Without a group its origin is unknown: the supervisor adopted it, and it may be gone already.
        assert not group or is_alive(runaway)

        child.kill()

        await until(lambda: not psutil.pid_exists(runaway.pid), "it is gone, and no zombie is left")
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), 40)


@pytest.mark.req("NFR-005")
async def test_a_scraper_that_cannot_start_is_tried_ever_more_rarely_and_the_api_lives_on(
    environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"

    # A busy machine may need longer for a start than the ten seconds that count as a good life.
    async with up({**environ, "LONGSTOP_SETTLED_SECONDS": "60"}, log) as process:
        store = tmp_path / "data" / "matches.db"
        await until(lambda: store.exists() and store.stat().st_size > 0, "it opens its store")
        scraper = next(c for c in psutil.Process(process.pid).children() if "scraper" in c.cmdline())
        for log_of_store in (tmp_path / "data").glob("matches.db-*"):
            log_of_store.unlink()  # SQLite would restore the file from it
        store.write_bytes(b"this was a store once" * 1000)
        scraper.kill()
        await until(
            lambda: len(logged(read_log(log), "process.died", process="scraper")) >= 3, "it dies three times", 90
        )

        killed, *deaths = logged(read_log(log), "process.died", process="scraper")
        assert [death["restart_in_seconds"] for death in (killed, *deaths[:2])] == [0, 1, 2]
        assert {death["exit_code"] for death in deaths} == {Exit.STORAGE}
        assert {death["reason"] for death in deaths} == {"the data directory cannot be used"}
        assert not logged(read_log(log), "process.died", process="api")


@pytest.mark.req("NFR-005")
async def test_a_child_with_wrong_settings_is_not_restarted_for_a_minute(
    environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with up(environ, log) as process:
        await until(started(log, "scraper"), "it starts")
        (tmp_path / "sources.yaml").write_text("sources: nonsense\n")
        scraper = next(c for c in psutil.Process(process.pid).children() if "scraper" in c.cmdline())

        scraper.kill()
        await until(lambda: len(logged(read_log(log), "process.died", process="scraper")) == 2, "it dies twice")

        killed, wrong = logged(read_log(log), "process.died", process="scraper")
        assert (killed["exit_code"], killed["reason"]) == (-9, "it was killed by SIGKILL")
        assert (wrong["exit_code"], wrong["restart_in_seconds"]) == (Exit.SETTINGS, 60)
        assert "a setting is wrong" in wrong["reason"]
