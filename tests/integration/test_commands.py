"""The commands on a real file: when another file takes its place, and when a process dies."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longstop.model.command_and_standing_order import Command, CommandState
from longstop.storage.sqlite.operations_tables import SqliteCommands
from tests.contract.test_ops import RECYCLE
from tests.readers import ManualClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops.db"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def commands(path: Path, clock: ManualClock) -> AsyncIterator[SqliteCommands]:
    opened = SqliteCommands(path, clock)
    yield opened
    await opened.aclose()


async def seen(commands: SqliteCommands, command: Command) -> Command:
    found = await commands.find(command.id)
    assert found is not None
    return found


def move_aside(path: Path) -> None:
    aside = path.parent / "aside"
    aside.mkdir()
    for each in path.parent.glob("ops.db*"):
        each.rename(aside / each.name)


def remove(path: Path) -> None:
    for each in path.parent.glob("ops.db*"):
        each.unlink()


async def test_an_order_never_goes_into_a_file_that_was_moved_aside(path: Path, clock: ManualClock) -> None:
    """An API that runs alone holds the file while a restore puts another one in its place."""
    api = SqliteCommands(path, clock)
    await api.place(*RECYCLE)
    move_aside(path)
    scraper = SqliteCommands(path, clock)
    await scraper.give_up_taken()

    asked = await api.place(*RECYCLE)

    assert [each.id for each in await scraper.take(8)] == [asked.id]
    await api.aclose()
    await scraper.aclose()


async def test_a_file_that_was_deleted_is_made_again(commands: SqliteCommands, path: Path) -> None:
    await commands.place(*RECYCLE)
    remove(path)

    asked = await commands.place(*RECYCLE)

    assert [each.id for each in await commands.take(8)] == [asked.id]


async def test_a_command_whose_scraper_was_killed_is_never_done_again(path: Path, clock: ManualClock) -> None:
    """A real process takes it and dies by SIGKILL before it answers; its successor gives the command up."""
    commands = SqliteCommands(path, clock)
    asked = await commands.place(*RECYCLE)
    program = (
        "import asyncio, os, signal\nfrom pathlib import Path\n"
        "from longstop.storage.sqlite.operations_tables import SqliteCommands\n"
        "from tests.readers import ManualClock\n"
        f"assert len(asyncio.run(SqliteCommands(Path({str(path)!r}), ManualClock()).take(8))) == 1\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root, command = Path(__file__).parents[2], [sys.executable, "-c", program]
    killed = await asyncio.to_thread(subprocess.run, command, check=False, cwd=root)

    before = (await seen(commands, asked)).state
    await commands.give_up_taken()

    assert killed.returncode == -9
    assert before is CommandState.TAKEN
    assert await commands.take(8) == []
    assert (await seen(commands, asked)).state is CommandState.FAILED
    await commands.aclose()
