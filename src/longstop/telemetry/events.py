"""Telemetry events: frozen facts with a name that logs, metrics and tests share."""

from enum import StrEnum
from traceback import format_exception
from typing import ClassVar, Self

from msgspec import Struct


class Severity(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class Telemetry(Struct, frozen=True, kw_only=True):
    """The base: a fact with a name and a severity."""

    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.INFO


class ProcessStarted(Telemetry, frozen=True, kw_only=True):
    name = "process.started"
    process: str
    pid: int
    version: str


class ProcessStopped(Telemetry, frozen=True, kw_only=True):
    name = "process.stopped"
    process: str
    pid: int


class ChildDied(Telemetry, frozen=True, kw_only=True):
    """The supervisor saw a child end without being asked to."""

    name = "process.died"
    severity = Severity.ERROR
    process: str
    pid: int
    exit_code: int
    restart_in_seconds: float


class MatchDiscovered(Telemetry, frozen=True, kw_only=True):
    name = "match.discovered"
    match_id: int
    ref: str


class MatchMoved(Telemetry, frozen=True, kw_only=True):
    name = "match.moved"
    match_id: int
    ref: str
    before: str
    after: str


class MatchClaimed(Telemetry, frozen=True, kw_only=True):
    name = "match.claimed"
    match_id: int
    ref: str
    epoch: int


class MatchInSync(Telemetry, frozen=True, kw_only=True):
    """After a start or a gap, what we hold agrees with the source's whole event list again."""

    name = "match.in_sync"
    match_id: int
    ref: str
    events: int


class ListingRead(Telemetry, frozen=True, kw_only=True):
    name = "listing.read"
    severity = Severity.DEBUG
    source: str
    matches: int
    changed: int
    #: Entries of the list that could not be read.
    unreadable: int


class ListingFailed(Telemetry, frozen=True, kw_only=True):
    """The listing brought nothing: not an empty listing, and no word on any match."""

    name = "listing.failed"
    severity = Severity.WARN
    source: str
    error_type: str
    error_message: str


class UpdateStored(Telemetry, frozen=True, kw_only=True):
    name = "update.stored"
    match_id: int
    ref: str
    inserted: int
    updated: int
    voided: int
    seq: int
    #: `None` when the payload was the one already stored.
    latency_ms: int | None


class PollSucceeded(Telemetry, frozen=True, kw_only=True):
    """One look at one match was good, whether or not it brought anything new."""

    name = "poll.succeeded"
    severity = Severity.DEBUG
    match_id: int
    ref: str
    seconds: float


class PollFailed(Telemetry, frozen=True, kw_only=True):
    """One look at one match failed; the next one goes on from the same base."""

    name = "poll.failed"
    severity = Severity.WARN
    match_id: int
    ref: str
    error_type: str
    error_message: str


class FindingOpened(Telemetry, frozen=True, kw_only=True):
    name = "finding.opened"
    severity = Severity.WARN
    match_id: int
    ref: str
    kind: str
    place: str
    detail: str


class FindingClosed(Telemetry, frozen=True, kw_only=True):
    name = "finding.closed"
    match_id: int
    ref: str
    kind: str
    place: str


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


class ResourceFailed(Telemetry, frozen=True, kw_only=True):
    """A page that is good to have, but not needed for the poll, could not be read."""

    name = "resource.failed"
    severity = Severity.WARN
    match_id: int
    ref: str
    resource: str
    error_type: str
    error_message: str


class MetricsServed(Telemetry, frozen=True, kw_only=True):
    name = "metrics.served"
    host: str
    port: int


class MetricsUnserved(Telemetry, frozen=True, kw_only=True):
    """The metrics' port cannot be had; the watching goes on without it, and the port is asked for again later."""

    name = "metrics.unserved"
    severity = Severity.WARN
    host: str
    port: int
    reason: str


class HotViewFailed(Telemetry, frozen=True, kw_only=True):
    """The live view could not be written; nothing is lost, but the ages that the API shows grow."""

    name = "hot.failed"
    severity = Severity.ERROR
    error_message: str


class StoreFailed(Telemetry, frozen=True, kw_only=True):
    """The store did not take or give a match; the others go on, and this one is tried again."""

    name = "store.failed"
    severity = Severity.ERROR
    ref: str
    error_type: str
    error_message: str
