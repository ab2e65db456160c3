"""One attempt to read a match, as a state machine."""

from itertools import pairwise

import pytest

from longstop.errors import (
    CircuitOpen,
    EpochLost,
    FetchTimeout,
    IllegalTransition,
    ImpossibleObservation,
    LayoutChanged,
    MalformedBody,
    PageNotFound,
    SourceRefused,
    StorageError,
)
from longstop.resilience.attempt import TRANSITIONS, AttemptState, end_of, step
from longstop.resilience.taxonomy import MEANINGS

ENDS = {AttemptState.DONE, AttemptState.SOFT_FAIL, AttemptState.HARD_FAIL, AttemptState.CIRCUIT_OPEN}
OVER_HTTP = "init intercepting captured validated persisted done"
BY_BROWSER = "init browser_ready navigating intercepting captured validated persisted done"


@pytest.mark.req("CAP-8")
@pytest.mark.parametrize("way", [OVER_HTTP, BY_BROWSER])
def test_a_good_attempt_goes_its_way_step_by_step(way: str) -> None:
    states = [AttemptState(word) for word in way.split()]

    assert [step(before, after) for before, after in pairwise(states)] == states[1:]


@pytest.mark.req("CAP-8")
def test_an_end_has_no_way_on_and_every_other_state_has_one() -> None:
    assert {state for state, ways in TRANSITIONS.items() if not ways} == ENDS
    assert set(TRANSITIONS) == set(AttemptState)


@pytest.mark.parametrize("before", list(AttemptState))
@pytest.mark.parametrize("after", list(AttemptState))
def test_a_step_that_is_not_in_the_table_is_a_bug(before: AttemptState, after: AttemptState) -> None:
    if after in TRANSITIONS[before]:
        assert step(before, after) is after
    else:
        with pytest.raises(IllegalTransition, match=f"from {before} to {after}"):
            step(before, after)


def test_what_is_stored_can_no_longer_fail() -> None:
    assert TRANSITIONS[AttemptState.PERSISTED] == {AttemptState.DONE}


@pytest.mark.req("CAP-8")
@pytest.mark.parametrize(
    ("error", "reached", "end"),
    [
        (FetchTimeout("x"), AttemptState.INTERCEPTING, AttemptState.SOFT_FAIL),
        (SourceRefused("403"), AttemptState.INTERCEPTING, AttemptState.SOFT_FAIL),
        (PageNotFound("404"), AttemptState.INTERCEPTING, AttemptState.HARD_FAIL),
        (CircuitOpen("x"), AttemptState.INTERCEPTING, AttemptState.CIRCUIT_OPEN),
        (MalformedBody("x"), AttemptState.CAPTURED, AttemptState.SOFT_FAIL),
        (LayoutChanged("x"), AttemptState.CAPTURED, AttemptState.HARD_FAIL),
        (ImpossibleObservation("x"), AttemptState.CAPTURED, AttemptState.HARD_FAIL),
        (EpochLost("x"), AttemptState.VALIDATED, AttemptState.SOFT_FAIL),
        (StorageError("x"), AttemptState.VALIDATED, AttemptState.SOFT_FAIL),
        (ZeroDivisionError(), AttemptState.INIT, AttemptState.SOFT_FAIL),
    ],
)
def test_an_error_ends_an_attempt_from_where_it_was(error: Exception, reached: AttemptState, end: AttemptState) -> None:
    assert end_of(reached, error) is end


@pytest.mark.parametrize("kind", list(MEANINGS), ids=lambda kind: kind.__name__)
def test_whatever_goes_wrong_with_a_request_ends_the_attempt_by_the_table(kind: type[Exception]) -> None:
    assert end_of(AttemptState.INTERCEPTING, kind("x")) in ENDS - {AttemptState.DONE}


def test_a_look_may_take_several_pages_and_bring_nothing_to_keep() -> None:
    way = "init intercepting captured intercepting captured validated done"
    states = [AttemptState(word) for word in way.split()]

    assert [step(before, after) for before, after in pairwise(states)] == states[1:]
