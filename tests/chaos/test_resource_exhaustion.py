"""No file, no process, no room in /tmp: what is missing is missed, nothing is lost, and all goes on afterwards."""

import asyncio
import os
import resource
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import psutil
import pytest

from longstop.errors import UsageError
from longstop.exhaustion import MIN_TEMPORARY_BYTES
from longstop.supervision.exit_codes import Exit
from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.limited_cgroups import PIDS_LIMIT, pids_group_of
from tests.chaos.live_deployment import LiveDeployment, is_alive, live_deployment, until, until_true
from tests.prerequisites import unavailable

pytestmark = pytest.mark.timeout(240)

#: A supervisor with one child that is content with itself.
SUPERVISOR_OF_ONE = """
import asyncio, os, signal, sys
from longstop.clock import SystemClock
from longstop.supervision.restart_backoff import RestartBackoff

from longstop.supervision.supervised_child import ChildSpec
from longstop.supervision.supervisor import Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Severity
from longstop.telemetry.log import LogSink
async def main():
    clock = SystemClock()
    child = ChildSpec(name="child", argv=(sys.executable, "-c", "import time; time.sleep(300)"), env=dict(os.environ))
    bus = Bus([LogSink(process="up", level=Severity.DEBUG, clock=clock)])
    supervisor = Supervisor([child], bus=bus, clock=clock, backoff=RestartBackoff(first_delay=0.2, longest_delay=0.4))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
    await supervisor.run()
asyncio.run(main())
"""


#: Events that exhausted resources of our own must never cause.
UNWANTED_EVENTS = (
    "circuit_opened",
    "match.stale",
    "errors.rate_high",
    "watch.restarted",
    "process.died",
    "task.failed",
)


@pytest.mark.req("NFR-009")
async def test_a_scraper_out_of_file_descriptors_reports_it_blames_no_site_and_recovers() -> None:
    async with live_deployment() as running:
        scraper = running.deployment.scraper()
        assert scraper is not None
        before = resource.prlimit(scraper.pid, resource.RLIMIT_NOFILE)
        # What is open stays open, and it could live on its connections: so it is asked to make new ones.
        resource.prlimit(scraper.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        await recycle(running)
        without = monotonic()
        await until_true(reports_exhaustion, (running, "file descriptors"))
        was_fresh = await running.is_fresh_since(without)

        resource.prlimit(scraper.pid, resource.RLIMIT_NOFILE, before)

        await until_true(running.is_fresh_since, monotonic())
        await until(lambda: running.logged("resources.recovered"), "there is enough again")
        unwanted = [
            event for name in UNWANTED_EVENTS for event in running.logged(name) if event.get("reason") != "recycled"
        ]
        reported = running.logged("resources.exhausted")
        verdict = await running.verdict()

    assert not was_fresh  # it really went without
    assert [event["resource"] for event in reported] == ["file descriptors"]
    assert unwanted == []
    assert_nothing_lost(verdict)


@pytest.mark.req("NFR-009")
async def test_few_file_descriptors_from_the_start_are_enough_for_a_few_matches() -> None:
    async with live_deployment(matches=2) as running:
        await running.replace_up("prlimit", "--nofile=64")
        opened, died = running.logged("circuit_opened"), running.logged("process.died")
        verdict = await running.verdict()

    assert (opened, died) == ([], [])
    assert_nothing_lost(verdict)


async def recycle(running: LiveDeployment) -> None:
    """Have all connections reopened, as an operator would."""
    order = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "longstop", "recycle"), env=running.environ, stdout=DEVNULL
    )
    assert await asyncio.wait_for(order.wait(), 60) == 0


async def reports_exhaustion(about: tuple[LiveDeployment, str]) -> bool:
    """Return whether `/health` names the exhausted resource as a reason."""
    running, what = about
    try:
        health = (await running.deployment.api.get("/health")).body
    except UsageError:
        return False
    return health["status"] == "degraded" and any(f"out of {what}" in reason for reason in health["reasons"])


@pytest.fixture
def pids_group() -> Iterator[Path]:
    """A control group that holds one process."""
    with pids_group_of(1) as folder:
        yield folder


