"""The log sink: one JSON object a line, with the names that everybody shares."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.events.matches import PollFailed
from longstop.telemetry.events.processes import ChildDied, ProcessStopped, TaskFailed
from longstop.telemetry.log import MAX_FIELD_CHARACTERS, LogSink

NOON = datetime(2026, 11, 15, 12, 0, 0, 123456, UTC)


class Whisper(Telemetry, frozen=True, kw_only=True):
    """Something to say that only a debugger wants to hear."""

    name = "test.whispered"
    severity = Severity.DEBUG
    source: str


class FixedClock:
    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return 0.0


def lines(*events: Telemetry, level: Severity = Severity.DEBUG) -> list[dict[str, Any]]:
    stream = io.StringIO()
    sink = LogSink(process="scraper", level=level, clock=FixedClock(), stream=stream)
    for event in events:
        sink.take(event)
    return [json.loads(line) for line in stream.getvalue().split("\n") if line]


def test_a_line_carries_the_event_its_moment_its_severity_and_its_process() -> None:
    [line] = lines(ProcessStopped(process="api", pid=7, reported_by="api"))

    assert line["event"] == "process.stopped"
    assert line["timestamp"] == "2026-11-15T12:00:00.123Z"
    assert line["severity"] == "INFO"
    assert line["pid"] == 7


def test_an_event_with_a_process_of_its_own_names_that_one_and_others_the_writer() -> None:
    about_child, about_task = lines(
        ChildDied(process="api", pid=7, exit_code=-9, restart_in_seconds=0.0),
        Whisper(source="crex"),
    )

    assert about_child["process"] == "api"
    assert about_task["process"] == "scraper"


@pytest.mark.parametrize(
    ("level", "written"),
    [
        (Severity.DEBUG, ["test.whispered", "process.stopped", "poll.failed", "process.died", "task.failed"]),
        (Severity.INFO, ["process.stopped", "poll.failed", "process.died", "task.failed"]),
        (Severity.WARN, ["poll.failed", "process.died", "task.failed"]),
        (Severity.ERROR, ["process.died", "task.failed"]),
        (Severity.CRITICAL, ["task.failed"]),
    ],
)
def test_events_below_the_level_are_not_written(level: Severity, written: list[str]) -> None:
    events = (
        Whisper(source="crex"),
        ProcessStopped(process="api", pid=7, reported_by="api"),
        PollFailed(match_id=1, ref="crex_1", error_type="FetchTimeout", error_message="late"),
        ChildDied(process="api", pid=7, exit_code=1, restart_in_seconds=1.0),
        TaskFailed(task="poll", error_type="KeyError", error_message="'x'", stack_trace="…"),
    )

    assert [line["event"] for line in lines(*events, level=level)] == written


def test_a_text_with_line_breaks_stays_on_one_line() -> None:
    message = 'first\nsecond\r\n{"event": "forged"}\u2028third'

    [line] = lines(PollFailed(match_id=1, ref="crex_1", error_type="X", error_message=message))

    assert line["error_message"] == message


def test_a_huge_field_is_cut() -> None:
    [line] = lines(PollFailed(match_id=1, ref="crex_1", error_type="X", error_message="x" * 1_000_000))

    assert len(line["error_message"]) == MAX_FIELD_CHARACTERS


def test_text_that_is_no_unicode_is_logged_with_question_marks() -> None:
    [line] = lines(PollFailed(match_id=1, ref="crex_1", error_type="X", error_message="\ud800 late"))

    assert line["error_message"] == "? late"
