"""The processes of a deployment, with real ones: a browser is found by its marks, even if its first process is dead."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from longstop.process.processes import MARK_VARIABLE
from longstop.storage.directory import DataDirectory
from longstop_lab.deployment import survivors
from longstop_lab.processes import DeploymentProcesses

#: As Chromium does it: a first process that shows its environment, and another one that does not.
BROWSER = ("sh", "-c", "env -i sleep 60 & wait")


@asynccontextmanager
async def running(*argv: str, **environ: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *argv, env={"PATH": os.environ["PATH"], **environ}, start_new_session=True
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def until_there_are(count: int, processes: DeploymentProcesses) -> None:
    async with asyncio.timeout(20):
        while len(processes.running()) != count:  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(0.02)


@pytest.fixture
def node(tmp_path: Path) -> str:
    return DataDirectory.open(tmp_path).node_id


async def test_who_names_the_data_directory_is_left_over(tmp_path: Path, node: str) -> None:
    async with running("sleep", "60", LONGSTOP_DATA=str(tmp_path)):
        await until_there_are(1, DeploymentProcesses.of(tmp_path))

        assert survivors(tmp_path) == 1
    assert survivors(tmp_path) == 0


async def test_all_processes_of_a_browser_are_found_without_the_directory_in_their_environment(
    tmp_path: Path, node: str
) -> None:
    async with running(*BROWSER, **{MARK_VARIABLE: f"{node}:1"}):
        await until_there_are(2, DeploymentProcesses.of(tmp_path))

        assert survivors(tmp_path) == 2
    assert survivors(tmp_path) == 0


async def test_the_browser_of_another_node_is_not_ours(tmp_path: Path, node: str) -> None:
    async with (
        running("sleep", "60", LONGSTOP_DATA=str(tmp_path)),
        running(*BROWSER, **{MARK_VARIABLE: "another:1"}),
        running(*BROWSER, **{MARK_VARIABLE: ""}),
    ):
        await until_there_are(1, DeploymentProcesses.of(tmp_path))

        assert survivors(tmp_path) == 1


async def test_known_processes_are_found_without_their_first_process(tmp_path: Path, node: str) -> None:
    processes = DeploymentProcesses.of(tmp_path)

    async with running(*BROWSER, **{MARK_VARIABLE: f"{node}:1"}) as browser:
        await until_there_are(2, processes)
        browser.kill()
        await browser.wait()

        assert len(processes.running()) == 1
