"""Events about requests to a site and the pages that it serves."""

from typing import ClassVar

from longstop.telemetry.events import Severity, Telemetry


class SourceTelemetry(Telemetry, frozen=True, kw_only=True):
    source: str


class ListingRead(SourceTelemetry, frozen=True, kw_only=True):
    name = "listing.read"
    severity = Severity.DEBUG
    matches: int
    changed: int
    #: Entries that could not be parsed.
    unreadable: int


class ListingFailed(SourceTelemetry, frozen=True, kw_only=True):
    """The listing could not be read. It proves nothing about any match."""

    name = "listing.failed"
    severity = Severity.WARN
    error_type: str
    error_message: str
    #: Path of the saved page below the data directory, if it could not be parsed.
    page: str | None = None


class MatchesRefused(SourceTelemetry, frozen=True, kw_only=True):
    """A source lists more matches than it may have. Those that are watched already stay."""

    name = "matches.refused"
    severity = Severity.WARN
    watched: int
    refused: int
    limit: int


class RequestRetried(SourceTelemetry, frozen=True, kw_only=True):
    name = "request.retried"
    severity = Severity.DEBUG
    request: str
    attempt: int
    error_type: str
    error_message: str
    wait_seconds: float


class CircuitTelemetry(Telemetry, frozen=True, kw_only=True):
    #: What the breaker protects: `target`, `match` or `source`.
    scope: str
    #: The host, match or source.
    subject: str
    match_id: int | None = None


class CircuitOpened(CircuitTelemetry, frozen=True, kw_only=True):
    name = "circuit_opened"
    severity = Severity.WARN
    reason: str
    seconds: float


class CircuitHalfOpened(CircuitTelemetry, frozen=True, kw_only=True):
    """A breaker is half open, after its pause or a successful canary: a few probes are admitted."""

    name = "circuit_half_open"


class CircuitClosed(CircuitTelemetry, frozen=True, kw_only=True):
    name = "circuit_closed"
    #: Requests rejected since it opened.
    rejected: int


class TimeoutsChanged(SourceTelemetry, frozen=True, kw_only=True):
    name = "timeouts.changed"
    #: Mean of the last ten requests.
    mean_seconds: float
    fetch_seconds: float
    page_seconds: float
    navigation_seconds: float
    selector_seconds: float


class ChallengeServed(SourceTelemetry, frozen=True, kw_only=True):
    """A site served a CAPTCHA. The source is paused; an operator has to act."""

    name = "source.challenged"
    severity = Severity.ERROR
    resource: str
    #: Path of the saved page below the data directory; `None` if it could not be saved.
    page: str | None


class ChallengeCleared(SourceTelemetry, frozen=True, kw_only=True):
    name = "source.challenge_cleared"
    challenges: int


class SourceRateLimited(SourceTelemetry, frozen=True, kw_only=True):
    name = "source.rate_limited"
    severity = Severity.WARN
    seconds: float
    reason: str


class LayoutTelemetry(Telemetry, frozen=True, kw_only=True):
    """The base of events about pages that cannot be parsed. A broken layout pauses polling like a breaker."""

    scope: ClassVar = "layout"
    source: str
    resource: str
    failures: int

    @property
    def subject(self) -> str:
        return f"{self.source} {self.resource}"


class LayoutBroken(LayoutTelemetry, frozen=True, kw_only=True):
    """Pages of a site could not be parsed many times in a row: their layout changed. An operator has to act."""

    name = "layout.broken"
    severity = Severity.CRITICAL
    error_message: str
    #: Path of the saved page below the data directory; `None` if it could not be saved.
    page: str | None
    retry_in_seconds: float


class LayoutRecovered(LayoutTelemetry, frozen=True, kw_only=True):
    name = "layout.recovered"


class SelectorFallbackUsed(SourceTelemetry, frozen=True, kw_only=True):
    name = "selector.fallback_used"
    severity = Severity.WARN
    ref: str
    field: str
    #: Index of the selector that matched.
    selector: int
