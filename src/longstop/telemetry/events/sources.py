"""Events about requests to a site and the pages that it serves."""

from longstop.telemetry.events import Severity, Telemetry


class ListingRead(Telemetry, frozen=True, kw_only=True):
    name = "listing.read"
    severity = Severity.DEBUG
    source: str
    matches: int
    changed: int
    #: Entries that could not be parsed.
    unreadable: int


class ListingFailed(Telemetry, frozen=True, kw_only=True):
    """The listing could not be read. It proves nothing about any match."""

    name = "listing.failed"
    severity = Severity.WARN
    source: str
    error_type: str
    error_message: str
    #: Path of the saved page below the data directory, if it could not be parsed.
    page: str | None = None


class RequestRetried(Telemetry, frozen=True, kw_only=True):
    """A request failed and will be retried."""

    name = "request.retried"
    severity = Severity.DEBUG
    source: str
    request: str
    attempt: int
    error_type: str
    error_message: str
    wait_seconds: float


class CircuitOpened(Telemetry, frozen=True, kw_only=True):
    """A breaker opened: no requests are sent until it is half open."""

    name = "circuit_opened"
    severity = Severity.WARN
    #: What the breaker protects: `target`, `match` or `source`.
    scope: str
    #: The host, match or source.
    subject: str
    reason: str
    seconds: float
    match_id: int | None = None


class CircuitHalfOpened(Telemetry, frozen=True, kw_only=True):
    """A breaker is half open, after its pause or a successful canary: a few probes are admitted."""

    name = "circuit_half_open"
    scope: str
    subject: str
    match_id: int | None = None


class CircuitClosed(Telemetry, frozen=True, kw_only=True):
    """A breaker closed: requests are sent again."""

    name = "circuit_closed"
    scope: str
    subject: str
    #: Requests rejected since it opened.
    rejected: int
    match_id: int | None = None


class TimeoutsChanged(Telemetry, frozen=True, kw_only=True):
    """A site became slower or faster, and its time-outs were adapted."""

    name = "timeouts.changed"
    source: str
    #: Mean of the last ten requests.
    mean_seconds: float
    fetch_seconds: float
    page_seconds: float
    navigation_seconds: float
    selector_seconds: float


class ChallengeServed(Telemetry, frozen=True, kw_only=True):
    """A site served a CAPTCHA. The source is paused; an operator has to act."""

    name = "source.challenged"
    severity = Severity.ERROR
    source: str
    resource: str
    #: Path of the saved page below the data directory; `None` if it could not be saved.
    page: str | None


class ChallengeCleared(Telemetry, frozen=True, kw_only=True):
    """A site that served a CAPTCHA serves data again."""

    name = "source.challenge_cleared"
    source: str
    challenges: int


class SourceRateLimited(Telemetry, frozen=True, kw_only=True):
    """A site sent Retry-After, and the source is paused."""

    name = "source.rate_limited"
    severity = Severity.WARN
    source: str
    seconds: float
    reason: str


class LayoutBroken(Telemetry, frozen=True, kw_only=True):
    """Pages of a site could not be parsed many times in a row: their layout changed. An operator has to act."""

    name = "layout.broken"
    severity = Severity.CRITICAL
    source: str
    resource: str
    failures: int
    error_message: str
    #: Path of the saved page below the data directory; `None` if it could not be saved.
    page: str | None
    retry_in_seconds: float


class LayoutRecovered(Telemetry, frozen=True, kw_only=True):
    """Pages that could not be parsed can be parsed again."""

    name = "layout.recovered"
    source: str
    resource: str
    failures: int


class SelectorFallbackUsed(Telemetry, frozen=True, kw_only=True):
    """The first selector of a field found nothing on a rendered page; a fallback did."""

    name = "selector.fallback_used"
    severity = Severity.WARN
    source: str
    ref: str
    field: str
    #: Index of the selector that matched.
    selector: int
