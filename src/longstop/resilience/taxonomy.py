"""What each error means: which side failed, and whether a retry may succeed."""

from enum import StrEnum

from msgspec import Struct

from longstop.errors import (
    BodyTooLarge,
    BodyTruncated,
    BrowserBusy,
    BrowserLost,
    BudgetSpent,
    CircuitOpen,
    EmptyBody,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    ImpossibleObservation,
    LayoutChanged,
    LayoutPaused,
    LayoutSuspected,
    MalformedBody,
    ObservationError,
    PageNotFound,
    ParseError,
    ProxyFailed,
    ProxyRefused,
    ResourcesExhausted,
    SourceChallenged,
    SourceError,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
    WrongMatch,
)


class FailureKind(StrEnum):
    """Which side failed, and so which breaker counts it."""

    #: The network or the site is down: counts for the breaker of the host only.
    CONNECTION = "connection"
    #: The site refuses us: counts for the match and the source.
    REFUSAL = "refusal"
    #: The response cannot be parsed or is not plausible: counts for the match and the source.
    CONTENT = "content"
    #: The site does not know the page.
    GONE = "gone"
    #: No request was sent: counts nowhere.
    NOT_SENT = "not_sent"
    #: Our own failure, or that of the store.
    OURS = "ours"


class Meaning(Struct, frozen=True, kw_only=True):
    kind: FailureKind
    #: Whether a retry soon may succeed.
    is_soft: bool


_OURS = Meaning(kind=FailureKind.OURS, is_soft=True)
#: All errors of a request. A test fails if one is missing.
MEANINGS: dict[type[SourceError], Meaning] = {
    FetchTimeout: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    SourceUnreachable: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    ProxyFailed: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    ProxyRefused: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    SourceFailed: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    BodyTruncated: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    # A single refusal is retried by the next poll; breakers notice if it lasts.
    SourceRefused: Meaning(kind=FailureKind.REFUSAL, is_soft=True),
    SourceChallenged: Meaning(kind=FailureKind.REFUSAL, is_soft=False),
    EmptyBody: Meaning(kind=FailureKind.CONTENT, is_soft=True),
    # A truncated body, or an HTML page in place of data: often gone with the next response.
    MalformedBody: Meaning(kind=FailureKind.CONTENT, is_soft=True),
    BodyTooLarge: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    LayoutChanged: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    LayoutSuspected: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    WrongMatch: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    ImpossibleObservation: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    ForbiddenTarget: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    PageNotFound: Meaning(kind=FailureKind.GONE, is_soft=False),
    CircuitOpen: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    LayoutPaused: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    BrowserBusy: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    BudgetSpent: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    ResourcesExhausted: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    BrowserLost: _OURS,
    FetchError: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    ParseError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    ObservationError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    SourceError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
}


def meaning_of(error: Exception) -> Meaning:
    """Return what an error means; an error that no site can cause is ours."""
    return next((MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS), _OURS)


def kind_of(error: Exception) -> FailureKind:
    return meaning_of(error).kind
