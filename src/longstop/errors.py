"""Every error that Longstop raises, grouped by the stage that raises it.

`docs/reference/errors.md` shows them as a tree, and says what becomes of each. Third-party errors are translated into
these where they enter. Every fetch and parse error names its source and request.
"""

from typing import TypeVar


class LongstopError(Exception):
    """Base of all errors. Its message is shown to the user as it is, without a traceback."""


class SettingsError(LongstopError):
    """A setting is wrong, unknown or missing. The message says what to write."""


class UsageError(LongstopError):
    """A command cannot do what was requested. The message says what to do instead."""


#: A site can make the reason of an error as long as a page.
MAX_REASON_CHARACTERS = 1_000


class SourceError(LongstopError):
    """Base of all errors of one request to one source."""

    def __init__(self, reason: str) -> None:
        reason = reason if len(reason) <= MAX_REASON_CHARACTERS else f"{reason[:MAX_REASON_CHARACTERS]}…"
        super().__init__(reason)
        self.reason = reason
        #: Set where the error passes, by `name`.
        self.source = self.request = ""
        #: How many failed attempts preceded this one.
        self.retries = 0
        #: Whether the request was a half-open probe, whose failure is expected.
        self.is_canary = False
        #: Whether the attempt to poll has counted it.
        self.is_counted = False
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

    def __init__(self, reason: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(reason)
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
    """The site refused the request: any 4xx but 404 and 410."""


class SourceChallenged(SourceRefused):
    """The site served a CAPTCHA or bot check."""


class CircuitOpen(FetchError):
    """The poll is postponed: the circuit is open, the site is rate-limited, or others of its pages take too long."""


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


class LimitExceeded(SourceError):
    """A page or match shows more than the limits allow, or takes too long to parse."""


class ObservationError(SourceError):
    """A page was parsed, but its content is rejected."""


class WrongMatch(ObservationError):
    """The page describes another match."""


class ImpossibleObservation(ObservationError):
    """The values are impossible."""


class UnconfirmedMatch(ObservationError):
    """Nothing confirms yet that the page is of this match."""


class SuspectAnswer(ObservationError):
    """The page contradicts itself: it may have been altered."""


class LayoutSuspected(ObservationError):
    """Too many events vanished at once: the layout has probably changed."""


class StorageError(LongstopError):
    """A read or write of stored data failed."""

    #: The file and what is wrong with it, without its path: for answers that need no token. Empty if unknown.
    cause = ""


class StoreDamaged(StorageError):
    """A file or a row is corrupt or missing, or was not written by Longstop."""

    def __init__(self, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or "stored data are damaged"


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


Raised = TypeVar("Raised", bound=BaseException)


def without_frames(error: Raised) -> Raised:
    """Return an error without its causes and the frames that it passed.

    Their variables keep whole pages in memory: an error that a frame holds, and that holds the frame, is freed only by
    the garbage collector.
    """
    chain: list[BaseException | None] = [error]
    while chain:
        each = chain.pop()
        if each is not None:
            chain += (each.__cause__, each.__context__)
            each.__traceback__ = each.__cause__ = each.__context__ = None
    return error
