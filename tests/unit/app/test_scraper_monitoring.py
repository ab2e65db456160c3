"""Self-monitoring goes on when one of its steps has a bug."""

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from longstop.app.scraper_monitoring import SelfMonitoring
from longstop.app.scraper_parts import Runtime
from longstop.app.sinks import ScraperSinks
from longstop.fetching.browser.browser_policy_and_stats import BrowserStats
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.model.match import Phase
from longstop.model.polling_status import MonitoringRecord
from longstop.settings import load_settings
from longstop.storage.directory import DataDirectory
from longstop.storage.error_pages_and_screenshots import NoPages
from longstop.storage.sqlite.operations_tables import open_operations
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import TaskFailed
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.source_scheduler import Scheduler
from longstop.watching.stored_pauses import StoredPauses
from tests.memory import MemoryHot, MemorySink, MemoryStore
from tests.readers import a_record


class BrokenBrowsers(BrowserPool):
    def __init__(self) -> None: ...

    def stats(self) -> tuple[BrowserStats, ...]:
        raise ZeroDivisionError("a bug")


class Site(Scheduler):
    """A source whose one match in play is paused by its breaker."""

    def __init__(self) -> None:
        self.is_paused = True

    async def recycle(self, match_ids: Collection[int]) -> bool:
        pytest.fail("a match that its breaker pauses is not helped by a recycle")

    @property
    def records(self) -> list[MonitoringRecord]:
        return [a_record(phase=Phase.PAUSED)]


async def run_with_a_bug(path: Path) -> tuple[MemoryHot, MemorySink]:
    """Run self-monitoring with a bug in one step."""
    directory, clock, hot, sink = DataDirectory.open(path), VirtualClock(), MemoryHot(), MemorySink()
    bus = Bus([sink])

    settings, ops = load_settings({}, {}), open_operations(directory.ops_db, clock)
    runtime = Runtime(
        settings=settings,
        clock=clock,
        bus=bus,
        matches=LiveMatches(MemoryStore(), directory.node_id),
        hot=hot,
        ops=ops,
        pauses=StoredPauses(ops.pauses, clock=clock),
        browsers=BrokenBrowsers(),
        dispatcher=Dispatcher(clock=clock, bus=bus, cap=1),
        pages=NoPages(),
        memory_check=MemoryCheck(0),
    )
    monitoring = SelfMonitoring(
        runtime,
        schedulers={"crex": Site()},
        sinks=ScraperSinks(settings, directory, runtime.ops, clock),
        is_supervised=False,
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(200):
            await monitoring.run()
    return hot, sink


def test_a_bug_in_measuring_costs_is_reported_and_does_not_stop_the_grading(tmp_path: Path) -> None:
    hot, sink = run_virtual(run_with_a_bug(tmp_path))

    grades = list(dict.fromkeys(beat.grade for beat in hot.beats))
    assert grades == ["healthy", "degraded", "failing"]
    assert {event.task for event in sink.events if isinstance(event, TaskFailed)} == {"self-monitoring"}
