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
    #: Where the page that could not be read is kept, below the data directory.
    page: str | None = None


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
    #: The request that failed, without its query; empty when no single one did.
    request: str = ""
    #: How far the attempt had come, and how it ended.
    reached: str = ""
    outcome: str = ""
    #: How often the failing request was tried before.
    retries: int = 0
    #: Where the page that could not be read is kept, below the data directory.
    page: str | None = None


class RequestRetried(Telemetry, frozen=True, kw_only=True):
    """A request failed and is going to be sent again."""

    name = "request.retried"
    severity = Severity.DEBUG
    source: str
    request: str
    attempt: int
    error_type: str
    error_message: str
    wait_seconds: float


class BreakerOpened(Telemetry, frozen=True, kw_only=True):
    """Something fails so often that it is left alone for a while."""

    name = "breaker.opened"
    severity = Severity.WARN
    #: What the breaker guards: `target`, `match` or `source`.
    scope: str
    #: Which one: a host, a match or a source.
    subject: str
    reason: str
    seconds: float
    match_id: int | None = None


class BreakerProbing(Telemetry, frozen=True, kw_only=True):
    """The rest is over, or a canary came through; a few are let in to try."""

    name = "breaker.probing"
    scope: str
    subject: str
    match_id: int | None = None


class BreakerClosed(Telemetry, frozen=True, kw_only=True):
    """All is well again."""

    name = "breaker.closed"
    scope: str
    subject: str
    #: How many were turned away while it was open.
    rejected: int
    match_id: int | None = None


class TimeoutsChanged(Telemetry, frozen=True, kw_only=True):
    """A site has become slower or faster, and is given more or less time."""

    name = "timeouts.changed"
    source: str
    #: The mean over the last ten requests.
    mean_seconds: float
    fetch_seconds: float
    page_seconds: float
    navigation_seconds: float
    selector_seconds: float


class PaceChanged(Telemetry, frozen=True, kw_only=True):
    """A match is looked at more or less often than before."""

    name = "pace.changed"
    match_id: int
    ref: str
    #: Why: `baseline`, `busy`, `break`, `errors`, `important`, `imminent`, `upcoming` or `completed`.
    reason: str
    interval_seconds: float


class ErrorRateHigh(Telemetry, frozen=True, kw_only=True):
    """A match has had more errors within a minute than are good for anybody."""

    name = "errors.rate_high"
    severity = Severity.ERROR
    match_id: int
    ref: str
    errors: int
    #: How many of each type.
    types: dict[str, int]


class MatchStale(Telemetry, frozen=True, kw_only=True):
    """A match in play has not been read for too long."""

    name = "match.stale"
    severity = Severity.WARN
    match_id: int
    ref: str
    age_seconds: float
    last_update: str | None


class WatchRestarted(Telemetry, frozen=True, kw_only=True):
    """The watch of a match was ended and begun anew from its durable base."""

    name = "watch.restarted"
    severity = Severity.WARN
    match_id: int
    ref: str
    #: Why: `stale`, `errors`, `lifetime`, `cool_down`, `asked` or `recycled`.
    reason: str
    #: How long the watch had lasted.
    age_seconds: float
    epoch: int


class FeedFrozen(Telemetry, frozen=True, kw_only=True):
    """A page shows the same again and again while another signal says that play goes on."""

    name = "feed.frozen"
    severity = Severity.WARN
    match_id: int
    ref: str
    #: What stands still, and what says so: `match` by `list`, or `list` by `match`.
    frozen: str
    witness: str
    seconds: float


class FeedThawed(Telemetry, frozen=True, kw_only=True):
    name = "feed.thawed"
    match_id: int
    ref: str
    seconds: float


class SourceChallenges(Telemetry, frozen=True, kw_only=True):
    """A site answers with pages that want proof of a person: it is left alone, and somebody has to look."""

    name = "source.challenges"
    severity = Severity.ERROR
    source: str
    resource: str
    #: Where the page is kept, below the data directory; `None` when it could not be.
    page: str | None


class SourceAnswers(Telemetry, frozen=True, kw_only=True):
    """A site that wanted proof of a person gives data again."""

    name = "source.answers"
    source: str
    challenges: int


class SourceRests(Telemetry, frozen=True, kw_only=True):
    """A site has asked to be left alone, and is."""

    name = "source.rests"
    severity = Severity.WARN
    source: str
    seconds: float
    reason: str


class LayoutBroken(Telemetry, frozen=True, kw_only=True):
    """A site's pages could not be read many times in a row: they have changed, and somebody has to look."""

    name = "layout.broken"
    severity = Severity.CRITICAL
    source: str
    resource: str
    failures: int
    error_message: str
    #: Where the page is kept, below the data directory; `None` when it could not be.
    page: str | None
    retry_in_seconds: float


