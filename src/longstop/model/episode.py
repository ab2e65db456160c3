"""Errors by episode: the same error, once or a thousand times, until it is resolved."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace


class ErrorType(StrEnum):
    NETWORK = "network"
    #: The site refuses us.
    AUTH = "auth"
    PARSING = "parsing"
    NOT_FOUND = "not_found"
    BROWSER = "browser"
    DATABASE = "database"
    #: A bug in Longstop.
    INTERNAL = "internal"


class ResolutionMethod(StrEnum):
    #: A retry succeeded.
    AUTO_RETRY = "auto_retry"
    #: It succeeded after the circuit was open for a while.
    CIRCUIT_BREAKER = "circuit_breaker"
    #: It succeeded after the watch was restarted.
    RESTART = "restart"
    #: An operator resolved it.
    MANUAL = "manual"


class Episode(Struct, frozen=True, order=True):
    """The same error of the same subject, from its first occurrence until it is resolved."""

    #: A match ref, else the source, else the task.
    ref: str
    #: The message without numbers and ids.
    signature: str


class ErrorSeen(Struct, frozen=True, kw_only=True):
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
    #: The path of the saved page, below the data directory.
    snapshot: str | None = None


class Resolution(Struct, frozen=True, kw_only=True):
    at: datetime
    method: ResolutionMethod


class EpisodeChange(Struct, frozen=True, kw_only=True):
    """What changed in an episode since it was last stored."""

    #: The first error that is not stored yet; `None` when there is none.
    error: ErrorSeen | None = None
    count: int = 0
    last_seen: datetime | None = None
    #: `None` while the error persists.
    resolution: Resolution | None = None


class StoredError(ErrorSeen, frozen=True, kw_only=True):
    """An episode as stored, described by its first error."""

    id: int
    count: int
    last_seen: datetime
    resolution: Resolution | None


def merged(older: EpisodeChange | None, newer: EpisodeChange) -> EpisodeChange:
    """Return both changes as one; errors after a resolution revoke it."""
    if older is None:
        return newer
    return EpisodeChange(
        error=_first(older.error, newer.error),
        count=older.count + newer.count,
        last_seen=newer.last_seen or older.last_seen,
        resolution=newer.resolution,
    )


def _first(older: ErrorSeen | None, newer: ErrorSeen | None) -> ErrorSeen | None:
    """Return the older error, with details that only the newer one has."""
    if older is None or newer is None:
        return older or newer
    return replace(older, stack_trace=older.stack_trace or newer.stack_trace, snapshot=older.snapshot or newer.snapshot)
