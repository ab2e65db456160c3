import pytest

from longstop.supervision.leaps import LEAP_SECONDS, LeapWatch
from longstop.telemetry.alerts import alert_of
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ClockJumped
from tests.memory import MemorySink
from tests.readers import ManualClock

pytestmark = pytest.mark.req("NFR-009")


@pytest.mark.parametrize("leap", [3600.0, -3600.0, LEAP_SECONDS])
def test_a_leap_of_the_wall_clock_is_told_once_however_long_ago_the_last_look_was(leap: float) -> None:
    clock, sink = ManualClock(), MemorySink()
    watch = LeapWatch(clock, Bus([sink]))

    clock.advance(90)
    clock.leap(leap)
    watch.look()
    watch.look()

    assert sink.events == [ClockJumped(seconds=leap)]


def test_a_clock_that_is_set_right_a_little_has_not_leapt() -> None:
    clock, sink = ManualClock(), MemorySink()
    watch = LeapWatch(clock, Bus([sink]))

    clock.advance(3600)
    clock.leap(LEAP_SECONDS - 0.1)
    watch.look()

    assert sink.events == []


def test_a_leap_is_an_alert_that_says_in_which_direction() -> None:
    ahead, back = alert_of(ClockJumped(seconds=3600.0)), alert_of(ClockJumped(seconds=-3600.0))

    assert ahead is not None
    assert back is not None
    assert (ahead.title, back.title) == (
        "the clock of this machine leapt by +3600 s",
        "the clock of this machine leapt by -3600 s",
    )
