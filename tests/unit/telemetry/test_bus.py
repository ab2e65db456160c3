"""The bus: every sink receives every event, and a failing sink stops no other."""

import pytest

from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import ProcessStopped

STOPPED = ProcessStopped(process="api", pid=7, reported_by="api")


class Recorder:
    def __init__(self) -> None:
        self.events: list[Telemetry] = []

    def take(self, event: Telemetry) -> None:
        self.events.append(event)


class FailingSink:
    def take(self, event: Telemetry) -> None:
        raise OSError("disk full")


class CancelledSink:
    def take(self, event: Telemetry) -> None:
        raise KeyboardInterrupt


def test_every_sink_hears_every_event_in_order() -> None:
    first, second = Recorder(), Recorder()
    bus = Bus([first, second])
    other = ProcessStopped(process="scraper", pid=8, reported_by="scraper")

    bus.emit(STOPPED)
    bus.emit(other)

    assert first.events == second.events == [STOPPED, other]


def test_a_bus_without_sinks_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    Bus().emit(STOPPED)

    assert capsys.readouterr() == ("", "")


def test_a_failing_sink_neither_stops_the_work_nor_the_sinks_behind_it() -> None:
    behind = Recorder()

    Bus([FailingSink(), behind]).emit(STOPPED)

    assert behind.events == [STOPPED]


def test_a_failing_sink_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    bus = Bus([FailingSink()])

    for _ in range(3):
        bus.emit(STOPPED)

    assert capsys.readouterr().err == "telemetry sink FailingSink failed: OSError('disk full')\n"


def test_each_failing_sink_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Bus([FailingSink(), FailingSink()]).emit(STOPPED)

    assert capsys.readouterr().err.count("FailingSink failed") == 2


def test_an_interrupt_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        Bus([CancelledSink()]).emit(STOPPED)