@pytest.mark.req("NFR-005")
async def test_a_child_that_gets_no_process_is_started_as_soon_as_there_is_one(
    pids_group: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    join = f'echo $$ > {pids_group}/cgroup.procs; exec "$@"'
    with log.open("wb") as out:
        up = await asyncio.create_subprocess_exec(
            "sh", "-c", join, "sh", sys.executable, "-c", SUPERVISOR_OF_ONE, stderr=out
        )
    try:
        await until(lambda: log.read_text().count("process.died") >= 3, "it is tried three times")
        assert '"exit_code":71' in log.read_text()
        assert "process.started" not in log.read_text()

        (pids_group / PIDS_LIMIT).write_text("max")

        await until(lambda: "process.started" in log.read_text(), "it starts")
        assert len(psutil.Process(up.pid).children()) == 1
    finally:
        with suppress(ProcessLookupError):
            up.send_signal(signal.SIGTERM)
        await asyncio.wait_for(up.wait(), 40)


@pytest.mark.req("NFR-009")
async def test_a_scraper_out_of_processes_reports_it_blames_no_site_and_restarts_its_browser(
    pids_group: Path,
) -> None:
    async with live_deployment(matches=2, is_browsed=True) as running:
        scraper = running.deployment.scraper()
        assert scraper is not None
        (pids_group / "cgroup.procs").write_text(str(scraper.pid))
        await recycle(running)
        without = monotonic()
        await until_true(reports_exhaustion, (running, "processes"))
        was_fresh = await running.is_fresh_since(without)

        (pids_group / PIDS_LIMIT).write_text("max")

        await until_true(running.is_fresh_since, monotonic(), within=90)  # a failed browser is retried after a back-off
        await until(lambda: running.logged("resources.recovered"), "there is enough again")
        unwanted = [
            event for name in UNWANTED_EVENTS for event in running.logged(name) if event.get("reason") != "recycled"
        ]
        reported, failed = running.logged("resources.exhausted"), running.logged("browser.failed")
        verdict = await running.verdict()

    assert not was_fresh
    assert [event["resource"] for event in reported] == ["processes"]
    assert failed
    assert all("out of processes" in event["reason"] for event in failed)
    assert unwanted == []
    assert (verdict.lost, verdict.ghost, verdict.wrong) == (0, 0, 0)


@pytest.mark.req("NFR-005")
async def test_a_scraper_that_gets_too_few_threads_at_its_start_says_that_in_its_exit_code() -> None:
    async with live_deployment(matches=1) as running:
        running.up.send_signal(signal.SIGTERM)
        await until(lambda: not is_alive(running.up), "the supervisor stops")

        ends = [await end_of_a_scraper(running, processes) for processes in (1, 2, 4)]

    assert ends == [(Exit.RESOURCES, False)] * 3


@pytest.mark.req("NFR-005")
async def test_a_supervisor_without_threads_says_so_once_and_begins_its_work_when_it_has_them(
    pids_group: Path,
) -> None:
    (pids_group / PIDS_LIMIT).write_text("3")
    async with live_deployment(matches=1) as running:
        running.up.send_signal(signal.SIGTERM)
        await until(lambda: not is_alive(running.up), "the first supervisor stops")
        await running.start_up("sh", "-c", f'echo $$ > {pids_group}/cgroup.procs; exec "$@"', "sh")
        await until(lambda: running.logged("poll.postponed", process="up"), "a loop goes without")
        await until(lambda: running.logged("resources.exhausted", process="up"), "it says so")

        (pids_group / PIDS_LIMIT).write_text("max")

        await until_true(running.is_fresh_since, monotonic(), within=90)  # who died often waits long
        await until(lambda: running.logged("resources.recovered", process="up"), "there is enough again")
        reported = running.logged("resources.exhausted", process="up")
        failed = running.logged("task.failed")
        verdict = await running.verdict()

    assert [event["resource"] for event in reported] == ["processes"]
    assert failed == []
    assert_nothing_lost(verdict)


async def end_of_a_scraper(running: LiveDeployment, processes: int) -> tuple[int | None, bool]:
    """Start a scraper that may have this many processes and threads; return its exit code and whether it crashed."""
    argv = (sys.executable, "-m", "longstop", "scraper")
    with pids_group_of(processes) as group:
        join = f'echo $$ > {group}/cgroup.procs; exec "$@"'
        scraper = await asyncio.create_subprocess_exec(
            *("sh", "-c", join, "sh", *argv), env=running.environ, stdout=DEVNULL, stderr=PIPE
        )
        try:
            _, said = await asyncio.wait_for(scraper.communicate(), 40)
        finally:
            with suppress(ProcessLookupError):
                scraper.kill()
    return scraper.returncode, b"Traceback" in said


@pytest.fixture
def full(tmp_path: Path) -> Path:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        unavailable("only root may mount, and by unshare")
    folder = tmp_path / "full"
    folder.mkdir()
    return folder


def with_tmp(folder: Path, then: str = "true") -> tuple[str, ...]:
    """Return what gives a command a small directory for temporary files of its own, and does something there first."""
    return ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=128m tmpfs {folder} && {then}; exec "$@"', "sh")


@pytest.mark.req("NFR-009")
async def test_a_full_directory_for_temporary_files_does_not_stop_polling_by_http(full: Path) -> None:
    async with live_deployment() as running:
        await running.replace_up(*with_tmp(full, f"head -c 129M /dev/zero > {full}/fill"), TMPDIR=str(full))
        await until_true(running.is_fresh_since, monotonic())
        scraper = running.deployment.scraper()
        assert scraper is not None
        mounts = await asyncio.to_thread(Path(f"/proc/{scraper.pid}/mounts").read_text)
        died = running.logged("process.died")
        verdict = await running.verdict()

    assert f"tmpfs {full} tmpfs" in mounts
    assert not died
    assert_nothing_lost(verdict)


@pytest.mark.req("NFR-009")
async def test_a_real_browser_starts_and_reads_on_when_there_is_no_room_for_temporary_files(full: Path) -> None:
    async with live_deployment(matches=2, is_browsed=True) as running:
        await running.replace_up(*with_tmp(full), TMPDIR=str(full))
        scraper = running.deployment.scraper()
        assert scraper is not None
        folder = Path(f"/proc/{scraper.pid}/root{full}")
        await asyncio.to_thread(fill_up, folder / "fill")
        before = len(running.logged("browser.started"))

        await recycle(running)

        await until(lambda: len(running.logged("browser.started")) > before, "another browser starts")
        await until_true(running.is_fresh_since, monotonic())
        free = shutil.disk_usage(folder).free
        unwanted = [
            event for name in UNWANTED_EVENTS for event in running.logged(name) if event.get("reason") != "recycled"
        ]
        verdict = await running.verdict()

    assert free < MIN_TEMPORARY_BYTES
    assert unwanted == []
    assert (verdict.lost, verdict.ghost, verdict.wrong) == (0, 0, 0)  # so early, football may have no event yet


def fill_up(file: Path) -> None:
    """Write until there is no room left."""
    with suppress(OSError), file.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(1 << 16))
