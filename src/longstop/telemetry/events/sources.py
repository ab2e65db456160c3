"""What happens between us and a site."""

from longstop.telemetry.events.base import Severity, Telemetry


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


class CircuitOpened(Telemetry, frozen=True, kw_only=True):
    """Something fails so often that it is left alone for a while."""

    name = "circuit_opened"
    severity = Severity.WARN
    #: What the breaker guards: `target`, `match` or `source`.
    scope: str
    #: Which one: a host, a match or a source.
    subject: str
    reason: str
    seconds: float
    match_id: int | None = None


class CircuitHalfOpened(Telemetry, frozen=True, kw_only=True):
    """The rest is over, or a canary came through; a few are let in to try."""

    name = "circuit_half_open"
    scope: str
    subject: str
    match_id: int | None = None


class CircuitClosed(Telemetry, frozen=True, kw_only=True):
    """All is well again."""

    name = "circuit_closed"
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


class ChallengeServed(Telemetry, frozen=True, kw_only=True):
    """A site answers with pages that want proof of a person: it is left alone, and somebody has to look."""

    name = "source.challenged"
    severity = Severity.ERROR
    source: str
    resource: str
    #: Where the page is kept, below the data directory; `None` when it could not be.
    page: str | None


class ChallengeCleared(Telemetry, frozen=True, kw_only=True):
    """A site that wanted proof of a person gives data again."""

    name = "source.challenge_cleared"
    source: str
    challenges: int


class SourceRateLimited(Telemetry, frozen=True, kw_only=True):
    """A site has asked to be left alone, and is."""

    name = "source.rate_limited"
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


class LayoutRecovered(Telemetry, frozen=True, kw_only=True):
    """Pages that could not be read can be read again."""

    name = "layout.recovered"
    source: str
    resource: str
    failures: int


class SelectorFallbackUsed(Telemetry, frozen=True, kw_only=True):
    """A drawn page does not show a field where it should stand; it was found elsewhere."""

    name = "selector.fallback_used"
    severity = Severity.WARN
    source: str
    ref: str
    field: str
    #: Which of the field's selectors served, counted from 0.
    selector: int
