"""Who is let in when memory is short, and who has to go."""

import pytest

from longstop.supervision.admission import admission, idle_ones
from longstop.supervision.memory import MEGABYTE
from longstop.supervision.room import MeasuredRoom

NEEDED = 500 * MEGABYTE


@pytest.mark.req("EC6")
def test_under_500_megabytes_nothing_new_begins() -> None:
    refusal = admission(NEEDED - 1, NEEDED)

    assert refusal is not None
    assert str(refusal) == "Insufficient memory resources: 499 MB are free, 500 MB are needed"
    assert refusal.retry_after_seconds == 60


def test_with_500_megabytes_there_is_room() -> None:
    assert admission(NEEDED, NEEDED) is None


@pytest.mark.req("EC6")
def test_watches_idle_for_half_an_hour_end_first_the_longest_idle_one_before_the_others() -> None:
    active_at = {"younger": 300.0, "oldest": 0.0, "busy": 2000.0, "just short": 300.5}

    assert idle_ones(active_at, now=2100.0) == ["oldest", "younger"]


def test_room_is_measured_at_every_question() -> None:
    sizes = iter([NEEDED, NEEDED - 1, NEEDED])
    room = MeasuredRoom(NEEDED, measure=lambda: next(sizes))

    answers = [room.refusal() is None for _ in range(3)]

    assert answers == [True, False, True]
