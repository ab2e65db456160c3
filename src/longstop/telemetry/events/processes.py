"""Events about our own processes: lifecycle, resources, health, recoveries, storage and alerts."""

from traceback import format_exception
from typing import Self

from longstop.telemetry.events import Severity, Telemetry

# --- lifecycle --------------------------------------------------------------------------------------------------------


class ProcessTelemetry(Telemetry, frozen=True, kw_only=True):
    process: str
    pid: int


class ProcessStarted(ProcessTelemetry, frozen=True, kw_only=True):
    name = "process.started"
    version: str
    #: The process itself, or the supervisor that started it.
    reported_by: str


class ProcessStopped(ProcessTelemetry, frozen=True, kw_only=True):
    name = "process.stopped"
    reported_by: str


class ChildDied(ProcessTelemetry, frozen=True, kw_only=True):
    name = "process.died"
    severity = Severity.ERROR
    exit_code: int
    restart_in_seconds: float
    #: The meaning of the exit code.
    reason: str = ""


class ChildRestarted(ProcessTelemetry, frozen=True, kw_only=True):
    name = "process.restarted"
    severity = Severity.WARN
    exit_code: int
    reason: str


class ChildUnresponsive(ProcessTelemetry, frozen=True, kw_only=True):
    name = "process.unresponsive"
    severity = Severity.ERROR
    silent_seconds: float


class OrphanKilled(Telemetry, frozen=True, kw_only=True):
    name = "orphan.killed"
    severity = Severity.WARN
    pid: int
    program: str
    rss_bytes: int | None


class TaskFailed(Telemetry, frozen=True, kw_only=True):
    """A background task raised an unexpected error: a bug. The task continues."""

    name = "task.failed"
    severity = Severity.CRITICAL
    task: str
    error_type: str
    error_message: str
    stack_trace: str

    @classmethod
    def by(cls, error: Exception, *, task: str) -> Self:
        return cls(
            task=task,
            error_type=type(error).__name__,
            error_message=str(error),
            stack_trace="".join(format_exception(error)),
        )


class TaskEnded(Telemetry, frozen=True, kw_only=True):
    name = "task.ended"
    severity = Severity.CRITICAL
    task: str


class LoopStalled(Telemetry, frozen=True, kw_only=True):
    name = "loop.stalled"
    severity = Severity.ERROR
    seconds: float
    #: Stacks of all threads, the event loop's first, with the running task.
    stacks: str


class LoopResumed(Telemetry, frozen=True, kw_only=True):
    name = "loop.resumed"
    severity = Severity.WARN
    seconds: float


class ClockJumped(Telemetry, frozen=True, kw_only=True):
    """The wall clock was set, or the machine was suspended. Intervals use monotonic time and are unaffected."""

    name = "clock.jumped"
    severity = Severity.WARN
    #: Negative if the clock was set back.
    seconds: float


class ConnectionsRefused(Telemetry, frozen=True, kw_only=True):
    """The API refused connections since the last such event; at most one event a minute."""

    name = "connections.refused"
    severity = Severity.WARN
    refused: int
    reason: str
    #: How many are open.
    connections: int


# --- memory and other resources ---------------------------------------------------------------------------------------


class MemoryHigh(Telemetry, frozen=True, kw_only=True):
    name = "memory.high"
    severity = Severity.WARN
    process: str
    rss_bytes: int
    #: `None` if the kernel does not report it.
    pss_bytes: int | None
    processes: int
    soft_limit_bytes: int


class MemoryRecovered(Telemetry, frozen=True, kw_only=True):
    name = "memory.recovered"
    process: str
    held_bytes: int


class MemoryExceeded(Telemetry, frozen=True, kw_only=True):
    name = "memory.exceeded"
    severity = Severity.ERROR
    process: str
    #: `soft` or `hard`.
    limit: str
    limit_bytes: int
    rss_bytes: int
    pss_bytes: int | None
    processes: int


class MemoryInsufficient(Telemetry, frozen=True, kw_only=True):
    name = "memory.insufficient"
    severity = Severity.WARN
    source: str
    wanted: int
    available_bytes: int
    needed_bytes: int
    seconds: float


class PollPostponed(Telemetry, frozen=True, kw_only=True):
    """A poll, a listing or a background task was postponed because the machine is out of a resource."""

    name = "poll.postponed"
    severity = Severity.DEBUG
    resource: str
    subject: str


class OutOfResources(Telemetry, frozen=True, kw_only=True):
    """The machine ran out of a resource. Breakers and matches do not count it."""

    name = "resources.exhausted"
    severity = Severity.ERROR
    resource: str


