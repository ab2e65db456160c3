"""Commands: which moves there are, and when waiting has lasted too long."""

from datetime import UTC, datetime, timedelta

import pytest

from longstop.clock import Moment
from longstop.errors import IllegalTransition
from longstop.model.command_and_standing_order import (
    EXPIRED,
    EXPIRES_AFTER_SECONDS,
    LOST,
    TRANSITIONS,
    CommandState,
    Reply,
    age_of,
    check_move,
    overdue,
)

PENDING, TAKEN = CommandState.PENDING, CommandState.TAKEN
ANSWERED = [state for state in CommandState if state not in (PENDING, TAKEN)]


@pytest.mark.parametrize("before", CommandState)
@pytest.mark.parametrize("after", CommandState)
def test_a_command_moves_by_its_table_alone(before: CommandState, after: CommandState) -> None:
    if after in TRANSITIONS[before]:
        check_move(before, after)
    else:
        with pytest.raises(IllegalTransition):
            check_move(before, after)


def test_an_answer_is_for_ever_and_everything_else_gets_one() -> None:
    assert all(not TRANSITIONS[state] for state in ANSWERED)
    assert TRANSITIONS[PENDING] == {TAKEN, CommandState.EXPIRED}
    assert TRANSITIONS[TAKEN] == {CommandState.DONE, CommandState.REFUSED, CommandState.FAILED}


@pytest.mark.parametrize(
    ("state", "age", "reply"),
    [
        (PENDING, 0.0, None),
        (PENDING, EXPIRES_AFTER_SECONDS, None),
        (PENDING, EXPIRES_AFTER_SECONDS + 0.1, EXPIRED),
        (TAKEN, EXPIRES_AFTER_SECONDS + 20.0, None),
        (TAKEN, 1_000.0, LOST),
        (CommandState.DONE, 1e9, None),
    ],
)
def test_what_waits_too_long_is_answered(state: CommandState, age: float, reply: Reply | None) -> None:
    assert overdue(state, age) == reply


ASKED = Moment(datetime(2026, 11, 15, 12, tzinfo=UTC), 1_000.0)


def moment(*, wall: float, monotonic: float) -> Moment:
    """Return the moment this many seconds after the request, by each clock."""
    return Moment(ASKED.wall + timedelta(seconds=wall), ASKED.monotonic + monotonic)


@pytest.mark.parametrize("wall", [5.0, 3_605.0, -3_595.0], ids=["right", "an hour ahead", "an hour back"])
def test_within_one_boot_the_age_is_monotonic(wall: float) -> None:
    assert age_of(ASKED, moment(wall=wall, monotonic=5.0), is_one_boot=True) == 5.0


@pytest.mark.parametrize(("wall", "age"), [(5.0, 5.0), (3_605.0, 3_605.0), (-3_595.0, 3_595.0), (-2.0, 2.0)])
@pytest.mark.parametrize("monotonic", [5.0, -900.0, 1e6])
def test_across_boots_and_machines_the_age_is_by_the_wall_clock(wall: float, age: float, monotonic: float) -> None:
    assert age_of(ASKED, moment(wall=wall, monotonic=monotonic), is_one_boot=False) == age


def test_a_monotonic_clock_that_began_again_is_of_another_boot_even_without_a_boot_id() -> None:
    assert age_of(ASKED, moment(wall=90.0, monotonic=-900.0), is_one_boot=True) == 90.0
