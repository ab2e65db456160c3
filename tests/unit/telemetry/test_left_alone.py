from datetime import timedelta

from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchPhaseChanged
from longstop.telemetry.events.sources import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    LayoutBroken,
    LayoutRecovered,
    SourceRateLimited,
)
from longstop.telemetry.left_alone import MAX_NOTED, LeftAlone
from tests.readers import NOW, ManualClock

OPENED = CircuitOpened(scope="target", subject="crex.example", reason="5 failures", seconds=60.0)
BROKEN = LayoutBroken(
    source="crex", resource="live", failures=11, error_message="no field", page=None, retry_in_seconds=300.0
)


def noted(*events: Telemetry, clock: ManualClock | None = None) -> LeftAlone:
    sink = LeftAlone(clock or ManualClock())
    for event in events:
        sink.take(event)
    return sink


def test_an_open_breaker_is_noted_until_it_closes() -> None:
    (note,) = noted(OPENED).notes()

    assert (note.scope, note.subject, note.state, note.reason) == ("target", "crex.example", "open", "5 failures")
    assert (note.since, note.until) == (NOW, NOW + timedelta(seconds=60))
    assert noted(OPENED, CircuitClosed(scope="target", subject="crex.example", rejected=0)).notes() == ()


def test_one_that_lets_a_few_in_is_half_open_since_it_opened() -> None:
    clock = ManualClock()
    sink = noted(OPENED, clock=clock)
    clock.advance(60)

    sink.take(CircuitHalfOpened(scope="target", subject="crex.example"))

    (note,) = sink.notes()
    assert (note.state, note.since, note.until, note.reason) == ("half_open", NOW, None, "5 failures")


def test_pages_that_cannot_be_read_are_noted_until_they_can() -> None:
    assert [(note.scope, note.subject) for note in noted(BROKEN).notes()] == [("layout", "crex live")]
    assert noted(BROKEN, LayoutRecovered(source="crex", resource="live", failures=11)).notes() == ()


def test_a_rest_is_over_by_itself_whatever_the_wall_clock_says() -> None:
    clock = ManualClock()
    sink = noted(SourceRateLimited(source="crex", seconds=30.0, reason="429"), clock=clock)

    clock.advance(29)
    during = sink.notes()
    clock.advance(1)

    assert [note.subject for note in during] == ["crex"]
    assert sink.notes() == ()


def test_a_match_that_is_archived_is_forgotten() -> None:
    opened = CircuitOpened(scope="match", subject="crex_M1", reason="refused", seconds=300.0)

    assert (
        noted(opened, MatchPhaseChanged(match_id=1, ref="crex_M1", before="completed", after="archived")).notes() == ()
    )


def test_however_many_open_there_is_a_limit() -> None:
    many = [CircuitOpened(scope="match", subject=f"crex_{n}", reason="", seconds=1.0) for n in range(MAX_NOTED + 5)]

    assert len(noted(*many).notes()) == MAX_NOTED


def test_the_time_that_is_left_is_told_anew_whatever_the_wall_clock_did_meanwhile() -> None:
    clock = ManualClock()
    sink = noted(OPENED, clock=clock)

    clock.advance(20)
    clock.leap(3600)

    (note,) = sink.notes()
    assert (note.left_seconds, note.until) == (40.0, clock.now() + timedelta(seconds=40))
