"""Everything that can go wrong, as facts.

    LongstopError
    ├── SettingsError                 a setting is wrong, unknown or missing
    ├── UsageError                    a command was asked for something that cannot be done
    ├── FetchError                    a request brought no usable page; may carry Retry-After
    │   ├── FetchTimeout                the total deadline passed
    │   ├── SourceUnreachable           no name, no connection, or it broke
    │   │   └── ProxyFailed                 the way through the proxy is broken; never gone around
    │   │       └── ProxyRefused              the proxy does not take our credential
    │   ├── SourceFailed                the site answered 5xx
    │   ├── SourceRefused               403, 429 or another refusal
    │   │   └── SourceChallenged          a page that wants proof of a person, whatever its status says
    │   ├── CircuitOpen                 nobody was asked: the site needs rest
    │   │   ├── BrowserBusy                 nobody was asked: too many pages are being loaded at this moment
    │   │   ├── BudgetSpent                 nobody was asked: the month's bytes through the proxy are kept for others
    │   │   ├── LayoutPaused                  nobody was asked: pages of this kind cannot be read, and are tried rarely
    │   │   └── ResourcesExhausted          not sent: the machine is out of a resource; also a StorageError
    │   ├── BrowserLost                 our own browser died or did not answer; the site is not to blame
    │   ├── PageNotFound                404 or 410
    │   ├── EmptyBody                   a good status with nothing behind it
    │   ├── BodyTooLarge                more decoded bytes than the cap
    │   ├── BodyTruncated               fewer bytes than announced
    │   └── ForbiddenTarget             a host, redirect or address outside the source's list
    ├── ParseError                    a page could not be read
    │   ├── MalformedBody               not the format it should be: broken JSON, HTML, wrong encoding
    │   └── LayoutChanged               a field of the contract is missing or has another type
    ├── ObservationError              a page could be read, but must not be believed
    │   ├── WrongMatch                  it speaks of another match
    │   ├── ImpossibleObservation       its values cannot be true
    │   └── LayoutSuspected             so much is gone at once that the site's layout must have changed
    ├── StorageError                  the store did not take or give what was asked
    │   ├── EpochLost                   another owner has taken the match
    │   ├── DataDirectoryInUse          another process holds the data directory
    │   ├── StoreTooNew                 the files were written by a newer version
    │   └── UnsafeSQLite                this SQLite can corrupt a file with several connections
    ├── RestartNeeded                 this process cannot mend itself, and asks to be started again
    └── IllegalTransition             a state machine was asked for a move its table does not have

Foreign errors are translated into these where they enter; every fetch and parse error says which source and which
request it belongs to.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class LongstopError(Exception):
    """The root: one clear sentence, never a traceback for the user."""


class SettingsError(LongstopError):
    """A setting is wrong, unknown or missing; the sentence says what to write."""


class UsageError(LongstopError):
    """A command was asked for something that cannot be done; the sentence says what to do instead."""


class SourceError(LongstopError):
    """Common to all that goes wrong with one request to one source."""

    def __init__(self, reason: str, *, source: str = "", request: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.source = source
        self.request = request
        #: How often the request was tried before, in vain.
        self.retries = 0
        #: Whether it was expected: a canary's, sent where the way is known to be broken.
        self.is_canary = False
        #: Where the page that could not be read is kept; `None` when it is not.
        self.page: str | None = None

    def name(self, source: str, request: str) -> None:
        """Say which source and request the error belongs to; what is said already stays."""
        self.source = self.source or source
        self.request = self.request or request

    def __str__(self) -> str:
        where = " ".join(part for part in (self.source, self.request) if part)
        return f"{where}: {self.reason}" if where else self.reason


class FetchError(SourceError):
    """A request brought no usable page."""

    def __init__(
        self, reason: str, *, source: str = "", request: str = "", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(reason, source=source, request=request)
        #: For how long the site asks to be left alone, or we leave it alone; `None` when nobody says.
        self.retry_after_seconds = retry_after_seconds


class FetchTimeout(FetchError):
    """The total deadline passed."""


class SourceUnreachable(FetchError):
    """No name, no connection, or it broke."""


class ProxyFailed(SourceUnreachable):
    """The way through the proxy is broken. It is never gone around."""


class ProxyRefused(ProxyFailed):
    """The proxy does not take our credential."""


class SourceFailed(FetchError):
    """The site answered 5xx."""


class SourceRefused(FetchError):
    """The site does not want us now."""


class SourceChallenged(SourceRefused):
    """The site wants proof that we are a person. We are not, so this is a refusal."""


class CircuitOpen(FetchError):
    """Nobody was asked: the site needs rest, or has asked for it."""


class LayoutPaused(CircuitOpen):
    """Nobody was asked: pages of this kind cannot be read, and are tried rarely."""


class BudgetSpent(CircuitOpen):
    """Nobody was asked: the month's bytes through the proxy are spent, or kept for livelier matches."""


class BrowserBusy(CircuitOpen):
    """Nobody was asked: too many pages are being loaded at this moment."""


class BrowserLost(FetchError):
    """Our own browser died or did not answer; the site is not to blame."""


class PageNotFound(FetchError):
    """404 or 410."""


class EmptyBody(FetchError):
    """A good status with nothing behind it."""


class BodyTooLarge(FetchError):
    """More decoded bytes than the cap."""


class BodyTruncated(FetchError):
    """Fewer bytes than announced."""


class ForbiddenTarget(FetchError):
    """A host, redirect or address outside the source's list."""


class ParseError(SourceError):
    """A page could not be read."""


class MalformedBody(ParseError):
    """The body is not in the format it should be in."""


class LayoutChanged(ParseError):
    """A field of the contract is missing or has another type."""


class ObservationError(SourceError):
    """A page could be read, but must not be believed."""


class WrongMatch(ObservationError):
    """The page speaks of another match."""


class ImpossibleObservation(ObservationError):
    """The values cannot be true."""


class LayoutSuspected(ObservationError):
    """So much is gone at once that the site's layout must have changed."""


class StorageError(LongstopError):
    """The store did not take or give what was asked."""


class StoreDamaged(StorageError):
    """A file cannot be read as what it should be: it is damaged, or was made by somebody else."""


class EpochLost(StorageError):
    """Another owner has taken the match; what this one derived must not be written."""


class DataDirectoryInUse(StorageError):
    """Another process holds the data directory."""


class StoreTooNew(StorageError):
    """The files were written by a newer version."""


class UnsafeSQLite(StorageError):
    """This SQLite can corrupt a file with several connections."""


class ResourcesExhausted(CircuitOpen, StorageError):
    """The machine is out of file descriptors, processes, memory or temporary space; site and store are not at fault."""

    def __init__(self, resource: str, detail: str = "") -> None:
        super().__init__(f"out of {resource}" + (f": {detail}" if detail else ""))
        #: Which one: a value of `MachineResource`.
        self.resource = resource


class RestartNeeded(LongstopError):
    """This process cannot mend itself, and asks its supervisor to start it again."""


class IllegalTransition(LongstopError):
    """A state machine was asked for a move its table does not have."""


@contextmanager
def belonging_to(source: str, request: str) -> Iterator[None]:
    """Say which source and request an error belongs to, once, wherever inside it was raised."""
    try:
        yield
    except SourceError as error:
        error.name(source, request)
        raise
