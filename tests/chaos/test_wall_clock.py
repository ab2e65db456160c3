"""The wall clock leaps an hour ahead and back: nothing restarts, opens or expires by it."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.acceptance.harness import assert_nothing_lost, read_log
from tests.chaos.running import in_play, until

pytestmark = pytest.mark.timeout(240)

#: What would be done because time seems to have passed.
UNWANTED = {
    "process.died",
    "process.renewed",
    "watch.restarted",
    "match.stale",
    "match.gone",
    "match.moved",
    "match.finished",
    "breaker.opened",
    "health.degraded",
    "health.failing",
    "health.recovering",
    "recovery.began",
    "task.failed",
    "task.ended",
    "loop.stalled",
    "browser.recycled",
}


@pytest.fixture
def libfaketime() -> Path:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if found:
        return found[0]
    if os.environ.get("CI") == "true":
        pytest.fail("libfaketime is missing: apt-get install faketime")
    pytest.skip("libfaketime is missing: apt-get install faketime")


@pytest.mark.req("NFR-005", "NFR-009")
async def test_an_hour_ahead_and_two_back_move_nothing(libfaketime: Path, tmp_path: Path) -> None:
    shift = tmp_path / "shift"
    shift.write_text("+0s\n")
    faked = {
        "LD_PRELOAD": str(libfaketime),
        "FAKETIME_TIMESTAMP_FILE": str(shift),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }

    async with in_play(matches=2, speed=2.0) as running:
        await running.replace_up(**faked)
        pids = [running.pid_of(name) for name in ("up", "scraper", "api")]
        told_before = len(read_log(running.stage.log))
        for leap in ("+3600s", "-3600s", "+0s"):
            shift.write_text(f"{leap}\n")
            polls = len(running.told("poll.succeeded"))
            await asyncio.sleep(3)
            await until(lambda: len(running.told("poll.succeeded")) > polls + 1, f"play is followed at {leap}")  # noqa: B023
        said = read_log(running.stage.log)[told_before:]
        left = [running.pid_of(name) for name in ("up", "scraper", "api")]
        verdict = await running.verdict()

    moments = [event["at"] for event in said]
    assert (max(moments) - min(moments)).total_seconds() > 7000  # the leaps were real
    assert [event for event in said if event["event"] in UNWANTED] == []
    assert left == pids
    assert_nothing_lost(verdict)
