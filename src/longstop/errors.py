"""Every error that Longstop raises, grouped by the stage that raises it.

    LongstopError
    ├── SettingsError                 a setting is wrong, unknown or missing
    ├── UsageError                    a command cannot do what was requested
    ├── FetchError                    a request returned no usable page; may carry Retry-After
    │   ├── FetchTimeout                the total deadline passed
    │   ├── SourceUnreachable           DNS lookup or connection failed, or the connection broke
    │   │   └── ProxyFailed                 the proxy is unreachable or broken; never bypassed
    │   │       └── ProxyRefused              the proxy rejected our credentials
    │   ├── SourceFailed                the site answered 5xx
    │   ├── SourceRefused               403, 429 or another refusal
    │   │   └── SourceChallenged          the site served a CAPTCHA or bot check, whatever the status code
    │   ├── CircuitOpen                 no request was sent: the circuit is open, or the site is rate-limited
    │   │   ├── BrowserBusy                 no request was sent: the browser is at its page limit
    │   │   ├── BudgetSpent                 no request was sent: the monthly proxy budget is spent or reserved
    │   │   ├── LayoutPaused                no request was sent: pages of this kind cannot be parsed; retried rarely
    │   │   └── ResourcesExhausted          no request was sent: out of a machine resource; also a StorageError
    │   ├── BrowserLost                 our browser crashed or stopped responding; not counted against the site
    │   ├── PageNotFound                404 or 410
    │   ├── EmptyBody                   a success status with an empty body
    │   ├── BodyTooLarge                more decoded bytes than the limit
    │   ├── BodyTruncated               fewer bytes than announced
    │   └── ForbiddenTarget             a host, redirect or address outside the source's list
    ├── ParseError                    a page could not be parsed
    │   ├── MalformedBody               the wrong format: broken JSON, HTML, wrong encoding
    │   └── LayoutChanged               a required field is missing or has another type
    ├── ObservationError              a page was parsed, but its content is rejected
    │   ├── WrongMatch                  it describes another match
    │   ├── ImpossibleObservation       its values are impossible
    │   └── LayoutSuspected             too many events vanished at once: the layout has probably changed
    ├── StorageError                  a read or write of stored data failed
    │   ├── StoreDamaged                a file is corrupt, or not one of ours
    │   ├── EpochLost                   another process now owns the match
    │   ├── DataDirectoryInUse          another process has locked the data directory
    │   ├── StoreTooNew                 the files were written by a newer version
    │   └── UnsafeSQLite                this SQLite version can corrupt a file with several connections
    ├── RestartNeeded                 this process cannot recover and must be restarted
    └── IllegalTransition             a state machine has no such transition

Third-party errors are translated into these where they enter. Every fetch and parse error names its source and request.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class LongstopError(Exception):
    """Base of all errors. Its message is shown to the user as it is, without a traceback."""


class SettingsError(LongstopError):
    """A setting is wrong, unknown or missing. The message says what to write."""


class UsageError(LongstopError):
    """A command cannot do what was requested. The message says what to do instead."""


class SourceError(LongstopError):
    """Base of all errors of one request to one source."""

    def __init__(self, reason: str, *, source: str = "", request: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.source = source
        self.request = request
        #: How many failed attempts preceded this one.
        self.retries = 0
        #: Whether the request was a half-open probe, whose failure is expected.
        self.is_canary = False
        #: Where the unreadable page was saved; `None` if it was not.
        self.page: str | None = None

    def name(self, source: str, request: str) -> None:
        """Set the source and request; values that are already set are kept."""
        self.source = self.source or source
        self.request = self.request or request

    def __str__(self) -> str:
        where = " ".join(part for part in (self.source, self.request) if part)
        return f"{where}: {self.reason}" if where else self.reason


class FetchError(SourceError):
    """A request returned no usable page."""

    def __init__(
        self, reason: str, *, source: str = "", request: str = "", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(reason, source=source, request=request)
        #: How long to wait before the next request, by the site or by our circuit breaker; `None` if unknown.
        self.retry_after_seconds = retry_after_seconds


class FetchTimeout(FetchError):
    """The total deadline passed."""


class SourceUnreachable(FetchError):
    """DNS lookup or connection failed, or the connection broke."""


class ProxyFailed(SourceUnreachable):
    """The proxy is unreachable or broken. It is never bypassed."""


class ProxyRefused(ProxyFailed):
    """The proxy rejected our credentials."""


class SourceFailed(FetchError):
    """The site answered 5xx."""


class SourceRefused(FetchError):
    """The site refused the request: 403, 429 or similar."""


class SourceChallenged(SourceRefused):
    """The site served a CAPTCHA or bot check."""


class CircuitOpen(FetchError):
    """No request was sent: the circuit is open, or the site is rate-limited."""


class LayoutPaused(CircuitOpen):
    """No request was sent: pages of this kind cannot be parsed, and are retried rarely."""


class BudgetSpent(CircuitOpen):
    """No request was sent: the monthly proxy budget is spent, or reserved for more urgent matches."""


class BrowserBusy(CircuitOpen):
    """No request was sent: the browser is already loading its maximum number of pages."""


class BrowserLost(FetchError):
    """Our browser crashed or stopped responding. Not counted against the site."""


class PageNotFound(FetchError):
    """404 or 410."""


class EmptyBody(FetchError):
    """A success status with an empty body."""


class BodyTooLarge(FetchError):
    """More decoded bytes than the limit."""


class BodyTruncated(FetchError):
    """Fewer bytes than announced."""


class ForbiddenTarget(FetchError):
    """A host, redirect or address outside the source's list."""


class ParseError(SourceError):
    """A page could not be parsed."""


class MalformedBody(ParseError):
    """The body is not in the expected format."""


class LayoutChanged(ParseError):
    """A required field is missing or has another type."""


class ObservationError(SourceError):
    """A page was parsed, but its content is rejected."""


class WrongMatch(ObservationError):
    """The page describes another match."""


class ImpossibleObservation(ObservationError):
    """The values are impossible."""


class LayoutSuspected(ObservationError):
    """Too many events vanished at once: the layout has probably changed."""


class StorageError(LongstopError):
    """A read or write of stored data failed."""


class StoreDamaged(StorageError):
    """A file is corrupt, or was not written by Longstop."""


class EpochLost(StorageError):
    """Another process now owns the match. Updates of the previous owner are rejected."""


class DataDirectoryInUse(StorageError):
    """Another process has locked the data directory."""


class StoreTooNew(StorageError):
    """The files were written by a newer version."""


class UnsafeSQLite(StorageError):
    """This SQLite version can corrupt a file with several connections."""


class ResourcesExhausted(CircuitOpen, StorageError):
    """The machine is out of file descriptors, processes, memory or temporary space; site and store are not at fault."""

    def __init__(self, resource: str, detail: str = "") -> None:
        super().__init__(f"out of {resource}" + (f": {detail}" if detail else ""))
        #: Which one: a value of `MachineResource`.
        self.resource = resource


class RestartNeeded(LongstopError):
    """This process cannot recover by itself; the supervisor restarts it."""


class IllegalTransition(LongstopError):
    """A state machine has no such transition."""


@contextmanager
def belonging_to(source: str, request: str) -> Iterator[None]:
    """Add source and request to every `SourceError` raised inside."""
    try:
        yield
    except SourceError as error:
        error.name(source, request)
        raise
