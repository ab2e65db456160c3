from datetime import UTC, datetime, timedelta

from longstop.clock import Moment
from tests.readers import ManualClock

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_a_moment_is_read_from_both_clocks() -> None:
    clock = ManualClock(NOON)

    before = Moment.of(clock)
    clock.leap(3600)
    clock.advance(2)

    assert Moment.of(clock) == Moment(NOON + timedelta(seconds=3602), before.monotonic + 2)


def test_an_age_is_by_the_wall_clock_only_without_a_monotonic_time() -> None:
    now = Moment(NOON, 100.0)
    an_hour_ahead = NOON + timedelta(hours=1)

    assert now.seconds_since(an_hour_ahead, 97.5) == 2.5
    assert now.seconds_since(an_hour_ahead, None) == -3600.0


def test_a_monotonic_moment_has_its_place_on_the_wall_as_it_hangs_now() -> None:
    assert Moment(NOON, 100.0).on_the_wall(160.0) == NOON + timedelta(minutes=1)
