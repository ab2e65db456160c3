"""Self-monitoring of the scraper: heartbeat, health grade, measurements, and recovery."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress

import psutil
from msgspec.structs import replace

from longstop.app.scraper_parts import Runtime
from longstop.app.sinks import ScraperSinks
from longstop.clock import Moment
from longstop.errors import ResourcesExhausted, RestartNeeded, StorageError, StoreDamaged
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import MatchCost, NodeBeat
from longstop.supervision.event_loop_and_clock_watch import ClockJumpWatch, LoopWatch
from longstop.supervision.health_grade_and_recovery import Grade
from longstop.supervision.health_log import HealthLog
from longstop.supervision.recovery_loop import HealthMonitor
from longstop.supervision.resource_use_and_match_costs import ResourceMeter, match_costs
from longstop.telemetry.bus import failure_of
from longstop.telemetry.events.processes import StoreRecovered, StoreUnusable
from longstop.telemetry.metrics import ScraperState
from longstop.watching.source_scheduler import Scheduler

#: The interval of heartbeats; the API reports a scraper as down after 15 s without one.
BEAT_SECONDS = 1.0
#: How often health is evaluated; during a recovery with every heartbeat.
EVALUATE_SECONDS = 5.0
MEASURE_SECONDS = 5.0
STOPPED = "stopped on request"
#: A store that does not answer within this time hangs.
STORE_TIMEOUT_SECONDS = 10.0
#: A heartbeat lists at most this many open breakers.
MAX_BREAKERS = 50


class SelfMonitoring:
    """Sends heartbeats, evaluates health, and starts recoveries."""

    def __init__(
        self, runtime: Runtime, *, schedulers: Mapping[str, Scheduler], sinks: ScraperSinks, is_supervised: bool
    ) -> None:
        bus, clock = runtime.bus, runtime.clock
        self._runtime = runtime
        self._is_supervised = is_supervised
        self._schedulers = schedulers
        self._sinks = sinks
        self._clock = clock
        self._started = Moment.of(clock)
        self._clock_jumps = ClockJumpWatch(clock, bus)
        self._process = psutil.Process()
        #: The memory of this process; the last value while the machine is out of file descriptors.
        self._rss_bytes = 0
        self._meter = ResourceMeter(clock.monotonic)
        self._costs: dict[int, MatchCost] = {}
        #: Why nothing can be stored; `None` while it can.
        self._store_error: StorageError | None = None
        self._log = HealthLog(runtime.ops.health_log, clock=clock)
        self.lag = LoopWatch(bus, clock.monotonic)
        self._monitor = HealthMonitor(
            self._runtime.node,
            recycle=self._recycle,
            recoveries=sinks.recoveries,
            pids=self._pids,
            bus=bus,
            clock=clock,
            stall_after=runtime.settings.supervision.stalled_after,
            exhausted=sinks.exhaustion.now,
        )

    @asynccontextmanager
    async def active(self) -> AsyncIterator[None]:
        """Measure resources and write the health log meanwhile; send a final heartbeat in the end."""
        stop = self._meter.start(MEASURE_SECONDS)
        try:
            async with self._log.writing(self._runtime.bus):
                yield
            self._runtime.hot.beat(self._last_beat())
        finally:
            stop.set()

    async def run(self) -> None:
        """Send heartbeats until cancelled; raise `RestartNeeded` when only a new process can help."""
        evaluate_at = self._clock.monotonic()
        while True:
            self._try(self._send_heartbeat)
            if self._clock.monotonic() >= evaluate_at or self._monitor.is_recovering:
                evaluate_at = self._clock.monotonic() + EVALUATE_SECONDS
                self._try(self._measure)
                self._try(lambda: self._monitor.evaluate(self._records()))
            await asyncio.sleep(BEAT_SECONDS)

    async def watch_store(self) -> None:
        """Check whether the store can be written, also while there is nothing to store."""
        while True:
            before, self._store_error = self._store_error, await self._checked_store()
            if self._store_error is not None and (before is None or str(before) != str(self._store_error)):
                self._runtime.bus.emit(StoreUnusable(error_message=str(self._store_error)))
            elif self._store_error is None and before is not None:
                self._runtime.bus.emit(StoreRecovered())
            await asyncio.sleep(BEAT_SECONDS)

    async def _checked_store(self) -> StorageError | None:
        try:
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
                await self._runtime.matches.store.check()
        except TimeoutError:
            return StorageError(f"matches.db: no answer within {STORE_TIMEOUT_SECONDS:.0f} s")
        except ResourcesExhausted:
            return None  # it is reported by itself, and the file is not at fault
        except StorageError as error:
            return error
        return None

    def _try(self, step: Callable[[], None]) -> None:
        """Run one step. A bug in it must stop neither polling nor the other steps."""
        try:
            step()
        except RestartNeeded:
            raise
        except Exception as error:
            self._runtime.bus.emit(failure_of(error, "self-monitoring"))

    def _send_heartbeat(self) -> None:
        self._runtime.hot.beat(self.beat())
        self._sinks.recovery_observer.check()
        self._clock_jumps.check()

    def _measure(self) -> None:
        records = self._records()
        sources = {record.match_id: record.ref.source for record in records}
        self._costs = match_costs(sources, self._runtime.browsers.stats(), self._meter.newest)
        self._log.note(self.beat(), records)

    def beat(self) -> NodeBeat:
        now, state, rates = Moment.of(self._clock), self._monitor.state, self._sinks.rates.rates()
        # The listing of a paused source is not missing.
        active = {name: each for name, each in self._schedulers.items() if not each.is_paused}
        return NodeBeat(
            node=self._runtime.node,
            pid=os.getpid(),
            started_at=self._started.wall,
            beat_at=now.wall,
            beat_monotonic=now.monotonic,
            uptime_seconds=round(now.monotonic - self._started.monotonic, 3),
            rss_bytes=self._own_rss_bytes(),
            errors_last_minute=rates.errors_last_minute,
            listed_at={name: each.listings.read_at for name, each in active.items()},
            unlisted_seconds={name: round(each.listings.unread_seconds, 3) for name, each in active.items()},
            grade=state.grade.value,
            graded_at=self._monitor.graded_at,
            grade_reason=state.reason,
            loop_lag_seconds=self.lag.lag_seconds,
            resources=self._meter.newest,
            rates=rates,
            waiting=len(self._runtime.dispatcher.waiting),
            looking=self._runtime.dispatcher.running,
            breakers=self._sinks.breakers.notes()[:MAX_BREAKERS],
            paused_sources=tuple(name for name, each in self._schedulers.items() if each.is_paused),
            costs=self._costs,
            store_problem=self._store_error.cause or "the store cannot be written" if self._store_error else "",
            is_store_lost=isinstance(self._store_error, StoreDamaged),
            damaged_matches=self._sinks.damaged.refs(),
        )

    def state(self) -> ScraperState:
        """Return what the metrics show. Call it on the event loop."""
        browsers = self._runtime.browsers
        return ScraperState(
            node=self._runtime.node,
            records=self._records(),
            waiting=[request.priority for request in self._runtime.dispatcher.waiting],
            findings=[finding.kind for scheduler in self._schedulers.values() for finding in scheduler.findings],
            rss_bytes=self._own_rss_bytes(),
            loop_lag_seconds=self.lag.lag_seconds,
            browsers=browsers.stats(),
            proxy_bytes=browsers.meter.used_bytes if browsers.meter else None,
        )

    def _last_beat(self) -> NodeBeat:
        """Return the heartbeat of a scraper that stops, so that it does not appear healthy until it is missed.

        A supervisor either restarts the scraper or marks the heartbeat as final itself.
        """
        beat = replace(self.beat(), grade=Grade.DEGRADED.value, grade_reason=STOPPED, graded_at=self._clock.now())
        return replace(beat, is_over=not self._is_supervised)

    def _own_rss_bytes(self) -> int:
        with suppress(OSError, psutil.Error):
            self._rss_bytes = self._process.memory_info().rss
        return self._rss_bytes

    def _records(self) -> list[MonitoringRecord]:
        return [record for scheduler in self._schedulers.values() for record in scheduler.records]

    async def _recycle(self, reason: str, match_ids: Collection[int]) -> None:
        """Restart the watches of these matches, and the connections and browsers of their sources."""
        for source, scheduler in self._schedulers.items():
            if await scheduler.recycle(match_ids):
                self._runtime.browsers.recycle(reason, source)

    def _pids(self) -> Collection[int]:
        measured = self._meter.newest
        return measured.pids if measured else (os.getpid(),)
