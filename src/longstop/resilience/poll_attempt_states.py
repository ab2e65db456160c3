"""The states of an attempt to poll a match."""

from enum import StrEnum

from longstop.errors import IllegalTransition
from longstop.resilience.taxonomy import FailureKind, meaning_of


class AttemptState(StrEnum):
    INIT = "init"
    BROWSER_READY = "browser_ready"
    NAVIGATING = "navigating"
    #: Sent, and waiting for the response.
    INTERCEPTING = "intercepting"
    CAPTURED = "captured"
    VALIDATED = "validated"
    PERSISTED = "persisted"
    DONE = "done"
    #: A retry may succeed.
    SOFT_FAIL = "soft_fail"
    HARD_FAIL = "hard_fail"
    #: No request was sent.
    CIRCUIT_OPEN = "circuit_open"


_FAILURES = frozenset({AttemptState.SOFT_FAIL, AttemptState.HARD_FAIL})
#: Over HTTP there is no browser and no navigation, hence INIT → INTERCEPTING. A poll takes several pages, hence
#: CAPTURED → INTERCEPTING. A poll without a change persists nothing, hence VALIDATED → DONE.
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
    """Return the new state, or raise `IllegalTransition`: a step that is not in the table is a bug."""
    if to not in TRANSITIONS[current]:
        raise IllegalTransition(f"an attempt cannot go from {current} to {to}")
    return to


def end_of(reached: AttemptState, error: Exception) -> AttemptState:
    meaning = meaning_of(error)
    if meaning.kind is FailureKind.NOT_SENT:
        return step(reached, AttemptState.CIRCUIT_OPEN)
    return step(reached, AttemptState.SOFT_FAIL if meaning.is_soft else AttemptState.HARD_FAIL)
