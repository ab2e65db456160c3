"""The audit on a real file: written by several processes at once, without anyone waiting."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from longstop.clock import SystemClock
from longstop.errors import IllegalTransition
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.storage.sqlite.operations_tables import SqliteAudit
from longstop.supervision.recovery_audit import SWEEP_SECONDS, RecoveryAudit, RecoveryObserver
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import PollSucceeded, WatchRestarted
from longstop.telemetry.events.processes import OrphanKilled
from tests.memory import MemorySink
from tests.readers import ManualClock, audited

CLOCK = SystemClock()

_WRITING_CHILD = """
import asyncio, sys
from pathlib import Path
from longstop.clock import SystemClock
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.storage.sqlite.operations_tables import SqliteAudit
from longstop.supervision.recovery_audit import RecoveryAudit
from longstop.telemetry.bus import Bus

async def main():
    audit = RecoveryAudit(SqliteAudit(Path(sys.argv[1])), process=sys.argv[2], clock=SystemClock())
    async with audit.writing(Bus()):
        for number in range(10):
            ticket = audit.begin(RecoveryKind.RESTART, trigger="t", subject=f"{sys.argv[2]} {number}")
            await asyncio.sleep(0.01)
            audit.end(ticket, RecoveryOutcome.RECOVERED, observed="o")

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops.db"


def stored(path: Path) -> list[Recovery]:
    return audited(path.parent)


def occupy(path: Path) -> None:
    """Make it impossible to open a file there."""
    path.mkdir()


def release(path: Path) -> None:
    path.rmdir()


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- the file is written by a thread
            await asyncio.sleep(0.01)


def an_audit(path: Path, process: str = "scraper") -> RecoveryAudit:
    return RecoveryAudit(SqliteAudit(path), process=process, clock=CLOCK)


@pytest.mark.req("MON-9")
async def test_an_action_is_on_the_disk_when_it_begins_and_again_with_its_outcome(path: Path) -> None:
    audit = an_audit(path)
    async with audit.writing(Bus()):
        ticket = audit.begin(RecoveryKind.SOFT_RESTART, trigger="memory", subject="scraper", pids_before={9, 4})
        await eventually(lambda: [each.outcome for each in stored(path)] == [RecoveryOutcome.PENDING])

        audit.end(ticket, RecoveryOutcome.RECOVERED, observed="it answers", pids_after=[12])

    (entry,) = stored(path)
    assert (entry.kind, entry.trigger, entry.subject, entry.process) == ("soft_restart", "memory", "scraper", "scraper")
    assert (entry.pids_before, entry.pids_after) == ((4, 9), (12,))
    assert (entry.outcome, entry.observed) == (RecoveryOutcome.RECOVERED, "it answers")
    assert entry.duration_seconds is not None
    assert entry.duration_seconds >= 0


async def test_an_outcome_is_recorded_once(path: Path) -> None:
    audit = an_audit(path)
    ticket = audit.begin(RecoveryKind.SWEEP, trigger="t", subject="s")

    with pytest.raises(IllegalTransition):
        audit.end(ticket, RecoveryOutcome.PENDING, observed="nothing")
    audit.end(ticket, RecoveryOutcome.NOT_RECOVERED, observed="nothing")
    with pytest.raises(IllegalTransition):
        audit.end(ticket, RecoveryOutcome.RECOVERED, observed="after all")


async def test_recoveries_are_emitted_when_they_start_and_end(path: Path) -> None:
    sink, audit = MemorySink(), an_audit(path)
    async with audit.writing(Bus([sink])):
        for outcome in (RecoveryOutcome.RECOVERED, RecoveryOutcome.NOT_RECOVERED):
            audit.end(audit.begin(RecoveryKind.SWEEP, trigger="t", subject="s"), outcome, observed="o")

    names = [event.name for event in sink.events]
    assert names == ["recovery.started", "recovery.succeeded", "recovery.started", "recovery.failed"]


