"""The sinks of the scraper's bus, apart from its log."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from longstop.clock import Clock
from longstop.settings import Settings
from longstop.storage.base import Operations
from longstop.storage.directory import DataDirectory
from longstop.supervision.recovery_audit import RecoveryAudit, RecoveryObserver
from longstop.telemetry.bus import Bus, Sink
from longstop.telemetry.disk_sinks import ErrorsTable, MatchLogs
from longstop.telemetry.health_sinks import ExhaustionSink, OpenBreakers, RateSink
from longstop.telemetry.metrics_sink import Metrics
from longstop.telemetry.webhook import WebhookSink


class ScraperSinks:
    """Created before the bus; they write and send while `running`."""

    def __init__(self, settings: Settings, directory: DataDirectory, ops: Operations, clock: Clock) -> None:
        monitoring, node = settings.scraper.monitoring, directory.node_id
        self.ops = ops
        self.rates = RateSink(clock)
        self.breakers = OpenBreakers(clock)
        self.exhaustion = ExhaustionSink(clock)
        self.metrics = Metrics()
        self.recoveries = RecoveryAudit(ops.audit, process="scraper", clock=clock)
        self.recovery_observer = RecoveryObserver(self.recoveries, clock)
        self._table = ErrorsTable(ops.errors, node=node, clock=clock)
        self._logs = MatchLogs(directory.storage / "match_logs", clock=clock)
        self._webhook = (
            WebhookSink(monitoring.webhook.url, monitoring.webhook.secret.get_secret_value(), node=node, clock=clock)
            if monitoring.webhook.url
            else None
        )
        health = (self.rates, self.breakers, self.exhaustion)
        self._counters = (*health, self.metrics) if monitoring.prometheus.enabled else health

    @property
    def all(self) -> tuple[Sink, ...]:
        return (
            *self._counters,
            self.recovery_observer,
            self._table,
            self._logs,
            *([self._webhook] if self._webhook else []),
        )

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
