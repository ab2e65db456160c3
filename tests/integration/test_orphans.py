"""What the supervisor's sweep ends and what it spares; real processes below one that only sweeps."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from longstop.process.processes import MARK_VARIABLE
from longstop.settings import BEAT_FD_VARIABLE

NODE = "node-1"
#: Starts a process before it becomes the supervisor itself, as the entry point of a container may.
ENTRY = 'sleep 300 >/dev/null & echo $!; exec "$@"'


class Sweeping:
    """The process that sweeps, and the processes to kill after the test."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.strangers: list[psutil.Process] = []

    async def hear(self) -> int:
        assert self._process.stdout is not None
        return int(await asyncio.wait_for(self._process.stdout.readline(), 30))

    async def command(self, order: str, **more: object) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": order, **more}).encode() + b"\n")
        return await self.hear()

    async def meet(self, pid: int) -> psutil.Process:
        """Return a process as soon as it is the one that it was started to be."""
        stranger = psutil.Process(pid)
        self.strangers.append(stranger)
        await until(lambda: stranger.name() == "sleep" and stranger.status() == psutil.STATUS_SLEEPING)
        return stranger

    async def leave(self, **environ: str) -> psutil.Process:
        """Start a process whose parent is gone."""
        return await self.meet(await self.command("leave", environ=environ))


@asynccontextmanager
async def sweeping(data: Path, **environ: str) -> AsyncIterator[tuple[Sweeping, psutil.Process]]:
    """Give the sweeping process, and a process that was its child before it began."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", ENTRY, "sh", sys.executable, "-m", "tests.integration.sweeping_child", str(data), NODE),
        env={**os.environ, **environ},
        stdin=PIPE,
        stdout=PIPE,
    )
    sweeping = Sweeping(process)
    try:
        beside = await sweeping.meet(await sweeping.hear())
        assert await sweeping.hear() == process.pid
        yield sweeping, beside
    finally:
        for each in sweeping.strangers:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.kill()
        await process.wait()


async def until(happens: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not happens():  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(0.01)


async def assert_spared_and_waited_for(stranger: psutil.Process, supervisor: Sweeping) -> None:
    ended = await supervisor.command("sweep")
    state = stranger.status()
    stranger.kill()
    await until(lambda: stranger.status() == psutil.STATUS_ZOMBIE)
    await supervisor.command("sweep")

    assert ended == 0
    assert state == psutil.STATUS_SLEEPING
    assert not psutil.pid_exists(stranger.pid)


def our_marks(data: Path) -> dict[str, str]:
    return {"LONGSTOP_DATA": str(data), BEAT_FD_VARIABLE: "9"}


@pytest.mark.req("FR-009")
async def test_what_a_child_has_left_is_ended_and_waited_for(tmp_path: Path) -> None:
    async with sweeping(tmp_path) as (supervisor, _):
        left = await supervisor.leave(**our_marks(tmp_path))

        ended = await supervisor.command("sweep")
        await until(lambda: not psutil.pid_exists(left.pid) or left.status() == psutil.STATUS_ZOMBIE)
        await supervisor.command("sweep")

        assert ended == 1
        assert not psutil.pid_exists(left.pid)


@pytest.mark.req("FR-009")
async def test_a_browser_of_this_node_is_known_by_its_own_mark(tmp_path: Path) -> None:
    async with sweeping(tmp_path) as (supervisor, _):
        await supervisor.leave(**{MARK_VARIABLE: f"{NODE}:1f"})

        assert await supervisor.command("sweep") == 1


@pytest.mark.req("FR-009")
async def test_a_process_seen_below_a_child_is_ours_without_any_mark(tmp_path: Path) -> None:
    async with sweeping(tmp_path) as (supervisor, _):
        await supervisor.meet(await supervisor.command("begin a child"))

        while_the_child_lives = await supervisor.command("sweep")
        await supervisor.command("lose the child")
        afterwards = await supervisor.command("sweep")

        assert (while_the_child_lives, afterwards) == (0, 1)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"LONGSTOP_DATA": "OURS"},
        {"LONGSTOP_DATA": "/elsewhere", BEAT_FD_VARIABLE: "9"},
        {MARK_VARIABLE: "node-2:1f"},
    ],
    ids=["a stranger", "an operator's backup", "another supervisor's child", "another node's browser"],
)
async def test_a_process_without_our_mark_lives_on_and_is_reaped_in_the_end(
    environ: dict[str, str], tmp_path: Path
) -> None:
    variables = {name: value.replace("OURS", str(tmp_path)) for name, value in environ.items()}
    async with sweeping(tmp_path) as (supervisor, _):
        stranger = await supervisor.leave(**variables)

        await assert_spared_and_waited_for(stranger, supervisor)


async def test_an_earlier_process_lives_on_and_is_reaped_in_the_end(tmp_path: Path) -> None:
    async with sweeping(tmp_path, **our_marks(tmp_path)) as (supervisor, beside):
        await assert_spared_and_waited_for(beside, supervisor)
