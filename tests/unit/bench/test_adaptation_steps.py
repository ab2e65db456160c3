"""Steps up and down, read from the log."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.chaos.adaptation_steps import (
    Level,
    level,
    pace_by_errors,
    paces,
    read_events,
    slowed,
    steps,
    swings,
    time_outs,
)
from longstop.clock import to_iso
from tests.builders import NOW


def reported(after: float, **fields: Any) -> dict[str, Any]:
    return {"timestamp": to_iso(NOW + timedelta(seconds=after)), **fields}


def levels(*pairs: tuple[float, float]) -> list[Level]:
    return [Level(at=NOW + timedelta(seconds=after), seconds=seconds) for after, seconds in pairs]


def ways(*pairs: tuple[float, float], base: float = 1.0) -> list[bool]:
    return [step.is_up for step in steps(levels(*pairs), since=NOW, base=base)]


def test_events_are_read_by_name_and_other_lines_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "longstop.log"
    wanted = {"event": "cadence.changed", "ref": "crex_1"}
    lines = [
        json.dumps(wanted),
        "cadence.changed, but no JSON",
        json.dumps({"event": "x", "why": "cadence.changed"}),
        "",
    ]
    log.write_text("\n".join(lines))

    assert read_events(log, "cadence.changed") == [wanted]


def test_only_errors_slow_a_match_down_for_the_sites_sake() -> None:
    events = [
        reported(1, ref="crex_1", reason="errors", interval_seconds=5.0),
        reported(2, ref="crex_1", reason="break", interval_seconds=30.0),
        reported(3, ref="crex_1", reason="baseline", interval_seconds=2.5),
        reported(4, ref="crex_2", reason="busy", interval_seconds=2.0),
    ]

    by_errors, whatever = pace_by_errors(events, 2.5), paces(events)

    assert [level.seconds for level in by_errors["crex_1"]] == [5.0, 2.5]
    assert [level.seconds for level in by_errors["crex_2"]] == [2.5]
    assert [level.seconds for level in whatever["crex_1"]] == [5.0, 30.0, 2.5]


def test_a_match_is_slowed_until_another_reason_is_logged() -> None:
    events = [
        reported(1, ref="crex_1", reason="errors", interval_seconds=5.0),
        reported(2, ref="crex_2", reason="errors", interval_seconds=5.0),
        reported(3, ref="crex_1", reason="completed", interval_seconds=300.0),
    ]

    assert slowed(events) == {"crex_2"}


def test_time_outs_are_a_ladder_of_each_source() -> None:
    ladders = time_outs([reported(1, source="crex", fetch_seconds=15.0, page_seconds=45.0)])

    assert {name: [level.seconds for level in found] for name, found in ladders.items()} == {"crex": [15.0]}


def test_the_level_is_that_of_the_latest_rung() -> None:
    ladder = levels((1, 5.0), (3, 10.0))

    assert [level(ladder, NOW + timedelta(seconds=after), 2.5) for after in (0, 1, 2.9, 4)] == [2.5, 5.0, 5.0, 10.0]


def test_a_rung_as_high_as_the_one_before_is_no_step() -> None:
    assert ways((1, 1.0), (2, 5.0), (3, 5.0), (4, 10.0), (5, 1.0)) == [True, True, False]


def test_what_was_before_is_where_it_starts() -> None:
    assert ways((-5, 4.0), (2, 5.0)) == [True]
    assert ways((-5, 4.0), (2, 3.0)) == [False]


def test_a_step_taken_back_within_the_window_is_an_oscillation() -> None:
    taken = steps(levels((1, 5.0), (4, 1.0), (30, 5.0), (50, 1.0), (55, 5.0)), since=NOW, base=1.0)

    assert swings(taken, 10) == [(taken[0], taken[1]), (taken[3], taken[4])]


def test_steps_in_one_direction_are_none_however_fast() -> None:
    taken = steps(levels((1, 5.0), (1.5, 10.0), (2, 20.0)), since=NOW, base=1.0)

    assert swings(taken, 10) == []
