"""A backup in the middle of play, with kills around it: it is a state that there was, and play goes on from it."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from time import monotonic

import pytest

from longstop.model.event import StoredEvent
from longstop.storage.base import MatchFilter
from longstop.storage.manifest import verified
from longstop.storage.sqlite import SqliteMatchReader
from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.running import Running, in_play, is_alive, until, until_true

pytestmark = pytest.mark.timeout(180)


async def begin(running: Running, *words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "longstop", *words, env=running.environ, stdout=PIPE, stderr=PIPE
    )


async def run(running: Running, *words: str) -> tuple[int | None, str]:
    process = await begin(running, *words)
    out, err = await process.communicate()
    return process.returncode, (out + err).decode()


def events(folder: Path) -> dict[str, list[StoredEvent]]:
    """Return every version of every match, in the order of storing."""
    reader = SqliteMatchReader(folder / "matches.db")
    try:
        return {
            str(match.ref): reader.events_after(match.match_id, 0, 1_000_000)
            for match in reader.matches(MatchFilter(limit=1_000))
        }
    finally:
        reader.close()


@pytest.mark.req("NFR-009")
async def test_a_backup_under_load_is_a_prefix_of_the_truth_and_play_goes_on_from_it(tmp_path: Path) -> None:
    async with in_play(LONGSTOP_SETTLED_SECONDS="0") as running:
        # The scraper dies while it is copied.
        copying = await begin(running, "backup", str(tmp_path / "whole"))
        scraper = running.pid_of("scraper")
        assert scraper is not None
        os.kill(scraper, signal.SIGKILL)
        await copying.communicate()
        # So does whoever copies.
        dying = await begin(running, "backup", str(tmp_path / "killed"))
        await until(lambda: list(tmp_path.glob(".killed.partial-*")) or dying.returncode is not None, "it copies")
        if dying.returncode is None:
            dying.kill()
        await dying.communicate()
        await asyncio.sleep(3)  # the world goes on
        refused = await run(running, "restore", str(tmp_path / "whole"), "--force")
        running.up.send_signal(signal.SIGTERM)
        await until(lambda: not is_alive(running.up), "the supervisor stops")
        copied, known = events(tmp_path / "whole"), events(running.stage.data)
        restored = await run(running, "restore", str(tmp_path / "whole"), "--force")
        began = monotonic()
        await running.start_up()
        await until_true(running.is_fresh_since, began)

        verdict = await running.verdict()

    assert copying.returncode == 0
    assert not (tmp_path / "killed").exists() or verified(tmp_path / "killed")
    assert "in use by the supervisor" in refused[1]
    assert restored[0] == 0, restored[1]
    assert any(copied.values())
    assert all(known[ref][: len(versions)] == versions for ref, versions in copied.items())
    assert sum(map(len, known.values())) > sum(map(len, copied.values()))
    assert_nothing_lost(verdict)
