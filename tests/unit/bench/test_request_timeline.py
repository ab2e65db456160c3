"""Peaks, and requests during a ban."""

from datetime import timedelta

import pytest

from bench.chaos.outage import crowding
from bench.chaos.request_timeline import Bans, bans, moments, peak
from longstop_lab.simulator.request_log import RequestNote
from tests.builders import NOW


def note(after: float, retry_after: int | None = None, delay: float = 0.0) -> RequestNote:
    return RequestNote(
        number=1,
        at=NOW + timedelta(seconds=after),
        path="/x",
        match=None,
        fault="status" if retry_after else None,
        delay_seconds=delay,
        retry_after_seconds=retry_after,
    )


def test_a_peak_is_found_wherever_it_begins() -> None:
    assert peak([], 0.25) == 0
    assert peak([0.0, 0.3, 0.6], 0.25) == 1
    # It lies across the border of two quarters of a second.
    assert peak([0.0, 0.2, 0.24, 0.26, 0.3, 0.44, 0.9], 0.25) == 5


def test_a_window_does_not_hold_its_own_end() -> None:
    assert peak([0.0, 0.25], 0.25) == 1


def test_moments_count_from_the_beginning_of_the_span() -> None:
    notes = [note(3), note(1), note(9), note(-1)]

    assert moments(notes, NOW, NOW + timedelta(seconds=5)) == [1, 3]


def test_the_mean_is_of_the_time_from_the_first_request_until_all_is_fresh() -> None:
    assert crowding([1.0, 1.1, 3.0, 4.9], fresh_after=5.0) == {"peak_250ms": 2, "mean_250ms": 0.25}


def test_a_stampede_is_not_excused_by_being_over_soon() -> None:
    assert crowding([0.5 + nth / 100 for nth in range(16)], fresh_after=0.7) == {"peak_250ms": 16, "mean_250ms": 2.0}


def test_a_site_without_requests_after_its_return_has_no_mean() -> None:
    assert crowding([], fresh_after=60.0) == {"peak_250ms": 0, "mean_250ms": 0.0}


def test_requests_during_a_ban_are_distinguished_from_those_under_way_when_it_began() -> None:
    notes = [note(0, retry_after=2), note(0.1), note(1.0), note(1.9), note(2.1)]

    assert bans(notes) == Bans(count=1, in_flight=1, during=2)


def test_a_ban_begins_when_its_answer_goes_out() -> None:
    assert bans([note(0, retry_after=1, delay=2.0), note(0.5)]) == Bans(count=1, in_flight=0, during=0)


def test_a_second_refusal_prolongs_a_ban() -> None:
    notes = [note(0, retry_after=2), note(0.1, retry_after=5), note(4.0)]

    assert bans(notes) == Bans(count=1, in_flight=1, during=1)


@pytest.mark.parametrize("after", [2.0, 7.0])
def test_two_refusals_apart_are_two_bans(after: float) -> None:
    assert bans([note(0, retry_after=2), note(after, retry_after=2)]) == Bans(count=2, in_flight=0, during=0)
