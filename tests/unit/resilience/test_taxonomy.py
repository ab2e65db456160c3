"""What an error means, and how an attempt ends."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from longstop.errors import (
    BodyTruncated,
    CircuitOpen,
    EmptyBody,
    EpochLost,
    FetchTimeout,
    IllegalTransition,
    ImpossibleObservation,
    LayoutChanged,
    MalformedBody,
    PageNotFound,
    SourceChallenged,
    SourceError,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
    StorageError,
)
from longstop.resilience.poll_attempt_states import TRANSITIONS, AttemptState, end_of, step
from longstop.resilience.taxonomy import MEANINGS, FailureKind, kind_of, meaning_of


def _below(kind: type[SourceError]) -> Iterator[type[SourceError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == "longstop.errors":
            yield from _below(each)


def test_every_error_of_a_request_stands_in_the_table_by_itself() -> None:
    assert set(_below(SourceError)) == set(MEANINGS)


@pytest.mark.req("CAP-8")
@pytest.mark.parametrize(
    ("error", "is_soft"),
    [
        (FetchTimeout("x"), True),
        (SourceRefused("403"), True),
        (SourceUnreachable("x"), True),
        (SourceFailed("503"), True),
        (BodyTruncated("x"), True),
        (EmptyBody("x"), True),
        (MalformedBody("x"), True),
        (LayoutChanged("x"), False),
        (PageNotFound("404"), False),
        (SourceChallenged("x"), False),
    ],
)
def test_what_may_pass_is_soft_and_what_stays_is_hard(error: SourceError, is_soft: bool) -> None:
    assert meaning_of(error).is_soft is is_soft


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FetchTimeout("x"), FailureKind.CONNECTION),
        (SourceUnreachable("x"), FailureKind.CONNECTION),
        (SourceFailed("503"), FailureKind.CONNECTION),
        (SourceRefused("429"), FailureKind.REFUSAL),
        (SourceChallenged("x"), FailureKind.REFUSAL),
        (EmptyBody("x"), FailureKind.CONTENT),
        (LayoutChanged("x"), FailureKind.CONTENT),
        (PageNotFound("404"), FailureKind.GONE),
        (CircuitOpen("x"), FailureKind.NOT_SENT),
        (EpochLost("x"), FailureKind.OURS),
        (ZeroDivisionError(), FailureKind.OURS),
    ],
)
def test_each_failure_belongs_to_one_kind(error: Exception, kind: FailureKind) -> None:
    assert kind_of(error) is kind


def test_an_error_from_a_third_partys_source_means_what_its_parent_means() -> None:
    class Newcomer(SourceRefused):
        pass

    assert kind_of(Newcomer("x")) is FailureKind.REFUSAL


# --- one attempt to read a match, as a state machine ----------------------------------------------------------------


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


def test_a_poll_may_take_several_pages_and_store_nothing() -> None:
    way = "init intercepting captured intercepting captured validated done"
    states = [AttemptState(word) for word in way.split()]

    assert [step(before, after) for before, after in pairwise(states)] == states[1:]
