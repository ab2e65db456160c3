"""What `bench health` calls ok: every question is answered, in time, and as it should be."""

import msgspec
import pytest

from bench.health import Trial, report
from tests.steady_load import Load

QUESTIONS = 2_400


def a_load(*, slow: int = 0, slow_seconds: float = 5.0, other: int = 0, unanswered: int = 0, age: float = 12.0) -> Load:
    """Return a load with this many answers that were slow, a 500, or missing."""
    statuses = {200: 1, 503: QUESTIONS - 1 - other - unanswered, 500: other}
    return Load(
        seconds=[0.002] * (QUESTIONS - slow) + [slow_seconds] * slow,
        statuses={status: count for status, count in statuses.items() if count > 0},
        unanswered=unanswered,
        last=msgspec.json.encode({"status": "down", "snapshot_age_seconds": age}),
    )


def a_trial(*, idle: Load | None = None, hung: Load | None = None, halted: int = 3) -> Trial:
    return Trial(idle=idle or a_load(), hung=hung or a_load(), halted=halted)


def test_where_all_answer_as_they_should_it_is_ok() -> None:
    made = report(a_trial())

    assert (made.is_ok, list(made.details)) == (True, [])
    assert made.figures["unanswered"] == 0
    assert made.figures["status_hung"] == "down"


@pytest.mark.parametrize(
    ("trial", "detail"),
    [
        (a_trial(hung=a_load(other=QUESTIONS - 1)), "the hanging API answered 500 2399 times"),
        (a_trial(idle=a_load(other=1)), "the idle API answered 500 1 times"),
        (a_trial(hung=a_load(slow=1, slow_seconds=1.1)), "the slowest answer of the hanging API took 1.1 s"),
        (a_trial(hung=a_load(slow=100, unanswered=100)), "the hanging API left 100 questions without an answer"),
        (a_trial(idle=a_load(unanswered=1)), "the idle API left 1 questions without an answer"),
        (a_trial(hung=a_load(age=3.0)), "the store did not hang"),
        (a_trial(halted=0), "no browser was halted"),
    ],
)
def test_what_is_wrong_is_said_in_words(trial: Trial, detail: str) -> None:
    made = report(trial)

    assert not made.is_ok
    assert detail in made.details


@pytest.mark.parametrize("last", [b"", b'{"error": "It broke."}', b"<h1>It broke</h1>"])
def test_an_api_that_never_said_how_it_goes_is_not_ok(last: bytes) -> None:
    silent = Load(seconds=[10.0] * QUESTIONS, statuses={}, unanswered=QUESTIONS, last=last)

    made = report(a_trial(hung=silent))

    assert not made.is_ok
    assert "the hanging API never said how old its view is" in made.details
    assert made.figures["snapshot_age_seconds"] is None
