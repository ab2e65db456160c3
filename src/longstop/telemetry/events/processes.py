"""What happens to our processes: lives, memory, loops, and what the machine lacks."""

from traceback import format_exception
from typing import Self

from longstop.telemetry.events.base import Severity, Telemetry


class ProcessStarted(Telemetry, frozen=True, kw_only=True):
    name = "process.started"
    process: str
    pid: int
    version: str
    #: The process itself, or the supervisor that has started it.
    reported_by: str


class ProcessStopped(Telemetry, frozen=True, kw_only=True):
    name = "process.stopped"
    process: str
    pid: int
    reported_by: str


class ChildDied(Telemetry, frozen=True, kw_only=True):
    """The supervisor saw a child end without being asked to."""

    name = "process.died"
    severity = Severity.ERROR
    process: str
    pid: int
    exit_code: int
    restart_in_seconds: float
    #: What the exit code means, in words.
    reason: str = ""


class ChildRestarted(Telemetry, frozen=True, kw_only=True):
    """The supervisor ended a child in order to start it again, and why."""

    name = "process.restarted"
    severity = Severity.WARN
    process: str
    pid: int
    exit_code: int
    reason: str


class ChildUnresponsive(Telemetry, frozen=True, kw_only=True):
    """A child lives and gives no sign of life: it is started again."""

    name = "process.unresponsive"
    severity = Severity.ERROR
    process: str
    pid: int
    silent_seconds: float


class MemoryHigh(Telemetry, frozen=True, kw_only=True):
    """A child and all that it has started take more than 80 % of the soft limit."""

    name = "memory.high"
    severity = Severity.WARN
    process: str
    rss_bytes: int
    #: `None` where the kernel would not say.
    pss_bytes: int | None
    processes: int
    soft_limit_bytes: int


class MemoryRecovered(Telemetry, frozen=True, kw_only=True):
    """They take less again."""

    name = "memory.recovered"
    process: str
    held_bytes: int


class MemoryExceeded(Telemetry, frozen=True, kw_only=True):
    """A child and all that it has started take more than a limit: it is started again."""

    name = "memory.exceeded"
    severity = Severity.ERROR
    process: str
    #: Which one: `soft` or `hard`.
    limit: str
    limit_bytes: int
    rss_bytes: int
    pss_bytes: int | None
    processes: int


class MemoryInsufficient(Telemetry, frozen=True, kw_only=True):
    """New matches are not taken up, since memory is short; they are asked for again after a while."""

    name = "memory.insufficient"
    severity = Severity.WARN
    source: str
    wanted: int
    available_bytes: int
    needed_bytes: int
    seconds: float


class TaskFailed(Telemetry, frozen=True, kw_only=True):
    """A background task met an error it does not know: a bug, shown with its trace, and the work goes on."""

    name = "task.failed"
    severity = Severity.CRITICAL
    task: str
    error_type: str
    error_message: str
    stack_trace: str

    @classmethod
    def by(cls, error: Exception, *, task: str) -> Self:
        """Return what is told about an error that nobody expected."""
        return cls(
            task=task,
            error_type=type(error).__name__,
            error_message=str(error),
            stack_trace="".join(format_exception(error)),
        )


class TaskEnded(Telemetry, frozen=True, kw_only=True):
    """A background task that never ends has ended: a bug, and it is started again."""

    name = "task.ended"
    severity = Severity.CRITICAL
    task: str


class PollPostponed(Telemetry, frozen=True, kw_only=True):
    """A look or a listing had to be put off, since this machine lacks what it takes."""

    name = "poll.postponed"
    severity = Severity.DEBUG
    resource: str
    subject: str


class OutOfResources(Telemetry, frozen=True, kw_only=True):
    """This machine lacks what the scraper needs; neither sites nor matches are blamed for it."""

    name = "resources.exhausted"
    severity = Severity.ERROR
    resource: str


class ResourcesRecovered(Telemetry, frozen=True, kw_only=True):
    """Nobody had to do without it for a while."""

    name = "resources.recovered"
    resource: str


class LoopStalled(Telemetry, frozen=True, kw_only=True):
    """The event loop did not turn for seconds; the stacks say where it stands."""

    name = "loop.stalled"
    severity = Severity.ERROR
    seconds: float
    #: Of all threads, the loop's own first, with the task that it runs.
    stacks: str


class LoopResumed(Telemetry, frozen=True, kw_only=True):
    """It turns again, after so long."""

    name = "loop.resumed"
    severity = Severity.WARN
    seconds: float


class ClockJumped(Telemetry, frozen=True, kw_only=True):
    """The wall clock was set, or the machine slept; no interval of ours goes by it."""

    name = "clock.jumped"
    severity = Severity.WARN
    #: Below zero when it was set back.
    seconds: float
