"""What happens to a match, and to the watch of it."""

from longstop.telemetry.events.base import Severity, Telemetry


class MatchDiscovered(Telemetry, frozen=True, kw_only=True):
    name = "match.discovered"
    match_id: int
    ref: str


class MatchPhaseChanged(Telemetry, frozen=True, kw_only=True):
    name = "match.phase_changed"
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


class CadenceChanged(Telemetry, frozen=True, kw_only=True):
    """A match is looked at more or less often than before."""

    name = "cadence.changed"
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


class SourceFrozen(Telemetry, frozen=True, kw_only=True):
    """A page shows the same again and again while another signal says that play goes on."""

    name = "source.frozen"
    severity = Severity.WARN
    match_id: int
    ref: str
    #: What stands still, and what says so: `match` by `list`, or `list` by `match`.
    frozen: str
    witness: str
    seconds: float


class SourceResumed(Telemetry, frozen=True, kw_only=True):
    name = "source.resumed"
    match_id: int
    ref: str
    seconds: float


class WatchStopped(Telemetry, frozen=True, kw_only=True):
    """A match that nothing has moved for long is let go, since memory is short; a listing or a start brings it back."""

    name = "watch.stopped"
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
