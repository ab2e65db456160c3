"""When a run of `poison` proves something."""

from typing import Any

import pytest

from bench.chaos.poison import is_proof

PROOF = {
    **{"events_truth": 900, "events_stored": 900, "events_during": 80, "events_witnessed": 950},
    **dict.fromkeys(("lost", "duplicated", "ghost", "wrong", "forgotten", "orphans"), 0),
    **{"first_recover_s": 12.5, "later_recover_s": 20.0, "never_recovered": 0, "unsynced": 0},
    **{"wrong_reliable": 0, "reliable_share": 0.9, "faulty_answers": {"cricket": 40, "football": 30}},
}


def test_matches_that_recover_and_serve_nothing_wrong_as_reliable_are_a_proof() -> None:
    assert is_proof(PROOF)


@pytest.mark.parametrize(
    "figures",
    [
        {"lost": 1},
        {"ghost": 1},
        {"wrong": 1},
        {"events_stored": 899},
        {"first_recover_s": None, "never_recovered": 1},
        {"later_recover_s": None, "never_recovered": 1},
        {"unsynced": 1},
        {"wrong_reliable": 1},
    ],
)
def test_one_thing_that_is_wrong_is_enough(figures: dict[str, Any]) -> None:
    assert not is_proof({**PROOF, **figures})


@pytest.mark.parametrize(
    "figures",
    [
        {"reliable_share": 0.0},
        {"reliable_share": None},
        {"faulty_answers": {"cricket": 40, "football": 0}},
        {"faulty_answers": {}},
        {"events_during": 0},
    ],
    ids=["nothing reliable", "nothing read", "only one sport hit", "nothing hit", "nothing published"],
)
def test_what_could_not_fail_proves_nothing(figures: dict[str, Any]) -> None:
    assert not is_proof({**PROOF, **figures})
