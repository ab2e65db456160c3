"""An error as something to look into: met once or a thousand times, and resolved in one way or another."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace


class ErrorType(StrEnum):
    """The kind of an error, for people."""

    NETWORK = "network"
    #: The site does not want us.
    AUTH = "auth"
    PARSING = "parsing"
    NOT_FOUND = "not_found"
    BROWSER = "browser"
    DATABASE = "database"
    #: A bug of ours.
    INTERNAL = "internal"


class ResolutionMethod(StrEnum):
    """What ended an episode."""

    #: The next try, or a later one, was good.
    AUTO_RETRY = "auto_retry"
    #: It was good after a rest.
    CIRCUIT_BREAKER = "circuit_breaker"
    #: It was good after the watch had begun anew.
    RESTART = "restart"
    #: Somebody said so.
    MANUAL = "manual"


class Episode(Struct, frozen=True, order=True):
    """The same error of the same subject, from the first time until it is resolved."""

    #: A match as its source calls it, else the source, else the task.
    ref: str
    #: What errors that differ in numbers and ids only have in common.
    signature: str


class ErrorSeen(Struct, frozen=True, kw_only=True):
    """One error, when it was met."""

    episode: Episode
    scraper_id: str
    match_id: int | None
    timestamp: datetime
    error_type: ErrorType
    error_class: str
    error_message: str
    source: str
    #: What was being attempted.
    operation: str
    stack_trace: str | None = None
    url: str | None = None
    retry_attempt: int = 0
    #: Where the page is kept, below the data directory.
    snapshot: str | None = None


class Resolution(Struct, frozen=True, kw_only=True):
    """How and when an episode ended."""

    at: datetime
    method: ResolutionMethod


class EpisodeChange(Struct, frozen=True, kw_only=True):
    """What has become of an episode since it was last written down."""

    #: The first error of those that are not written yet; `None` when there were none.
    error: ErrorSeen | None = None
    count: int = 0
    last_seen: datetime | None = None
    #: `None` while the error goes on.
    resolution: Resolution | None = None


class StoredError(ErrorSeen, frozen=True, kw_only=True):
    """An episode as it is written down, told by its first error."""

    id: int
    count: int
    last_seen: datetime
    resolution: Resolution | None


def merged(older: EpisodeChange | None, newer: EpisodeChange) -> EpisodeChange:
    """Return both changes as one; errors after a resolution take it back."""
    if older is None:
        return newer
    return EpisodeChange(
        error=_first(older.error, newer.error),
        count=older.count + newer.count,
        last_seen=newer.last_seen or older.last_seen,
        resolution=newer.resolution,
    )


def _first(older: ErrorSeen | None, newer: ErrorSeen | None) -> ErrorSeen | None:
    """Return the older error, with what only the newer one knows."""
    if older is None or newer is None:
        return older or newer
    return replace(
        older,
        stack_trace=older.stack_trace or newer.stack_trace,
        snapshot=older.snapshot or newer.snapshot,
    )
