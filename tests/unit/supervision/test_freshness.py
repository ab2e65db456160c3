from datetime import timedelta

import pytest
from msgspec.structs import replace

from longstop.model.match import MatchRef, MatchStatus, MonitoringRecord, Phase
from longstop.supervision.freshness import Freshness
from tests.readers import NOW, a_record


def polled(record: MonitoringRecord, seconds: float) -> MonitoringRecord:
    """Return the record after a good look, so many seconds later on the wall."""
    return replace(record, last_poll_at=NOW + timedelta(seconds=seconds))


def ages(freshness: Freshness, now: float) -> dict[str, float]:
    return {age.ref: age.seconds for age in freshness.sample(now).ages}


def test_an_age_counts_from_the_last_change_of_the_poll() -> None:
    freshness, record = Freshness(), a_record()

    freshness.observe([record], 100.0)
    freshness.observe([polled(record, 1)], 110.0)
    freshness.observe([polled(record, 1)], 130.0)

    assert ages(freshness, 131.0) == {"crex_M1": 21.0}


def test_a_match_that_comes_into_play_with_an_old_poll_is_not_late_yet() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1, polled=3600, status=MatchStatus.UPCOMING)], 0.0)
    freshness.observe([a_record(1, polled=3600), a_record(2, polled=None)], 50.0)

    assert ages(freshness, 51.0) == {"crex_M1": 1.0, "crex_M2": 1.0}


@pytest.mark.parametrize("jump", [-3600, 3600])
def test_a_wall_clock_that_jumps_makes_nobody_old(jump: float) -> None:
    freshness, record = Freshness(), a_record()
    freshness.observe([record], 0.0)

    freshness.observe([polled(record, jump)], 10.0)

    assert ages(freshness, 11.0) == {"crex_M1": 1.0}


def test_who_rests_is_counted_and_has_no_age() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1), a_record(2, phase=Phase.PAUSED)], 0.0)

    assert (list(ages(freshness, 1.0)), freshness.sample(1.0).paused) == (["crex_M1"], frozenset({2}))


def test_what_somebody_has_paused_is_as_it_should_be() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1, phase=Phase.PAUSED), is_on_hold=True)], 0.0)

    assert (freshness.sample(1.0).ages, freshness.sample(1.0).paused) == ((), frozenset())


def test_after_a_pause_the_age_begins_anew() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1)], 0.0)
    freshness.observe([a_record(1, phase=Phase.PAUSED)], 10.0)
    freshness.observe([a_record(1)], 400.0)

    assert ages(freshness, 401.0) == {"crex_M1": 1.0}


def test_a_stall_counts_from_the_last_good_look_and_is_none_when_nothing_is_in_play() -> None:
    freshness, first, second = Freshness(), a_record(1), a_record(2)
    freshness.observe([first, second], 0.0)
    freshness.observe([first, polled(second, 1)], 40.0)

    assert freshness.sample(50.0).stall_seconds == 10.0
    freshness.observe([], 50.0)
    assert freshness.sample(500.0).stall_seconds == 0.0


@pytest.mark.req("MON-8")
def test_who_rests_by_its_breaker_does_not_hide_a_stall() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1), a_record(2)], 0.0)
    freshness.observe([a_record(number, phase=Phase.PAUSED) for number in (1, 2)], 10.0)

    assert (freshness.sample(95.0).stall_seconds, freshness.sample(95.0).is_stalled) == (95.0, True)


@pytest.mark.req("MON-8")
def test_a_newcomer_does_not_end_a_stall_before_it_was_read() -> None:
    freshness, newcomer = Freshness(), a_record(2, polled=None)
    freshness.observe([a_record(1)], 0.0)

    freshness.observe([a_record(1), newcomer], 80.0)
    assert freshness.sample(95.0).is_stalled
    freshness.observe([a_record(1), polled(newcomer, 1)], 96.0)
    assert freshness.sample(97.0).stall_seconds == 1.0


def test_a_good_look_at_what_is_not_in_play_ends_no_stall() -> None:
    freshness, upcoming = Freshness(), a_record(2, status=MatchStatus.UPCOMING)

    freshness.observe([a_record(1), upcoming], 0.0)
    freshness.observe([a_record(1), polled(upcoming, 1)], 60.0)

    assert freshness.sample(95.0).stall_seconds == 95.0
    assert not freshness.has_read


def held(freshness: Freshness, now: float) -> set[str]:
    return {age.ref for age in freshness.sample(now).ages if age.is_held}


def test_in_a_stall_one_who_found_the_door_closed_speaks_for_its_whole_source() -> None:
    freshness, canary = Freshness(), a_record(2)
    shut_out = replace(a_record(1), is_held=True, is_shut_out=True)
    elsewhere = replace(a_record(3), ref=MatchRef("espn", "M3"))
    freshness.observe([shut_out, canary, elsewhere], 0.0)

    assert held(freshness, 95.0) == {"crex_M1", "crex_M2"}
    freshness.observe([shut_out, polled(canary, 1), elsewhere], 96.0)
    assert held(freshness, 130.0) == {"crex_M1"}


@pytest.mark.req("MON-8")
def test_in_a_stall_one_who_waits_in_a_queue_of_our_own_speaks_for_itself_only() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1), is_held=True), a_record(2)], 0.0)

    assert held(freshness, 95.0) == {"crex_M1"}


def test_what_we_lack_ourselves_closes_no_door() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1), is_held=True, lacking="memory"), a_record(2)], 0.0)

    assert held(freshness, 95.0) == set()


def test_a_stall_begins_when_something_comes_into_play() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1), is_on_hold=True)], 0.0)
    freshness.observe([a_record(1)], 500.0)

    assert freshness.sample(530.0).stall_seconds == 30.0


def test_it_tells_who_was_read_since_a_moment() -> None:
    freshness, records = Freshness(), [a_record(number) for number in (1, 2, 3)]
    freshness.observe(records, 0.0)
    freshness.observe([polled(records[0], 1), records[1], polled(records[2], 1)], 10.0)

    assert freshness.read_since({1, 2}, 5.0) == ("crex_M1",)
    assert freshness.read_since({1, 2, 3}, 10.0) == ()


def test_first_sight_is_no_success() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1)], 10.0)

    assert freshness.read_since({1}, 5.0) == ()


def test_a_look_that_shows_the_end_counts_and_nobody_is_wanted_then() -> None:
    freshness, record = Freshness(), a_record()
    freshness.observe([record], 0.0)
    assert freshness.is_any_wanted({1})

    freshness.observe([replace(polled(record, 1), status=MatchStatus.COMPLETED)], 10.0)

    assert freshness.read_since({1}, 5.0) == ("crex_M1",)
    assert not freshness.is_any_wanted({1})
    assert ages(freshness, 11.0) == {}


@pytest.mark.req("MON-8")
def test_how_long_a_stall_is_can_be_said() -> None:
    freshness, patient = Freshness(stall_after=5.0), Freshness()
    for each in (freshness, patient):
        each.observe([a_record()], 100.0)

    assert not freshness.sample(104.9).is_stalled
    assert freshness.sample(105.0).is_stalled
    assert not patient.sample(189.9).is_stalled
    assert patient.sample(190.0).is_stalled