class ReloadFailed(Telemetry, frozen=True, kw_only=True):
    """What the operator says of a source could not be read again; it goes on as before."""

    name = "reload.failed"
    severity = Severity.WARN
    source: str
    reason: str


class LayoutMended(Telemetry, frozen=True, kw_only=True):
    """Pages that could not be read can be read again."""

    name = "layout.mended"
    source: str
    resource: str
    failures: int


class RoomRefused(Telemetry, frozen=True, kw_only=True):
    """New matches are not taken up, since memory is short; they are asked for again after a while."""

    name = "room.refused"
    severity = Severity.WARN
    source: str
    wanted: int
    available_bytes: int
    needed_bytes: int
    seconds: float


class WatchEnded(Telemetry, frozen=True, kw_only=True):
    """A match that nothing has moved for long is let go, since memory is short; a listing or a start brings it back."""

    name = "watch.ended"
    match_id: int
    ref: str
    idle_seconds: float


class MatchGone(Telemetry, frozen=True, kw_only=True):
    """A match's pages are not found, again and again, and no list shows it: it is taken for over."""

    name = "match.gone"
    severity = Severity.WARN
    match_id: int
    ref: str
    confirmations: int


class MatchFinished(Telemetry, frozen=True, kw_only=True):
    """A match is over: read to its end, its result stored, its watch slowed down."""

    name = "match.finished"
    match_id: int
    ref: str
    #: The stored result in words; `None` when the site never showed one.
    result: str | None


class AlertLost(Telemetry, frozen=True, kw_only=True):
    """An alert could not be delivered to the webhook."""

    name = "alert.lost"
    severity = Severity.ERROR
    alert: str
    attempts: int
    reason: str


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


class TaskEnded(Telemetry, frozen=True, kw_only=True):
    """A background task that never ends has ended: a bug, and it is started again."""

    name = "task.ended"
    severity = Severity.CRITICAL
    task: str


class ResourceFailed(Telemetry, frozen=True, kw_only=True):
    """A page that is good to have, but not needed for the poll, could not be read."""

    name = "resource.failed"
    severity = Severity.WARN
    match_id: int
    ref: str
    resource: str
    error_type: str
    error_message: str
    #: Where the page that could not be read is kept, below the data directory.
    page: str | None = None


class SelectorFellBack(Telemetry, frozen=True, kw_only=True):
    """A drawn page does not show a field where it should stand; it was found elsewhere."""

    name = "selector.fell_back"
    severity = Severity.WARN
    source: str
    ref: str
    field: str
    #: Which of the field's selectors served, counted from 0.
    selector: int


class PictureKept(Telemetry, frozen=True, kw_only=True):
    """A page that could not be read was photographed."""

    name = "picture.kept"
    source: str
    #: Where, below the data directory.
    page: str


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


class CommandAnswered(Telemetry, frozen=True, kw_only=True):
    """Somebody asked the scraper for something, and this came of it."""

    name = "command.answered"
    id: int
    kind: str
    asked_by: str
    state: str
    answer: str
    seconds: float


class RecordsFailed(Telemetry, frozen=True, kw_only=True):
    """What is written about the work could not be; the work itself goes on."""

    name = "records.failed"
    severity = Severity.ERROR
    #: Which records: `errors`, `match logs`, `recoveries`, `health log` or `commands`.
    records: str
    error_message: str


class RecoveryBegan(Telemetry, frozen=True, kw_only=True):
    """Something is done without a person; what comes of it is told later, under the same id."""

    name = "recovery.began"
    severity = Severity.WARN
    id: str
    kind: str
    trigger: str
    subject: str


class RecoverySucceeded(Telemetry, frozen=True, kw_only=True):
    """It was seen to help."""

    name = "recovery.succeeded"
    id: str
    kind: str
    subject: str
    observed: str
    duration_seconds: float


class RecoveryFailed(Telemetry, frozen=True, kw_only=True):
    """It was not seen to help."""

    name = "recovery.failed"
    severity = Severity.ERROR
    id: str
    kind: str
    subject: str
    observed: str
    duration_seconds: float


class HealthRestored(Telemetry, frozen=True, kw_only=True):
    """A scraper is healthy again."""

    name = "health.restored"
    before: str


class HealthDegraded(Telemetry, frozen=True, kw_only=True):
    """Matches in play are older than they should be, or rest."""

    name = "health.degraded"
    severity = Severity.WARN
    before: str
    reason: str


class HealthFailing(Telemetry, frozen=True, kw_only=True):
    """A match in play was not read for two minutes, or none was for ninety seconds."""

    name = "health.failing"
    severity = Severity.CRITICAL
    before: str
    reason: str


class HealthRecovering(Telemetry, frozen=True, kw_only=True):
    """What is asked with was made afresh; the first good look ends it."""

    name = "health.recovering"
    severity = Severity.WARN
    before: str
    reason: str


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
