"""Events about a match and the polling of it."""

from longstop.telemetry.events import Severity, Telemetry


class MatchTelemetry(Telemetry, frozen=True, kw_only=True):
    match_id: int
    ref: str


class MatchDiscovered(MatchTelemetry, frozen=True, kw_only=True):
    name = "match.discovered"


class MatchPhaseChanged(MatchTelemetry, frozen=True, kw_only=True):
    name = "match.phase_changed"
    before: str
    after: str


class MatchClaimed(MatchTelemetry, frozen=True, kw_only=True):
    name = "match.claimed"
    epoch: int


class MatchInSync(MatchTelemetry, frozen=True, kw_only=True):
    """The stored events agree with the source's complete event list, after a start or a gap."""

    name = "match.in_sync"
    events: int


class UpdateStored(MatchTelemetry, frozen=True, kw_only=True):
    name = "update.stored"
    inserted: int
    updated: int
    voided: int
    seq: int
    #: `None` if the payload did not change.
    latency_ms: int | None


class PollSucceeded(MatchTelemetry, frozen=True, kw_only=True):
    name = "poll.succeeded"
    severity = Severity.DEBUG
    seconds: float
    #: Of all its pages; and the seconds spent on parsing and comparing them.
    bytes: int = 0
    busy_seconds: float = 0.0


class PollFailed(MatchTelemetry, frozen=True, kw_only=True):
    """A poll of a match failed; the next one starts from the same base."""

    name = "poll.failed"
    severity = Severity.WARN
    error_type: str
    error_message: str
    #: The request that failed, without its query; empty if the failure belongs to no single request.
    request: str = ""
    #: The last state that the attempt reached, and its final state.
    reached: str = ""
    outcome: str = ""
    #: Which side failed: `connection`, `refusal`, `content`, `untrusted`, `gone` or `ours`.
    kind: str = ""
    #: How often the failing request was retried.
    retries: int = 0
    #: Of all its pages; and the seconds spent on parsing and comparing them.
    bytes: int = 0
    busy_seconds: float = 0.0
    #: Path of the saved page below the data directory, if it could not be parsed.
    page: str | None = None


class CadenceChanged(MatchTelemetry, frozen=True, kw_only=True):
    name = "cadence.changed"
    #: One of `baseline`, `busy`, `break`, `errors`, `important`, `imminent`, `upcoming`, `completed`.
    reason: str
    interval_seconds: float


class ErrorRateHigh(MatchTelemetry, frozen=True, kw_only=True):
    name = "errors.rate_high"
    severity = Severity.ERROR
    errors: int
    #: Errors by type.
    types: dict[str, int]


class MatchStale(MatchTelemetry, frozen=True, kw_only=True):
    name = "match.stale"
    severity = Severity.WARN
    age_seconds: float
    last_update: str | None


class WatchRestarted(MatchTelemetry, frozen=True, kw_only=True):
    name = "watch.restarted"
    severity = Severity.WARN
    #: One of `stale`, `errors`, `lifetime`, `cool_down`, `asked`, `recycled`.
    reason: str
    #: Age of the watch that was replaced.
    age_seconds: float
    epoch: int


class SourceFrozen(MatchTelemetry, frozen=True, kw_only=True):
    """A page does not change although another page of the site shows that play continues."""

    name = "source.frozen"
    severity = Severity.WARN
    #: The frozen page and the one that contradicts it: `match` and `list`, or `list` and `match`.
    frozen: str
    witness: str
    seconds: float


class SourceResumed(MatchTelemetry, frozen=True, kw_only=True):
    name = "source.resumed"
    seconds: float


class WatchStopped(MatchTelemetry, frozen=True, kw_only=True):
    """Polling of an idle match stopped because memory is low. A listing or a restart of the scraper resumes it."""

    name = "watch.stopped"
    idle_seconds: float


class MatchDoubted(MatchTelemetry, frozen=True, kw_only=True):
    """The source's answers are not believed: of another match, altered, or against what is stored."""

    name = "match.doubted"
    severity = Severity.WARN
    reason: str


class MatchBelieved(MatchTelemetry, frozen=True, kw_only=True):
    """The answers of a doubted match are believed again."""

    name = "match.believed"
    seconds: float


class MatchGone(MatchTelemetry, frozen=True, kw_only=True):
    """The pages of a match were not found several times, and no listing contains it: it is archived."""

    name = "match.gone"
    severity = Severity.WARN
    confirmations: int


class MatchFinished(MatchTelemetry, frozen=True, kw_only=True):
    name = "match.finished"
    #: The stored result; `None` if the site showed none.
    result: str | None


class FindingOpened(MatchTelemetry, frozen=True, kw_only=True):
    name = "finding.opened"
    severity = Severity.WARN
    kind: str
    place: str
    detail: str


class FindingClosed(MatchTelemetry, frozen=True, kw_only=True):
    name = "finding.closed"
    kind: str
    place: str


class ResourceFailed(MatchTelemetry, frozen=True, kw_only=True):
    name = "resource.failed"
    severity = Severity.WARN
    resource: str
    error_type: str
    error_message: str
    #: Path of the saved page below the data directory, if it could not be parsed.
    page: str | None = None
