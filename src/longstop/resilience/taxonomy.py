"""What each error means: which side failed, and whether a retry may succeed."""

from enum import StrEnum

from msgspec import Struct

from longstop import errors


class FailureKind(StrEnum):
    """Which side failed, and so which breaker counts it."""

    #: The network or the site is down: counts for the breaker of the host only.
    CONNECTION = "connection"
    #: The site refuses us: counts for the match and the source.
    REFUSAL = "refusal"
    #: The response cannot be parsed or is not plausible: counts for the match and the source.
    CONTENT = "content"
    #: The response is of another match, contradicts itself or what is stored: counts nowhere, is retried soon.
    UNTRUSTED = "untrusted"
    #: The match shows more than the limits allow: counts for the match alone.
    EXCESS = "excess"
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
MEANINGS: dict[type[errors.SourceError], Meaning] = {
    errors.FetchTimeout: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    errors.SourceUnreachable: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    errors.ProxyFailed: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    errors.ProxyRefused: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    errors.SourceFailed: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    errors.BodyTruncated: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    # A single refusal is retried by the next poll; breakers notice if it lasts.
    errors.SourceRefused: Meaning(kind=FailureKind.REFUSAL, is_soft=True),
    errors.SourceChallenged: Meaning(kind=FailureKind.REFUSAL, is_soft=False),
    errors.EmptyBody: Meaning(kind=FailureKind.CONTENT, is_soft=True),
    # A truncated body, or an HTML page in place of data: often gone with the next response.
    errors.MalformedBody: Meaning(kind=FailureKind.CONTENT, is_soft=True),
    errors.BodyTooLarge: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    errors.LayoutChanged: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    errors.LimitExceeded: Meaning(kind=FailureKind.EXCESS, is_soft=False),
    errors.LayoutSuspected: Meaning(kind=FailureKind.UNTRUSTED, is_soft=False),
    errors.WrongMatch: Meaning(kind=FailureKind.UNTRUSTED, is_soft=False),
    errors.UnconfirmedMatch: Meaning(kind=FailureKind.UNTRUSTED, is_soft=True),
    errors.SuspectAnswer: Meaning(kind=FailureKind.UNTRUSTED, is_soft=True),
    errors.ImpossibleObservation: Meaning(kind=FailureKind.UNTRUSTED, is_soft=False),
    errors.ForbiddenTarget: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    errors.PageNotFound: Meaning(kind=FailureKind.GONE, is_soft=False),
    errors.CircuitOpen: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    errors.LayoutPaused: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    errors.BrowserBusy: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    errors.BudgetSpent: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    errors.ResourcesExhausted: Meaning(kind=FailureKind.NOT_SENT, is_soft=True),
    errors.BrowserLost: _OURS,
    errors.FetchError: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    errors.ParseError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    errors.ObservationError: Meaning(kind=FailureKind.UNTRUSTED, is_soft=False),
    errors.SourceError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
}


def meaning_of(error: Exception) -> Meaning:
    """Return what an error means; an error that no site can cause is ours."""
    return next((MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS), _OURS)


def kind_of(error: Exception) -> FailureKind:
    return meaning_of(error).kind
