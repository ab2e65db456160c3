"""The scraper's care for itself: its beat, its grade, its numbers, and what is done when it fails."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from msgspec.structs import replace

from longstop.app.common import OwnMemory
from longstop.app.runtime import Runtime
from longstop.app.sinks import ScraperSinks
from longstop.clock import Moment
from longstop.errors import RestartNeeded
from longstop.fetching.browser.pool import BrowserPool
from longstop.model.match import MonitoringRecord
from longstop.model.resources import MatchCost
from longstop.storage.base import NodeBeat
from longstop.supervision.event_loop import ClockJumpWatch, LoopWatch
from longstop.supervision.health import Grade
from longstop.supervision.health_log import HealthLog
from longstop.supervision.recovery import HealthMonitor, Recycle
from longstop.supervision.resources import MatchPage, ResourceMeter, match_costs
from longstop.telemetry.bus import failure_of
from longstop.watching.scheduler import Scheduler

#: How often a scraper says that it is alive; the API calls it down after 15 s of silence.
BEAT_SECONDS = 1.0
#: How often the matches are looked through, but for the time after a recycle: then every second.
LOOK_SECONDS = 5.0
MEASURE_SECONDS = 5.0
STOPPED = "it was asked to stop, and has"
#: Of those who are left alone, so many are told in each beat.
MAX_BREAKERS = 50


def recycling(schedulers: Mapping[str, Scheduler], browsers: BrowserPool) -> Recycle:
    """Return what makes afresh all that matches are asked with: browsers, connections, watches."""

    async def recycle(reason: str, match_ids: Collection[int] | None = None) -> None:
        for source, scheduler in schedulers.items():
            if await scheduler.recycle(match_ids):
                browsers.recycle(reason, source)

    return recycle


class SelfMonitoring:
    """Everything of a scraper that looks after the scraper."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        schedulers: Mapping[str, Scheduler],
        sinks: ScraperSinks,
        recycle: Recycle,
        is_supervised: bool,
    ) -> None:
        bus, clock = runtime.bus, runtime.clock
        self._is_supervised = is_supervised
        self._node = runtime.node
        self._schedulers = schedulers
        self._browsers = runtime.browsers
        self._dispatcher = runtime.dispatcher
        self._sinks = sinks
        self._hot = runtime.hot
        self._bus = bus
        self._clock = clock
        self._started = Moment.of(clock)
        self._clock_jumps = ClockJumpWatch(clock, bus)
        self._own_memory = OwnMemory()
        self._meter = ResourceMeter(clock.monotonic)
        self._costs: dict[int, MatchCost] = {}
        self._log = HealthLog(runtime.ops.health_log, clock=clock)
        self.lag = LoopWatch(bus, clock.monotonic)
        self._monitor = HealthMonitor(
            self._node,
            recycle=recycle,
            recoveries=sinks.recoveries,
            pids=self._pids,
            bus=bus,
            clock=clock,
            stall_after=runtime.settings.supervision.stalled_after,
            exhausted=sinks.exhaustion.now,
        )

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Write down what is seen and done, and measure, meanwhile."""
        ending = self._meter.start(MEASURE_SECONDS)
        try:
            async with self._log.writing(self._bus):
                yield
            self._hot.beat(self._last_beat())
        finally:
            ending.set()

    async def run(self) -> None:
        """Beat until cancelled; raise `RestartNeeded` when only a new process can help."""
        look_at = self._clock.monotonic()
        while True:
            is_time = self._clock.monotonic() >= look_at or self._monitor.is_recovering
            if is_time:
                look_at = self._clock.monotonic() + LOOK_SECONDS
            self._turn(is_time=is_time)
            await asyncio.sleep(BEAT_SECONDS)

    def _turn(self, *, is_time: bool) -> None:
        self._try(self._give_a_sign)
        if is_time:
            self._try(self._take_note)
            self._try(self._grade)

    def _try(self, part: Callable[[], None]) -> None:
        """Do one part of the care. A bug in it must not end the watching, nor leave an old grade standing."""
        try:
            part()
        except RestartNeeded:
            raise
        except Exception as error:
            self._bus.emit(failure_of(error, "care"))

    def _give_a_sign(self) -> None:
        self._hot.beat(self.beat())
        self._sinks.recovery_observer.check()
        self._clock_jumps.check()

    def _take_note(self) -> None:
        self._costs = self._measured_costs()
        self._log.note(self.beat(), self._records())

    def _grade(self) -> None:
        self._monitor.evaluate(self._records())

    def beat(self) -> NodeBeat:
        now, state, rates = Moment.of(self._clock), self._monitor.state, self._sinks.rates.rates()
        # A site that somebody has paused is not asked for its listing: nobody misses it.
        awake = {name: each for name, each in self._schedulers.items() if not each.is_paused}
        return NodeBeat(
            node=self._node,
            pid=os.getpid(),
            started_at=self._started.wall,
            beat_at=now.wall,
            beat_monotonic=now.monotonic,
            uptime_seconds=round(now.monotonic - self._started.monotonic, 3),
            rss_bytes=self._own_memory.rss_bytes(),
            errors_last_minute=rates.errors_last_minute,
            listed_at={name: each.listed_at for name, each in awake.items()},
            unlisted_seconds={name: round(each.unlisted_seconds, 3) for name, each in awake.items()},
            grade=state.grade.value,
            graded_at=self._monitor.graded_at,
            grade_reason=state.reason,
            loop_lag_seconds=self.lag.lag_seconds,
            resources=self._meter.newest,
            rates=rates,
            waiting=len(self._dispatcher.waiting),
            looking=self._dispatcher.running,
            breakers=self._sinks.breakers.notes()[:MAX_BREAKERS],
            paused_sources=tuple(name for name, each in self._schedulers.items() if each.is_paused),
            costs=self._costs,
        )

    def _last_beat(self) -> NodeBeat:
        """Return what a scraper says that was asked to stop, so that nobody takes it for well until it is missed.

        A supervisor is going to start the next one, or closes the beat itself: this is not the end of everything.
        """
        beat = replace(self.beat(), grade=Grade.DEGRADED.value, grade_reason=STOPPED, graded_at=self._clock.now())
        return replace(beat, is_over=not self._is_supervised)

    def _measured_costs(self) -> dict[int, MatchCost]:
        matches = [
            MatchPage(match_id=record.match_id, source=source, page=scheduler.client.page_of(record.ref.source_id))
            for source, scheduler in self._schedulers.items()
            for record in scheduler.records
        ]
        return match_costs(matches, self._browsers.stats(), self._meter.newest)

    def _records(self) -> list[MonitoringRecord]:
        return [record for scheduler in self._schedulers.values() for record in scheduler.records]

    def _pids(self) -> Collection[int]:
        measured = self._meter.newest
        return measured.pids if measured else (os.getpid(),)
