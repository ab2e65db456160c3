"""The promise of durability against `kill -9`."""

import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import apsw
import pytest

from longstop.storage.base import MatchBase
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from tests.contract.stores import REF

#: `scripts/sweep` kills at every call that reaches the disk.
KILLS = 8
_ROOT = Path(__file__).parents[2]


def acknowledged_until_killed(path: Path, updates: int) -> int:
    """Let a child write, kill it in the midst of it, and return the last update that it called durable."""
    command = [sys.executable, "-m", "tests.integration.writing_child", str(path)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        *_, last = islice(child.stdout, updates)
        child.kill()
        rest = child.stdout.read().split("\n")
        # The last line may have been cut by the kill: it counts only when it is whole.
        return max([int(last), *(int(line) for line in rest[:-1])])


async def contents(path: Path) -> MatchBase:
    """Return what a reader finds right after the kill, with the write-ahead log as the dead writer left it."""
    reader = SqliteMatchReader(path)
    match = await reader.find(REF)
    assert match is not None
    versions = await reader.events_after(match.match_id, 0, sys.maxsize)
    newest, *_ = await reader.snapshots(match.match_id)
    await reader.aclose()
    return MatchBase(match=match, events=tuple(versions), snapshot=newest, open_findings=(), players={}, teams={})


@pytest.mark.req("NFR-009", "JOB-5")
async def test_no_acknowledged_update_is_lost_when_the_writer_is_killed_again_and_again(tmp_path: Path) -> None:
    path, dice = tmp_path / "matches.db", random.Random(7)

    for _ in range(KILLS):
        acknowledged = acknowledged_until_killed(path, dice.randint(1, 60))

        left = await contents(path)
        assert left.match.seq >= acknowledged
        assert [version.seq for version in left.events] == list(range(1, left.match.seq + 1))
        assert left.snapshot is not None
        assert left.snapshot.sequence == left.match.seq

    store = await SqliteMatchStore.open(path)
    base = await store.load(left.match.match_id)
    await store.aclose()
    assert base.match == left.match
    assert sorted(base.events, key=lambda stored: stored.seq) == list(left.events)
    assert base.match.epoch == KILLS
    assert integrity(path) == "ok"


def integrity(path: Path) -> object:
    connection = apsw.Connection(str(path))
    try:
        return connection.pragma("integrity_check")
    finally:
        connection.close()
