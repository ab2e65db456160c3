"""Self-monitoring goes on when one of its steps has a bug."""

import asyncio
from pathlib import Path

import pytest

from longstop.app.runtime import Runtime
from longstop.app.self_monitoring import SelfMonitoring
from longstop.app.sinks import ScraperSinks
from longstop.fetching.browser.pool import BrowserPool
from longstop.fetching.browser.source_browser import SourceBrowser
from longstop.matches.client import SourceClient
from longstop.matches.live_match import LiveMatches
from longstop.model.match import MonitoringRecord, Phase
from longstop.settings import load_settings
from longstop.storage.directory import DataDirectory
from longstop.storage.error_pages import NoPages
from longstop.storage.sqlite.ops import open_operations
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import TaskFailed
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.dispatcher import Dispatcher
from longstop.watching.scheduler import Scheduler
from tests.memory import MemoryHot, MemorySink, MemoryStore
from tests.readers import a_record


class NoBrowsers(BrowserPool):
    def __init__(self) -> None:
        self._browsers: dict[str, SourceBrowser] = {}


class BrokenClient(SourceClient):
    def __init__(self) -> None: ...

    def page_of(self, source_id: str) -> str:
        raise ZeroDivisionError("a bug")


class Site(Scheduler):
    """A source whose one match in play is paused by its breaker, with a bug in the address of its page."""

    def __init__(self) -> None:
        self.is_paused = True
        self.client = BrokenClient()

    @property
    def records(self) -> list[MonitoringRecord]:
        return [a_record(phase=Phase.PAUSED)]


async def run_with_a_bug(path: Path) -> tuple[MemoryHot, MemorySink]:
    """Run self-monitoring with a bug in one step."""
    directory, clock, hot, sink = DataDirectory.open(path), VirtualClock(), MemoryHot(), MemorySink()
    bus = Bus([sink])

    async def recycle(reason: str, match_ids: object = None) -> None:
        pytest.fail(f"nobody should be asked more often: {reason}")

    settings = load_settings({}, {})
    runtime = Runtime(
        settings=settings,
        clock=clock,
        bus=bus,
        matches=LiveMatches(MemoryStore(), directory.node_id),
        hot=hot,
        ops=open_operations(directory.ops_db, clock),
        browsers=NoBrowsers(),
        dispatcher=Dispatcher(clock=clock, bus=bus, cap=1),
        pages=NoPages(),
    )
    monitoring = SelfMonitoring(
        runtime,
        schedulers={"crex": Site()},
        sinks=ScraperSinks(settings, directory, runtime.ops, clock),
        recycle=recycle,
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
