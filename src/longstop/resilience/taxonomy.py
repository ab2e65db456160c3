"""What an error means for what we do next, and the state in which it ends an attempt to read a match.

The errors stand in one table, read from the particular to the general; an attempt is a state machine.
"""

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
    IllegalTransition,
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
    """Whose failure it is, and so which breaker counts it."""

    #: The way to the site is broken, or the site is: counts for the target's breaker alone.
    CONNECTION = "connection"
    #: The site answers, and does not want us: counts for the match and the source.
    REFUSAL = "refusal"
    #: The site answers, and what it says is not what we know how to read: counts for the match and the source.
    CONTENT = "content"
    #: The site answers, and does not know the page.
    GONE = "gone"
    #: Nobody was asked; counts nowhere.
    HELD = "held"
    #: The store's failure, or ours.
    OURS = "ours"


class Meaning(Struct, frozen=True, kw_only=True):
    """What an error means."""

    kind: FailureKind
    #: Whether asking again soon may help.
    is_soft: bool


_OURS = Meaning(kind=FailureKind.OURS, is_soft=True)
#: Every error that one request can end in stands here, so that one that is added is noticed by a test.
MEANINGS: dict[type[SourceError], Meaning] = {
    FetchTimeout: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    SourceUnreachable: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    ProxyFailed: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    ProxyRefused: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    SourceFailed: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    BodyTruncated: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    # Once is a mood, and asked again later; that it lasts is for the breakers to notice.
    SourceRefused: Meaning(kind=FailureKind.REFUSAL, is_soft=True),
    SourceChallenged: Meaning(kind=FailureKind.REFUSAL, is_soft=False),
    EmptyBody: Meaning(kind=FailureKind.CONTENT, is_soft=True),
    # Half a body that still ended well, or a page for people in its place: often gone with the next answer.
    MalformedBody: Meaning(kind=FailureKind.CONTENT, is_soft=True),
    BodyTooLarge: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    LayoutChanged: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    LayoutSuspected: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    WrongMatch: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    ImpossibleObservation: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    ForbiddenTarget: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    PageNotFound: Meaning(kind=FailureKind.GONE, is_soft=False),
    CircuitOpen: Meaning(kind=FailureKind.HELD, is_soft=True),
    LayoutPaused: Meaning(kind=FailureKind.HELD, is_soft=True),
    BrowserBusy: Meaning(kind=FailureKind.HELD, is_soft=True),
    BudgetSpent: Meaning(kind=FailureKind.HELD, is_soft=True),
    ResourcesExhausted: Meaning(kind=FailureKind.HELD, is_soft=True),
    BrowserLost: _OURS,
    FetchError: Meaning(kind=FailureKind.CONNECTION, is_soft=True),
    ParseError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    ObservationError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
    SourceError: Meaning(kind=FailureKind.CONTENT, is_soft=False),
}


def meaning_of(error: Exception) -> Meaning:
    """Return what an error means; one that no site can cause is ours."""
    return next((MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS), _OURS)


def kind_of(error: Exception) -> FailureKind:
    return meaning_of(error).kind


class AttemptState(StrEnum):
    INIT = "init"
    BROWSER_READY = "browser_ready"
    NAVIGATING = "navigating"
    #: Asked, and waiting for the answer that matters.
    INTERCEPTING = "intercepting"
    CAPTURED = "captured"
    VALIDATED = "validated"
    PERSISTED = "persisted"
    DONE = "done"
    #: Asking again may help.
    SOFT_FAIL = "soft_fail"
    HARD_FAIL = "hard_fail"
    #: Nobody was asked.
    CIRCUIT_OPEN = "circuit_open"


_FAILURES = frozenset({AttemptState.SOFT_FAIL, AttemptState.HARD_FAIL})
#: Over HTTP there is no browser to make ready and nothing to navigate, hence INIT → INTERCEPTING. A look takes several
#: pages, hence CAPTURED → INTERCEPTING; and what brings nothing new has nothing to persist, hence VALIDATED → DONE.
TRANSITIONS: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.INIT: _FAILURES | {AttemptState.BROWSER_READY, AttemptState.INTERCEPTING, AttemptState.CIRCUIT_OPEN},
    AttemptState.BROWSER_READY: _FAILURES | {AttemptState.NAVIGATING},
    AttemptState.NAVIGATING: _FAILURES | {AttemptState.INTERCEPTING},
    AttemptState.INTERCEPTING: _FAILURES | {AttemptState.CAPTURED, AttemptState.CIRCUIT_OPEN},
    AttemptState.CAPTURED: _FAILURES | {AttemptState.INTERCEPTING, AttemptState.VALIDATED},
    AttemptState.VALIDATED: _FAILURES | {AttemptState.PERSISTED, AttemptState.DONE},
    AttemptState.PERSISTED: frozenset({AttemptState.DONE}),
    AttemptState.DONE: frozenset(),
    AttemptState.SOFT_FAIL: frozenset(),
    AttemptState.HARD_FAIL: frozenset(),
    AttemptState.CIRCUIT_OPEN: frozenset(),
}


def step(current: AttemptState, to: AttemptState) -> AttemptState:
    """Return the new state, or raise: a step that is not in the table is a bug."""
    if to not in TRANSITIONS[current]:
        raise IllegalTransition(f"an attempt cannot go from {current} to {to}")
    return to


def end_of(reached: AttemptState, error: Exception) -> AttemptState:
    """Return the state in which an error ends an attempt that had come so far."""
    meaning = meaning_of(error)
    if meaning.kind is FailureKind.HELD:
        return step(reached, AttemptState.CIRCUIT_OPEN)
    return step(reached, AttemptState.SOFT_FAIL if meaning.is_soft else AttemptState.HARD_FAIL)
