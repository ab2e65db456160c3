"""Commands: which moves there are, and when waiting has lasted too long."""

import pytest

from longstop.errors import IllegalTransition
from longstop.model.command import (
    EXPIRED,
    EXPIRES_AFTER_SECONDS,
    LOST,
    TRANSITIONS,
    CommandState,
    Reply,
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
        (PENDING, -0.1, EXPIRED),
        (PENDING, None, EXPIRED),
        (TAKEN, EXPIRES_AFTER_SECONDS + 20.0, None),
        (TAKEN, 1_000.0, LOST),
        (TAKEN, -5.0, LOST),
        (TAKEN, None, LOST),
        (CommandState.DONE, 1e9, None),
        (CommandState.DONE, None, None),
    ],
)
def test_what_waits_too_long_is_answered(state: CommandState, age: float | None, reply: Reply | None) -> None:
    assert overdue(state, age) == reply
