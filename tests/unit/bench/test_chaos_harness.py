"""When the data after a chaos suite are complete."""

from typing import Any

import pytest

from bench.chaos.harness import is_whole

WHOLE = {
    "events_truth": 466,
    "events_stored": 466,
    "events_during": 77,
    "events_witnessed": 480,
    "lost": 0,
    "duplicated": 0,
    "ghost": 0,
    "wrong": 0,
    "forgotten": 0,
    "orphans": 0,
}


def test_what_was_published_and_is_stored_is_whole() -> None:
    assert is_whole(WHOLE)


@pytest.mark.parametrize("name", ["lost", "duplicated", "ghost", "wrong", "forgotten", "orphans"])
def test_one_thing_that_is_wrong_is_enough(name: str) -> None:
    assert not is_whole({**WHOLE, name: 1})


@pytest.mark.parametrize(
    "figures",
    [
        {"events_truth": 0, "events_stored": 0},
        {"events_stored": 465},
        {"events_during": 0},
        {"events_witnessed": 0},
    ],
    ids=["nothing published", "one less stored", "nothing published meanwhile", "nothing observed"],
)
def test_what_could_not_show_a_loss_is_not_whole(figures: dict[str, Any]) -> None:
    assert not is_whole({**WHOLE, **figures})
