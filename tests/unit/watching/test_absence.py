"""When "not found" means that a match is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.watching.absence import CONFIRMATIONS, Absence

APART = 60.0


def _missing_at(*moments: float) -> Absence:
    absence = Absence()
    for now in moments:
        absence = absence.after_missing(now, apart=APART)
    return absence


@pytest.mark.req("EC3")
def test_a_match_is_gone_when_its_page_was_missing_three_times_a_minute_apart() -> None:
    assert not _missing_at(0, 60).is_gone(is_listed=False)
    assert _missing_at(0, 60, 120).is_gone(is_listed=False)


@pytest.mark.req("EC3")
def test_a_match_that_a_list_still_shows_is_not_gone_however_often_its_page_is_missing() -> None:
    assert not _missing_at(*range(0, 6000, 60)).is_gone(is_listed=True)


@given(st.lists(st.floats(0, 59.9), max_size=50))
def test_a_burst_of_answers_within_a_minute_says_it_once(moments: list[float]) -> None:
    absence = _missing_at(0.0, *sorted(moments))

    assert absence == Absence(times=1, counted_at=0.0)


@given(st.lists(st.floats(0.1, 200), max_size=50))
def test_a_match_is_never_gone_within_two_minutes(gaps: list[float]) -> None:
    absence, now = Absence(), 1000.0

    for gap in gaps:
        absence, now = absence.after_missing(now, apart=APART), now + gap
        assert now - gap - 1000.0 >= (CONFIRMATIONS - 1) * APART or not absence.is_gone(is_listed=False)
