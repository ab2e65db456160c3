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
    told_by: str


class ProcessStopped(Telemetry, frozen=True, kw_only=True):
    name = "process.stopped"
    process: str
    pid: int
    told_by: str


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


class ChildRenewed(Telemetry, frozen=True, kw_only=True):
    """The supervisor ended a child in order to start it again, and why."""

    name = "process.renewed"
    severity = Severity.WARN
    process: str
    pid: int
    exit_code: int
    reason: str


class ChildStandsStill(Telemetry, frozen=True, kw_only=True):
    """A child lives and gives no sign of life: it is started again."""

    name = "process.stands_still"
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


class MemoryEased(Telemetry, frozen=True, kw_only=True):
    """They take less again."""

    name = "memory.eased"
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


class RoomRefused(Telemetry, frozen=True, kw_only=True):
    """New matches are not taken up, since memory is short; they are asked for again after a while."""

    name = "room.refused"
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


class MachineLacked(Telemetry, frozen=True, kw_only=True):
    """A look or a listing had to be put off, since this machine lacks what it takes."""

    name = "machine.lacked"
    severity = Severity.DEBUG
    resource: str
    subject: str


class MachineShort(Telemetry, frozen=True, kw_only=True):
    """This machine lacks what the scraper needs; neither sites nor matches are blamed for it."""

    name = "machine.short"
    severity = Severity.ERROR
    resource: str


class MachineEased(Telemetry, frozen=True, kw_only=True):
    """Nobody had to do without it for a while."""

    name = "machine.eased"
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


class ClockLeapt(Telemetry, frozen=True, kw_only=True):
    """The wall clock was set, or the machine slept; no interval of ours goes by it."""

    name = "clock.leapt"
    severity = Severity.WARN
    #: Below zero when it was set back.
    seconds: float
