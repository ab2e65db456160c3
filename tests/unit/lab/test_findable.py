"""Which football matches a reader of the live list must have found."""

from datetime import UTC, datetime, timedelta

import pytest

from longstop_lab.findable import FOUND_WITHIN, expected, findable
from longstop_lab.simulator.truth import TruthLine

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def told(*moments: tuple[float, str], match: str = "7") -> list[TruthLine]:
    return [
        TruthLine(
            at=NOON + timedelta(seconds=seconds),
            match=match,
            op="update",
            kind="status",
            id="status",
            content={"status": status, "shift_seconds": 0.0},
        )
        for seconds, status in moments
    ]


@pytest.mark.parametrize(
    ("moments", "is_findable"),
    [
        # Still in the list, however short: the last full sync reads it.
        ([(0, "Not started"), (99, "1st half")], True),
        ([(0, "1st half"), (5, "Halftime")], True),
        # Over, and was there for long enough; a break in the middle is still in the list.
        ([(0, "1st half"), (6, "Halftime"), (8, "2nd half"), (10, "Ended")], True),
        ([(-60, "1st half"), (FOUND_WITHIN, "AET")], True),
        # Over before anybody could have seen it.
        ([(-60, "1st half"), (9, "Ended")], False),
        ([(0, "1st half"), (9.9, "Abandoned")], False),
        ([(-60, "1st half"), (-5, "Ended")], False),
        # Two short visits are not one long one.
        ([(0, "1st half"), (6, "Postponed"), (20, "1st half"), (26, "Ended")], False),
        # Never in the list.
        ([(0, "Not started"), (60, "Postponed")], False),
    ],
)
def test_a_match_must_be_found_if_it_is_listed_or_was_for_long_enough(
    moments: list[tuple[float, str]], is_findable: bool
) -> None:
    assert (findable(told(*moments), since=NOON) == {"7"}) is is_findable


def test_of_football_the_known_and_the_findable_are_expected_and_of_cricket_everything() -> None:
    goal, ball = (
        TruthLine(at=NOON, match=match, op="insert", kind=kind, id="1", content={})
        for match, kind in (("8", "goal"), ("1000", "delivery"))
    )
    never_shown, unknown, known = told((0, "Ended"), match="9"), told((0, "1st half")), told((0, "Ended"), match="8")
    truth = [*never_shown, *unknown, *known, goal, ball]

    of_football = expected("football", truth, known={"8", "1000"}, since=NOON)
    of_cricket = expected("cricket", truth, known=set(), since=NOON)

    assert of_football == [*unknown, *known, goal]
    assert of_cricket == [ball]