class ResourcesRecovered(Telemetry, frozen=True, kw_only=True):
    """Nothing was postponed for a while."""

    name = "resources.recovered"
    resource: str


# --- health and recoveries --------------------------------------------------------------------------------------------


class HealthRecovered(Telemetry, frozen=True, kw_only=True):
    name = "health.recovered"
    before: str


class HealthDegraded(Telemetry, frozen=True, kw_only=True):
    """Data of matches in play is too old, or polling of some is paused."""

    name = "health.degraded"
    severity = Severity.WARN
    before: str
    reason: str


class HealthFailing(Telemetry, frozen=True, kw_only=True):
    """A match in play was not polled successfully for two minutes, or none was for ninety seconds."""

    name = "health.failing"
    severity = Severity.CRITICAL
    before: str
    reason: str


class HealthRecovering(Telemetry, frozen=True, kw_only=True):
    """Connections and browsers were restarted; the first successful poll ends this state."""

    name = "health.recovering"
    severity = Severity.WARN
    before: str
    reason: str


class RecoveryStarted(Telemetry, frozen=True, kw_only=True):
    name = "recovery.started"
    severity = Severity.WARN
    id: str
    kind: str
    trigger: str
    subject: str


class RecoverySucceeded(Telemetry, frozen=True, kw_only=True):
    name = "recovery.succeeded"
    id: str
    kind: str
    subject: str
    observed: str
    duration_seconds: float


class RecoveryFailed(Telemetry, frozen=True, kw_only=True):
    name = "recovery.failed"
    severity = Severity.ERROR
    id: str
    kind: str
    subject: str
    observed: str
    duration_seconds: float


# --- storage, commands, metrics and alerts ----------------------------------------------------------------------------


class StoreFailed(Telemetry, frozen=True, kw_only=True):
    name = "store.failed"
    severity = Severity.ERROR
    ref: str
    error_type: str
    error_message: str


class StoreUnusable(Telemetry, frozen=True, kw_only=True):
    """Nothing can be stored: the disk is full, or the file is not the one that was opened."""

    name = "store.unusable"
    severity = Severity.CRITICAL
    error_message: str


class StoreRecovered(Telemetry, frozen=True, kw_only=True):
    name = "store.recovered"


class StoreLogLeft(Telemetry, frozen=True, kw_only=True):
    """A database is not complete without its write-ahead log, because another program still reads it."""

    name = "store.log_left"
    severity = Severity.WARN
    file: str
    reason: str


class OrderUnmatched(Telemetry, frozen=True, kw_only=True):
    """An order of an operator is for a source that is not enabled, so that it has no effect now."""

    name = "order.unmatched"
    severity = Severity.WARN
    kind: str
    subject: str


class HotViewRebuilt(Telemetry, frozen=True, kw_only=True):
    """The hot view was damaged or lost. It was filled again from memory."""

    name = "hot_view.rebuilt"
    severity = Severity.WARN
    error_message: str
    #: Where the damaged file is, in the data directory; empty if there was none.
    moved_to: str


class HotViewFailed(Telemetry, frozen=True, kw_only=True):
    """The hot view could not be written. No data is lost, but the ages shown by the API grow."""

    name = "hot_view.failed"
    severity = Severity.ERROR
    error_message: str


class RecordsFailed(Telemetry, frozen=True, kw_only=True):
    name = "records.failed"
    severity = Severity.ERROR
    #: One of `errors`, `match logs`, `recoveries`, `health log`, `commands`, `pauses of requests`.
    records: str
    error_message: str


class ReloadFailed(Telemetry, frozen=True, kw_only=True):
    name = "reload.failed"
    severity = Severity.WARN
    source: str
    reason: str


class CommandAnswered(Telemetry, frozen=True, kw_only=True):
    name = "command.answered"
    id: int
    kind: str
    asked_by: str
    state: str
    answer: str
    seconds: float


class ScreenshotSaved(Telemetry, frozen=True, kw_only=True):
    name = "screenshot.saved"
    source: str
    #: Its path below the data directory.
    page: str


class MetricsServed(Telemetry, frozen=True, kw_only=True):
    name = "metrics.served"
    host: str
    port: int


class MetricsUnavailable(Telemetry, frozen=True, kw_only=True):
    name = "metrics.unavailable"
    severity = Severity.WARN
    host: str
    port: int
    reason: str


class AlertUndelivered(Telemetry, frozen=True, kw_only=True):
    name = "alert.undelivered"
    severity = Severity.ERROR
    alert: str
    attempts: int
    reason: str
