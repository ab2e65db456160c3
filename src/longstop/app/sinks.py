"""The sinks of the scraper's bus, apart from its log."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from longstop.app.process_lifetime import make_webhook
from longstop.clock import Clock
from longstop.settings import Settings
from longstop.storage.base import Operations
from longstop.storage.directory import DataDirectory
from longstop.supervision.recovery_audit import RecoveryAudit, RecoveryObserver
from longstop.telemetry.bus import Bus, Sink
from longstop.telemetry.disk_sinks import ErrorsTable, MatchLogs
from longstop.telemetry.health_sinks import ExhaustionSink, OpenBreakers, RateSink
from longstop.telemetry.metrics import Metrics


class ScraperSinks:
    """Created before the bus; they write and send while `running`."""

    def __init__(self, settings: Settings, directory: DataDirectory, ops: Operations, clock: Clock) -> None:
        node = directory.node_id
        self.rates = RateSink(clock)
        self.breakers = OpenBreakers(clock)
        self.exhaustion = ExhaustionSink(clock)
        self.metrics = Metrics()
        self.recoveries = RecoveryAudit(ops.audit, process="scraper", clock=clock)
        self.recovery_observer = RecoveryObserver(self.recoveries)
        self._table = ErrorsTable(ops.errors, node=node, clock=clock)
        self._logs = MatchLogs(directory.storage / "match_logs", clock=clock)
        self._webhook = make_webhook(settings, node, clock)
        health: list[Sink] = [self.rates, self.breakers, self.exhaustion, self.recovery_observer]
        self.all = [*health, self._table, self._logs]
        if settings.scraper.monitoring.prometheus.enabled:
            self.all.append(self.metrics)
        if self._webhook is not None:
            self.all.append(self._webhook)

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        """Write and send events; flush at the end."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._table.writing(bus))
            await stack.enter_async_context(self._logs.writing(bus))
            await stack.enter_async_context(self.recoveries.writing(bus))
            if self._webhook is not None:
                await stack.enter_async_context(self._webhook.delivering(bus))
            yield
