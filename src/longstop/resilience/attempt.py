"""One attempt to read a match, as a state machine: how far it came, and how it ended."""

from enum import StrEnum

from longstop.errors import FetchError, IllegalTransition, ObservationError, ParseError, StorageError
from longstop.resilience.taxonomy import FailureKind, meaning_of


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
#: Over HTTP there is no browser to make ready and nothing to navigate, hence INIT → INTERCEPTING.
TRANSITIONS: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.INIT: _FAILURES | {AttemptState.BROWSER_READY, AttemptState.INTERCEPTING, AttemptState.CIRCUIT_OPEN},
    AttemptState.BROWSER_READY: _FAILURES | {AttemptState.NAVIGATING},
    AttemptState.NAVIGATING: _FAILURES | {AttemptState.INTERCEPTING},
    AttemptState.INTERCEPTING: _FAILURES | {AttemptState.CAPTURED, AttemptState.CIRCUIT_OPEN},
    AttemptState.CAPTURED: _FAILURES | {AttemptState.VALIDATED},
    AttemptState.VALIDATED: _FAILURES | {AttemptState.PERSISTED},
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


def reached_before(error: Exception) -> AttemptState:
    """Return how far an attempt had come when it met an error: what was being tried."""
    if isinstance(error, FetchError):
        return AttemptState.INTERCEPTING
    if isinstance(error, ParseError | ObservationError):
        return AttemptState.CAPTURED
    return AttemptState.VALIDATED if isinstance(error, StorageError) else AttemptState.INIT


def end_of(error: Exception) -> AttemptState:
    """Return the state in which an error ends an attempt."""
    meaning = meaning_of(error)
    if meaning.kind is FailureKind.HELD:
        return AttemptState.CIRCUIT_OPEN
    return step(reached_before(error), AttemptState.SOFT_FAIL if meaning.is_soft else AttemptState.HARD_FAIL)
