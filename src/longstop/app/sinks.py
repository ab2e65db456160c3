"""The sinks of a process's bus: the log of every process, and the other sinks of the scraper."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from longstop.clock import Clock
from longstop.settings import Settings
from longstop.storage.base import Operations
from longstop.storage.directory import DataDirectory
from longstop.supervision.recovery_audit import RecoveryAudit, RecoveryObserver
from longstop.telemetry.bus import Bus, Sink
from longstop.telemetry.errors_table_and_match_logs import ErrorsTable, MatchLogs
from longstop.telemetry.health_sinks import DamagedMatches, ExhaustionSink, OpenBreakers, RateSink
from longstop.telemetry.log import LogSink
from longstop.telemetry.metrics import Metrics
from longstop.telemetry.webhook import WebhookSink


class ScraperSinks:
    """Created before the bus; they write and send while `running`."""

    def __init__(self, settings: Settings, directory: DataDirectory, ops: Operations, clock: Clock) -> None:
        node = directory.node_id
        self.rates = RateSink(clock)
        self.breakers = OpenBreakers(clock)
        self.exhaustion = ExhaustionSink(clock)
        self.damaged = DamagedMatches()
        self.metrics = Metrics()
        self.recoveries = RecoveryAudit(ops.audit, process="scraper", clock=clock)
        self.recovery_observer = RecoveryObserver(self.recoveries)
        self._table = ErrorsTable(ops.errors, node=node, clock=clock)
        self._logs = MatchLogs(directory.storage / "match_logs", clock=clock)
        self._webhook = make_webhook(settings, node, clock)
        health: list[Sink] = [self.rates, self.breakers, self.exhaustion, self.damaged, self.recovery_observer]
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


def make_bus(process: str, settings: Settings, clock: Clock, *more: Sink) -> Bus:
    """Return a bus whose events go to stderr as JSON lines, and to `more`."""
    log = LogSink(process=process, level=settings.scraper.monitoring.logging.level, clock=clock)
    return Bus([log, *more])


def make_webhook(settings: Settings, node: str, clock: Clock) -> WebhookSink | None:
    """Return the sink that sends alerts; `None` when no webhook is configured."""
    hook = settings.scraper.monitoring.webhook
    return WebhookSink(hook.url, hook.secret.get_secret_value(), node=node, clock=clock) if hook.url else None