@pytest.mark.req("MON-9")
async def test_what_is_open_at_an_orderly_end_is_closed_by_its_own_process(path: Path) -> None:
    audit, other = an_audit(path, "up"), an_audit(path)

    async with other.writing(Bus()):
        other.begin(RecoveryKind.RECYCLE, trigger="t", subject="another's")
        async with audit.writing(Bus()):
            audit.begin(RecoveryKind.RESTART, trigger="t", subject="api")
        await eventually(lambda: len(stored(path)) == 2)
        outcomes = {each.subject: each.outcome for each in stored(path)}

    assert outcomes == {"api": RecoveryOutcome.NOT_RECOVERED, "another's": RecoveryOutcome.PENDING}
    assert {each.observed for each in stored(path)} == {"the process was stopped before the outcome was known"}


async def test_a_life_that_ended_before_it_saw_an_outcome_is_closed_by_the_next(path: Path) -> None:
    first, other = an_audit(path), an_audit(path, "up")
    with suppress(ConnectionError):
        async with first.writing(Bus()), other.writing(Bus()):
            first.begin(RecoveryKind.RECYCLE, trigger="t", subject="ours")
            other.begin(RecoveryKind.RESTART, trigger="t", subject="theirs")
            await eventually(lambda: len(stored(path)) == 2)
            raise ConnectionError("no orderly end")
    clock_set_back = ManualClock(CLOCK.now() - timedelta(hours=1))

    async with (second := RecoveryAudit(SqliteAudit(path), process="scraper", clock=clock_set_back)).writing(Bus()):
        second.begin(RecoveryKind.RECYCLE, trigger="t", subject="new")
        await eventually(lambda: len(stored(path)) == 3)
        outcomes = {entry.subject: entry.outcome for entry in stored(path)}

    assert outcomes == {
        "ours": RecoveryOutcome.NOT_RECOVERED,
        "theirs": RecoveryOutcome.PENDING,
        "new": RecoveryOutcome.PENDING,
    }


async def test_a_failing_disk_blocks_nothing_and_loses_nothing(path: Path) -> None:
    sink, audit = MemorySink(), an_audit(path)
    occupy(path)
    async with audit.writing(Bus([sink])):
        ticket = audit.begin(RecoveryKind.SWEEP, trigger="t", subject="s")
        await eventually(lambda: bool(sink.named("records.failed")))
        release(path)
        audit.end(ticket, RecoveryOutcome.RECOVERED, observed="o")

    assert [entry.outcome for entry in stored(path)] == [RecoveryOutcome.RECOVERED]


async def test_the_observer_records_what_the_parts_of_a_process_do(path: Path) -> None:
    clock = ManualClock()
    audit = RecoveryAudit(SqliteAudit(path), process="scraper", clock=clock)
    observer = RecoveryObserver(audit)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)  # noqa: ASYNC220
    async with audit.writing(Bus()):
        restarted = WatchRestarted(match_id=1, ref="crex_1", reason="stale", age_seconds=300, epoch=2)
        for event in (restarted, PollSucceeded(match_id=1, ref="crex_1", seconds=0.1)):
            observer.take(event)
        observer.take(OrphanKilled(pid=child.pid, program="python", rss_bytes=None))
        observer.check()
        clock.advance(SWEEP_SECONDS)
        observer.check()
    child.communicate(b"\n")

    found = {entry.kind: (entry.outcome, entry.pids_before, entry.pids_after) for entry in stored(path)}
    assert found == {
        RecoveryKind.WATCH_RESTART: (RecoveryOutcome.RECOVERED, (), None),
        # It was said to be ended, and lives: that is seen.
        RecoveryKind.SWEEP: (RecoveryOutcome.NOT_RECOVERED, (child.pid,), (child.pid,)),
    }


async def test_several_processes_write_one_new_file_at_the_same_time(path: Path) -> None:
    names = ("up", "scraper", "other")
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", _WRITING_CHILD, str(path), name) for name in names
    ]

    codes = [await asyncio.wait_for(child.wait(), 30) for child in children]

    assert codes == [0, 0, 0]
    entries = stored(path)
    assert len(entries) == 30
    assert {entry.outcome for entry in entries} == {RecoveryOutcome.RECOVERED}


def test_without_a_file_there_is_nothing_to_read(path: Path) -> None:
    assert stored(path) == []
