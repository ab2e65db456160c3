"""A backup in the middle of play, with kills around it: it is a state that there was, and play goes on from it."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from time import monotonic

import psutil
import pytest

from longstop.model.event import StoredEvent
from longstop.storage.base import MatchFilter
from longstop.storage.sqlite.matches import SqliteMatchReader
from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.live_deployment import LiveDeployment, is_alive, live_deployment, until, until_true
from tests.readers import apart

pytestmark = pytest.mark.timeout(180)

#: A copy is there by halves for some hundredths of a second; a busy machine may make us miss that.
ATTEMPTS = 10


async def begin(running: LiveDeployment, *words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "longstop", *words, env=running.environ, stdout=PIPE, stderr=PIPE
    )


async def run(running: LiveDeployment, *words: str) -> tuple[int | None, str]:
    process = await begin(running, *words)
    out, err = await process.communicate()
    return process.returncode, (out + err).decode()


@asynccontextmanager
async def halted_amid(running: LiveDeployment, folder: Path, name: str) -> AsyncIterator[tuple[Process, Path]]:
    """Halt a backup while its copy is there by halves; give it, and where the whole is going to be."""
    copying, target = await begin_and_halt(running, folder, name)
    try:
        yield copying, target
    finally:
        if copying.returncode is None:
            copying.kill()
        await copying.communicate()


async def begin_and_halt(running: LiveDeployment, folder: Path, name: str) -> tuple[Process, Path]:
    for attempt in range(ATTEMPTS):
        target = folder / f"{name}-{attempt}"
        copying = await begin(running, "backup", str(target))
        while copying.returncode is None and not partial_copies(target):  # noqa: ASYNC110 - another process makes them
            await asyncio.sleep(0.001)
        await halt(copying)
        if copying.returncode is None and partial_copies(target):
            return copying, target
        send(copying, signal.SIGCONT)
        _, said = await copying.communicate()
        assert copying.returncode == 0, said.decode()
    pytest.fail(f"none of {ATTEMPTS} backups was seen by halves")


def partial_copies(target: Path) -> list[Path]:
    return list(target.parent.glob(f".{target.name}.partial-*"))


async def halt(process: Process) -> None:
    """Stop a process; return when it is stopped or has ended before."""
    send(process, signal.SIGSTOP)
    await until(lambda: process.returncode is not None or is_halted(process), "it is stopped")


def send(process: Process, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(sign)


def is_halted(process: Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
    return False


def events(folder: Path) -> dict[str, list[StoredEvent]]:
    """Return every version of every match, in the order of storing."""

    async def read() -> dict[str, list[StoredEvent]]:
        async with aclosing(SqliteMatchReader(folder / "matches.db")) as reader:
            return {
                str(match.ref): await reader.events_after(match.match_id, 0, 1_000_000)
                for match in await reader.matches(MatchFilter(limit=1_000))
            }

    return apart(read())


@pytest.mark.req("NFR-009")
async def test_a_backup_under_load_is_a_prefix_of_the_truth_and_play_goes_on_from_it(tmp_path: Path) -> None:
    async with live_deployment(LONGSTOP_SETTLED_SECONDS="0") as running:
        scraper = running.deployment.scraper()
        assert scraper is not None
        async with halted_amid(running, tmp_path, "whole") as (copying, whole):
            scraper.kill()
            await until(lambda: not is_alive(scraper), "the scraper dies while it is copied")
            copying.send_signal(signal.SIGCONT)
            _, said = await copying.communicate()
        async with halted_amid(running, tmp_path, "killed") as (dying, killed):
            dying.kill()  # the backup dies, too
            await dying.communicate()
        await asyncio.sleep(3)  # the world goes on
        refused = await run(running, "restore", str(whole), "--force")
        running.up.send_signal(signal.SIGTERM)
        await until(lambda: not is_alive(running.up), "the supervisor stops")
        copied, known = events(whole), events(running.deployment.data)
        restored = await run(running, "restore", str(whole), "--force")
        running.version_log.clear()  # what came after the backup is gone, as it was asked for
        began = monotonic()
        await running.start_up()
        await until_true(running.is_fresh_since, began)

        verdict = await running.verdict()

    assert copying.returncode == 0, said.decode()
    assert dying.returncode == -signal.SIGKILL
    assert partial_copies(killed)
    assert not killed.exists()
    assert "in use by the supervisor" in refused[1]
    assert restored[0] == 0, restored[1]
    assert any(copied.values())
    assert all(known[ref][: len(versions)] == versions for ref, versions in copied.items())
    assert sum(map(len, known.values())) > sum(map(len, copied.values()))
    assert_nothing_lost(verdict)
