"""The API as a process of its own, over a file that hangs: it answers, and it ends when it is asked to."""

import asyncio
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from longstop.api.tokens import make_token
from longstop.clock import SystemClock
from longstop.settings import load_settings
from longstop.storage.sqlite.operations_tables import SqliteCommands
from longstop.supervision.exit_codes import Exit

_ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def an_api_whose_orders_hang(data: Path) -> AsyncIterator[tuple[Process, str]]:
    """Start it; give the process and its address."""
    command = [sys.executable, "-m", "tests.integration.hanging_child", str(data)]
    child = await asyncio.create_subprocess_exec(*command, cwd=_ROOT, stderr=PIPE)
    try:
        yield child, await asyncio.wait_for(_address(child), 60)
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def _address(child: Process) -> str:
    assert child.stderr is not None
    async for line in child.stderr:
        if found := re.search(rb"API on (\S+)", line):
            return found[1].decode()
    raise AssertionError("it ended before it listened")


@pytest.mark.req("NFR-006", "FR-005")
async def test_a_process_whose_threads_all_hang_answers_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    await SqliteCommands(tmp_path / "ops.db", SystemClock()).give_up_taken()  # creates the file
    token = make_token(load_settings({"LONGSTOP_DATA": str(tmp_path)}, {}), "tester", is_admin=True)
    headers = {"Authorization": f"Bearer {token}"}

    async with an_api_whose_orders_hang(tmp_path) as (child, address):
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
            paths = ["/admin/recycle"] * 3 + ["/admin/matches/1/pause"]
            orders = await asyncio.gather(*(client.post(path) for path in paths))
            history = await client.get("/status/history")
            live = await client.get("/live")
        child.terminate()
        code = await asyncio.wait_for(child.wait(), 30)

    assert [answer.status_code for answer in orders] == [503, 503, 503, 404]
    assert (history.status_code, live.status_code) == (503, 200)
    assert code == Exit.DONE
